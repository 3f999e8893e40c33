package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/limits"
	"aiv/runs"
	"aiv/runs/answers"
	"aiv/store/storetest"
)

// TestAnswerCharacters: a tool cuts texts between characters, and marks those that it cuts.
func TestAnswerCharacters(t *testing.T) {
	for _, character := range []string{"x", "è", "日", "😀", "\n"} {
		for cut, want := range map[[2]int]string{{0, 5}: "0 false 0", {5, 5}: "5 false 0", {6, 5}: "5 true 6", {600, 5}: "5 true 600",
			{6, 600}: "6 false 0", {6, 0}: "0 true 6", {0, 0}: "0 false 0", {6, -1}: "6 false 0"} { // characters, and how many stay
			var got struct {
				Text       string
				Truncated  bool `json:"text_truncated"`
				Characters int  `json:"text_characters"`
			}
			must(t, json.Unmarshal(appendAnswer(nil, &answers.Answer{Text: strings.Repeat(character, cut[0])}, cut[1]), &got))
			text := fmt.Sprint(strings.Count(got.Text, character), " ", got.Truncated, " ", got.Characters)
			if text != want || strings.Trim(got.Text, character) != "" {
				t.Errorf("%d times %q cut to %d: %+v", cut[0], character, cut[1], got)
			}
		}
	}
}

// TestCSVFields: texts are quoted where RFC 4180 requires it. The golden file shows whole lines.
func TestCSVFields(t *testing.T) {
	for text, want := range map[string]string{"=1+1": "=1+1", "A, B": `"A, B"`, `A "B"`: `"A ""B"""`,
		"two\r\nlines": "\"two\r\nlines\"", "\n": "\"\n\"", "\r": "\"\r\""} {
		storetest.Equal(t, want, string(appendField(nil, text)), text)
	}
}

// TestUsageDocument: a month is a month of UTC in any time zone of the process, and a quota that was lowered
// leaves nothing.
func TestUsageDocument(t *testing.T) {
	month := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	got := newUsageDocument(runs.MonthlyUsage{Month: month.In(time.FixedZone("", -3600)), Jobs: 10}, new(int64(9)))
	if got.Month != "2026-11" || *got.Quota.Remaining != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestSecondsLeft: clients that wait so long do not come back before the end of the window. The clock may pass the end
// while it is read.
func TestSecondsLeft(t *testing.T) {
	for left, want := range map[time.Duration]int{-time.Second: 1, 0: 1, 1: 1, time.Second: 1, time.Second + 1: 2, time.Minute: 60} {
		storetest.Equal(t, want, secondsLeft(&limits.Window{Left: left}), left)
	}
}
