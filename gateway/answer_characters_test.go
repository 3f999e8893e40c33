package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"aiv/runs/answers"
)

// TestAnswerCharacters: a tool cuts texts between characters, and marks those that it cuts.
func TestAnswerCharacters(t *testing.T) {
	for _, character := range []string{"x", "è", "日", "😀", "\n"} {
		for _, length := range []int{0, 1, 5, 6, 600} {
			for _, chars := range []int{-1, 0, 5, 600} {
				text, cut := strings.Repeat(character, length), chars >= 0 && length > chars
				var got struct {
					Text       string
					Truncated  bool `json:"text_truncated"`
					Characters int  `json:"text_characters"`
				}
				if err := json.Unmarshal(appendAnswer(nil, &answers.Answer{Text: text}, chars), &got); err != nil {
					t.Fatal(err)
				}
				want := text
				if cut {
					want = strings.Repeat(character, chars)
				}
				if got.Text != want || got.Truncated != cut || cut && got.Characters != length {
					t.Errorf("%d times %q cut to %d: %+v", length, character, chars, got)
				}
			}
		}
	}
}
