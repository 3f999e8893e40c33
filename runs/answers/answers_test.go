package answers_test

import (
	"testing"
	"time"

	"aiv/runs/answers"
	"aiv/store/storetest"
)

// TestStoredFormNeverChanges: the stored form is read as the answer that was stored, and stays as it is, because rows are never
// rewritten.
func TestStoredFormNeverChanges(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, test := range []struct {
		name   string
		answer answers.Answer
		stored string
	}{
		{"the least", answers.Answer{Citations: []answers.Citation{}, SearchQueries: []string{}, AnsweredAt: at},
			`{"text":"","citations":[],"search_queries":[],"model_version":null,"answered_at":"2026-01-02T03:04:05.000006Z"}`},
		{"all members", answers.Answer{
			Text: "a \"b\"\n\x01\u2028é<&>", Citations: []answers.Citation{
				{Position: 1, URL: "https://www.example.org/", Domain: "example.org", Title: new("\\")},
				{Position: 2, URL: "http://example.com", Domain: "example.com"},
			},
			SearchQueries: []string{"", "\t"}, ModelVersion: new(""), AnsweredAt: at, Searched: new(false), Truncated: true,
			Usage: &answers.Usage{InputTokens: new(int64(0)), Searches: new(int64(answers.MaxUsage))},
		}, `{"text":"a \"b\"\n\u0001` + "\u2028" + `é<&>","citations":[{"position":1,"url":"https://www.example.org/","domain":"example.org","title":"\\"},` +
			`{"position":2,"url":"http://example.com","domain":"example.com","title":null}],"search_queries":["","\t"],"model_version":"",` +
			`"answered_at":"2026-01-02T03:04:05.000006Z","searched":false,"truncated":true,"usage":{"input_tokens":0,"output_tokens":null,"searches":1000000000}}`},
	} {
		stored := string(test.answer.AppendStored(nil))
		storetest.Equal(t, test.stored, stored, test.name)
		read, err := answers.Decode(stored)
		storetest.Must(t, err)
		storetest.Equal(t, &test.answer, read, test.name, ", read again")
	}
}

// TestDecodeToleratesOtherMembers: members may be missing, or unknown to this version.
func TestDecodeToleratesOtherMembers(t *testing.T) {
	for _, test := range []struct {
		stored string
		want   *answers.Answer // nil: an error
	}{
		{`{}`, &answers.Answer{}},
		{`{"searched":null,"more":[{}],"truncated":false,"usage":null,"text":"a"}`, &answers.Answer{Text: "a"}},
		{`{"usage":{"input_tokens":1,"pages":2}}`, &answers.Answer{Usage: &answers.Usage{InputTokens: new(int64(1))}}},
		{`{"answered_at":"now"}`, nil},
		{`"text"`, nil},
		{`{"text":`, nil},
	} {
		got, err := answers.Decode(test.stored)
		if (err != nil) != (test.want == nil) {
			t.Errorf("%s: %v", test.stored, err)
		}
		if err == nil {
			storetest.Equal(t, test.want, got, test.stored)
		}
	}
}
