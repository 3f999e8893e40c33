package worker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/gateway/problem"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store/strictjson"

	"github.com/google/go-cmp/cmp"
)

// now is the database's time in these tests.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func parse(t testing.TB, body string) strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse(body, jsonLimits)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// completed is the body of a settlement of one answer. members replace or follow its members.
func completed(members string) string {
	answer := ""
	for _, member := range []string{`"text":""`, `"citations":[]`, `"search_queries":[]`, `"model_version":null`,
		`"answered_at":"2026-01-01T00:00:00Z"`} {
		if name, _, _ := strings.Cut(member, ":"); !strings.Contains(members, name+":") {
			answer += member + ","
		}
	}
	return `{"jobs":[{"id":"a","attempt":1,"outcome":"completed","answer":{` + strings.TrimSuffix(answer+members, ",") + `}}]}`
}

func repeated(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }

// long has a text of the greatest length for each of its names.
var long = strings.NewReplacer("CODE", "a"+strings.Repeat("9", 63), "MESSAGE", strings.Repeat("é", 2048),
	"TEXT", strings.Repeat("é", 128<<10), "URL", "https://a.b/"+strings.Repeat("é", 2036), "TITLE", strings.Repeat("é", 512),
	"QUERY", strings.Repeat("é", 512), "VERSION", strings.Repeat("é", 128))

// TestBoundsOfBodies: bodies at the bounds of their members are accepted. Bodies beyond them are refused with a
// pointer to each fault; most of these are in the golden files of the worker interface.
func TestBoundsOfBodies(t *testing.T) {
	t.Parallel()
	claim := func(body string) problem.Faults {
		_, f := readClaim(parse(t, body), nil)
		return f
	}
	settle := func(body string) problem.Faults {
		_, _, f := readSettlements(parse(t, body), now)
		return f
	}
	var jobs500 []string // 501 are in the golden files
	for n := range 500 {
		jobs500 = append(jobs500, fmt.Sprintf(`{"id":"%d","attempt":1,"outcome":"released"}`, n))
	}
	for _, test := range []struct {
		name     string
		read     func(string) problem.Faults
		body     string
		pointers string // answer: stands for #/jobs/0/answer/
	}{
		{"least claim", claim, `{"limit":1,"lease_seconds":10,"providers":[],"wait_seconds":0}`, ""},
		{"greatest claim", claim,
			`{"limit":500,"lease_seconds":900,"providers":[` + repeated(500, `"p"`) + `],"wait_seconds":30}`, ""},
		{"501 providers", claim, `{"limit":1,"lease_seconds":60,"providers":[` + repeated(501, `"p"`) + `],"wait_seconds":0}`,
			"#/providers"},
		{"greatest errors", settle, long.Replace(`{"jobs":[{"id":"a","attempt":1,"outcome":"retry","error":` +
			`{"code":"CODE","message":"MESSAGE"},"after_seconds":3600},` +
			`{"id":"b","attempt":2147483647,"outcome":"throttled","after_seconds":1}]}`), ""},
		{"500 jobs", settle, `{"jobs":[` + strings.Join(jobs500, ",") + `]}`, ""},
		{"a long code", settle, `{"jobs":[{"id":"c","attempt":1,"outcome":"failed","error":{"code":"` + strings.Repeat("a", 65) +
			`","message":""}}]}`, "#/jobs/0/error/code"},
		{"greatest answer", settle, long.Replace(completed(`"text":"TEXT","citations":[` +
			repeated(100, `{"url":"URL","title":"TITLE"}`) + `],"search_queries":[` + repeated(50, `"QUERY"`) +
			`],"model_version":"VERSION","answered_at":"0001-01-01T00:00:00Z",` +
			`"usage":{"input_tokens":0,"output_tokens":1000000000,"searches":null}`)), ""},
		{"members that are missing", settle, `{"jobs":[{"id":"a","attempt":1,"outcome":"completed","answer":{}},` +
			`{"id":"b","attempt":1,"outcome":"failed"},{"id":"c","attempt":1,"outcome":"failed","error":null}]}`,
			"answer:text answer:citations answer:search_queries answer:model_version answer:answered_at " +
				"#/jobs/1/error #/jobs/2/error"},
		{"an optional member beside missing ones", settle, `{"jobs":[{"id":"a","attempt":1,"outcome":"completed","answer":{"text":"",` +
			`"citations":[],"search_queries":[],"model_version":null,"usage":[]}}]}`, "answer:answered_at answer:usage"},
		{"long citations", settle, long.Replace(completed(`"citations":[{"url":"URL.","title":"TITLE."},{"title":null},1]`)),
			"answer:citations/0/url answer:citations/0/title answer:citations/1/url answer:citations/2"},
		{"answered in 5 minutes", settle, completed(`"answered_at":"2026-01-02T03:09:05Z"`), ""},
		{"answered later", settle, completed(`"answered_at":"2026-01-02T03:09:06Z"`), "answer:answered_at"},
		{"answered without a T", settle, completed(`"answered_at":"2026-01-01 00:00:00Z"`), "answer:answered_at"},
		{"answered before the year 1", settle, completed(`"answered_at":"0001-01-01T00:00:00+01:00"`), "answer:answered_at"},
	} {
		var pointers []string
		for _, f := range test.read(test.body) {
			pointers = append(pointers, f.Pointer)
		}
		got := strings.ReplaceAll(strings.Join(pointers, " "), "#/jobs/0/answer/", "answer:")
		if diff := cmp.Diff(test.pointers, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestAnswerIsRead: what is stored of an answer: the domains of its citations and its time in UTC are added.
func TestAnswerIsRead(t *testing.T) {
	t.Parallel()
	_, read, _ := readSettlements(parse(t, completed(`"text":"Ciao \"a\"\n\u0001","citations":[`+
		`{"url":"https://user@WWW.Bücher.example:8443/x?y#z","title":null},{"url":"http://www.com./","title":"<b>"}],`+
		`"search_queries":["scarpe"],"answered_at":"2026-01-02T03:04:05.123456789+02:00","searched":true,"truncated":true,`+
		`"usage":{"searches":0,"input_tokens":1000000000,"output_tokens":null}`)), now)
	want := []jobs.Settlement{{Attempt: 1, Outcome: jobs.Completed, Answer: &answers.Answer{
		Text: "Ciao \"a\"\n\x01", SearchQueries: []string{"scarpe"}, AnsweredAt: time.Date(2026, 1, 2, 1, 4, 5, 123456789, time.UTC),
		Citations: []answers.Citation{
			{Position: 1, URL: "https://user@WWW.Bücher.example:8443/x?y#z", Domain: "xn--bcher-kva.example"},
			{Position: 2, URL: "http://www.com./", Domain: "www.com", Title: new("<b>")},
		},
		Searched: new(true), Truncated: true,
		Usage: &answers.Usage{InputTokens: new(int64(1_000_000_000)), Searches: new(int64(0))},
	}}}
	if diff := cmp.Diff(want, read, cmp.AllowUnexported(jobs.Settlement{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
