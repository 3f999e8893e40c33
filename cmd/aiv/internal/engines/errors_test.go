package engines

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEachErrorHasItsRule: what each error of an API means for the job: the rows of errorRules, in their order. No
// redirect is followed.
func TestEachErrorHasItsRule(t *testing.T) {
	t.Parallel()
	object := func(kind, code, message string) string {
		return fmt.Sprintf(`{"error":{"type":%q,"code":%q,"message":%q}}`, kind, code, message)
	}
	google := func(status, message, details string) string {
		return fmt.Sprintf(`{"error":{"status":%q,"code":400,"message":%q,"details":[%s]}}`, status, message, details)
	}
	text := func(code, message string) string { return fmt.Sprintf(`{"code":%q,"error":%q}`, code, message) }
	const (
		secret, contract, configuration   = "unavailable secret", "unavailable contract", "unavailable configuration"
		noModel, refusedContent, rejected = "failed model_not_found", "failed content_refused", "failed invalid_request"
		late, broken, unread              = "retry provider_timeout", "retry provider_error", "retry invalid_response"
		throttledForNow                   = "throttled "
	)
	for _, test := range []struct{ responses, body, want string }{ // an engine and statuses
		{"openai 101 201 204", "", unread},
		{"openai 300 301 302 303 304 305 307 308", "", configuration},
		{"gemini 400", google("INVALID_ARGUMENT", "x", `{},{"reason":"API_KEY_INVALID"}`), secret},
		{"gemini 400", "[" + google("INVALID_ARGUMENT", "x", `{"reason":"API_KEY_INVALID"}`) + "]", secret},
		{"xai 400", text("x y", "incorrect API Key provided: ab"), secret},
		{"anthropic 400", object("invalid_request_error", "", "You have reached your specified API Usage Limits."), contract},
		{"anthropic 400", object("invalid_request_error", "", "Your credit balance is too low"), contract},
		{"anthropic 400", object("invalid_request_error", "", "Web search is not enabled"), configuration},
		{"gemini 400", google("FAILED_PRECONDITION", "x", ""), configuration},
		{"openai 400", object("", "model_not_found", "x"), noModel},
		{"perplexity 400", object("invalid_model", "", "x"), noModel},
		{"openai 400", object("", "content_policy_violation", "x"), refusedContent},
		{"openai 422", object("", "invalid_prompt", "x"), refusedContent},
		{"xai 403", text("", "Content violates Usage Guidelines."), refusedContent},
		{"chat 403", object("", "", "requires moderation"), refusedContent},
		{"openai 403", object("", "", "requires moderation"), secret},
		{"openai 401", object("", "billing_hard_limit", "x"), contract},
		{"xai 403", text("", "used all available credits"), contract},
		{"chat 403", `{"message":"Quota"}`, contract},
		{"openai 403", object("", "model_not_found", "x"), noModel},
		{"openai 403", object("", "unsupported_country_region_territory", "x"), configuration},
		{"openai 401", "<html>", secret},
		{"openai 403", object("", "", "x"), secret},
		{"openai 403", "<html>blocked</html>", broken},
		{"perplexity 401", `{"detail":[{"msg":"no credit"}]}`, contract},
		{"chat 400", `{"detail":"refused by moderation"}`, refusedContent},
		{"chat 402", "", contract},
		{"openai 404", object("", "", "The Model x does not exist"), noModel},
		{"perplexity 404", `{"detail":"Model x is not found"}`, noModel},
		{"perplexity 404", `{"detail":"Not Found"}`, configuration},
		{"openai 404", object("", "", "not found"), configuration},
		{"openai 405 410 415", "", configuration},
		{"openai 400 413 422", object("", "", "x"), rejected},
		{"openai 422", `{"detail":[{"msg":"x"}]}`, broken},
		{"chat 400", `{}`, rejected},
		{"openai 400", "<html>", broken},
		{"openai 408 504", "", late},
		{"openai 429", object("insufficient_quota", "", "x"), contract},
		{"chat 429", object("", "spend_limit", "x"), contract},
		{"openai 429", object("tokens", "rate_limit_exceeded", "You exceeded your current quota of requests"),
			throttledForNow},
		{"anthropic 429", `{"error":{"type":"rate_limit_error","message":"x","details":{"error_code":"enforced_spend_limit_reached"}}}`, contract},
		{"anthropic 429", object("rate_limit_error", "", "quota"), throttledForNow},
		{"gemini 429", google("RESOURCE_EXHAUSTED", "quota", `{"violations":[{"quotaValue":"5"},{"quotaValue":"0"}]}`),
			contract},
		{"gemini 429", google("RESOURCE_EXHAUSTED", "quota", `{"violations":[{"quotaValue":"5"}]}`), throttledForNow},
		{"xai 429", text("", "you have no Credits left"), contract},
		{"openai 498 503 529", "", throttledForNow},
		{"openai 409 418 500 502 599", "", broken},
	} {
		engine, statuses, _ := strings.Cut(test.responses, " ")
		for status := range strings.FieldsSeq(statuses) {
			n, err := strconv.Atoi(status)
			check(t, err)
			// A client that follows redirects, or reads where they lead, reports that it cannot.
			got, _ := settled(t, engine, true, canned{n, map[string]string{"Location": "://target"}, test.body})
			kind, word, _ := strings.Cut(test.want, " ")
			fits := strings.HasPrefix(got, `{"outcome":"`+kind+`"`) && strings.Contains(got, `"`+word)
			if !fits || kind != "throttled" && !strings.Contains(got, "("+status) {
				t.Errorf("%s %s %s: %s, want %s", engine, status, test.body, got, test.want)
			}
		}
	}
}

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
