package engines

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMessagesHaveNoProse: a message has one sentence, the status, and what else is one word; no prose, and so no part of a key.
func TestMessagesHaveNoProse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ body, source, detail string }{
		{`{"error":{"type":"a_type","code":"a.code-1","message":"Some\n  prose."}}`, "400 a_type a.code-1", "Some prose."},
		{`{"error":{"type":"a type","code":400,"message":"` + strings.Repeat("é", 400) + `"}}`, "400 400", strings.Repeat("é", 300)},
		{`{"error":{"type":null,"code":null,"message":"You asked: Wohin zum <Laufen> & Wandern?"}}`, "400", "You asked: [question]"},
		// APIs quote the request, as JSON or as Python writes it, and gateways quote that again.
		{`{"error":{"message":"Rejected: {\"input\":\"Wohin zum \\u003cLaufen\\u003e \\u0026 Wandern?\",\"path\":\"C:\\\\a\"}"}}`, "400",
			`Rejected: {"input":"[question]","path":"C:\a"}`},
		{`{"error":{"message":"{\"it\\\\'s\":\"\\\"Wohin zum \\\\u003CLaufen\\\\u003E & Wandern?\\\"\"}"}}`, "400", `{"it's":""[question]""}`},
		{`{"error":{"message":"{'input': \"Wohin zum \\x3cLaufen\\x3e & Wandern?\", 'a': '\\x'}"}}`, "400", `{'input': "[question]", 'a': 'x'}`},
		{`{"error":{"message":"\"not\" \\u0077ithin C:\\users, \\ud83d"}}`, "400", `"not" \u0077ithin C:\users, \ud83d`},
	} {
		got, attrs := settled(t, "openai", true, canned{400, map[string]string{"X-Request-Id": "req_1"}, test.body})
		settles := `{"outcome":"failed","error":{"code":"invalid_request","message":"The API rejected the request. (` + test.source + `)"}}`
		if got != settles {
			t.Errorf("got %s, want %s", got, settles)
		}
		delete(attrs, "ms")
		want := map[string]any{"model": "m", "requests": 1, "status": 400, "provider_request_id": "req_1", "detail": test.detail}
		if diff := cmp.Diff(want, attrs); diff != "" {
			t.Errorf("attributes (-want +got):\n%s", diff)
		}
	}
	// An API repeats parts of keys in what it says about them, also within a response.
	const ofKey = `{"code":403,"message":"moderation of key-12"}`
	const noCredit = `{"message":"no credit for key-12"}`
	for _, c := range []canned{{401, nil, ofKey}, {401, nil, noCredit}, {403, nil, ofKey}, {200, nil, `{"error":` + ofKey + `}`}} {
		if got, attrs := settled(t, "chat", true, c); attrs["detail"] != nil {
			t.Errorf("%d: %s, %v", c.status, got, attrs)
		}
	}
}

// TestRetryAfter: for how long an API asks not to be called.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const date = "Wed, 25 Nov 2026 15:00:00 GMT"
	google := func(details string) string { return `{"error":{"message":"x","details":[` + details + `]}}` }
	for _, test := range []struct {
		engine string
		header string // names and values by line
		body   string
		want   int // seconds; 0: null
	}{
		{"openai", "", "", 0},
		{"openai", "Retry-After-Ms: 1500\nRetry-After: 9", "", 2},
		{"openai", "Retry-After-Ms: x\nRetry-After: 9", "", 9},
		{"openai", "Retry-After: 0.2", "", 1},
		{"openai", "Retry-After: 86400", "", 3600},
		{"openai", "Retry-After: -1\nX-Ratelimit-Remaining-Tokens: 0\nX-Ratelimit-Reset-Tokens: 6m0s", "", 360},
		{"openai", "Retry-After: Wed, 25 Nov 2026 15:00:40 GMT\nDate: " + date, "", 40},
		{"openai", "Retry-After: Wed, 25 Nov 2026 15:00:40 GMT", "", 0},
		{"openai", "Retry-After: Inf", "", 0},
		{"openai", "X-Ratelimit-Remaining-Requests: 0\nX-Ratelimit-Reset-Requests: 20ms\nX-Ratelimit-Remaining-Tokens: 0\nX-Ratelimit-Reset-Tokens: 1m1.5s", "", 62},
		{"openai", "X-Ratelimit-Remaining-Requests: 3\nX-Ratelimit-Reset-Requests: 20s", "", 0},
		{"anthropic", "Date: " + date + "\nAnthropic-Ratelimit-Input-Tokens-Remaining: 0\nAnthropic-Ratelimit-Input-Tokens-Reset: 2026-11-25T15:00:30Z\n" +
			"Anthropic-Ratelimit-Requests-Remaining: 0\nAnthropic-Ratelimit-Requests-Reset: 2026-11-25T16:00:20+01:00", "", 30},
		{"anthropic", "Anthropic-Ratelimit-Requests-Remaining: 0\nAnthropic-Ratelimit-Requests-Reset: 2026-11-25T15:00:20Z", "", 0},
		{"gemini", "", google(`{"retryDelay":"34.4s"}`), 35},
		{"gemini", "", google(`{"violations":[{"quotaId":"XPerDayY"}]},{"retryDelay":"34s"}`), 3600},
		{"gemini", "Retry-After: 3", google(`{"retryDelay":"34.4s"}`), 3},
		{"openai", "", google(`{"retryDelay":"34.4s"}`), 0},
	} {
		headers := make(map[string]string)
		for line := range strings.Lines(test.header) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			headers[name] = value
		}
		want := `{"outcome":"throttled","after_seconds":null}`
		if test.want > 0 {
			want = fmt.Sprintf(`{"outcome":"throttled","after_seconds":%d}`, test.want)
		}
		if got, _ := settled(t, test.engine, true, canned{429, headers, test.body}); got != want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
