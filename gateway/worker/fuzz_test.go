package worker

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store/storetest"
	"aiv/store/strictjson"
)

// FuzzSettle decodes any body as a settlement: of an accepted one each job is named once and has what its outcome
// needs, and the stored form of its answer is JSON that is read as the same answer.
func FuzzSettle(f *testing.F) {
	f.Add(completed(`"text":"t\u0001","search_queries":["\"",""],"answered_at":"2026-01-02T03:04:05.123456789+02:00",` +
		`"citations":[{"url":"https://USER@www.B\u00fccher.example.:8/x","title":null},{"url":"http://[::1]/","title":""}]`))
	f.Add(completed(`"model_version":"v","answered_at":"0001-01-01T00:00:00Z","searched":false,"truncated":true,` +
		`"usage":{"input_tokens":0,"output_tokens":1000000000,"searches":null}`))
	for _, job := range []string{
		`{"id":"a","attempt":1,"outcome":"failed","error":{"code":"content_refused","message":""}}`,
		`{"id":"a","attempt":2147483647,"outcome":"retry","error":{"code":"a","message":"m"},"after_seconds":3600}`,
		`{"id":"","attempt":1,"outcome":"throttled","after_seconds":null}`, `{"id":"a","attempt":0,"outcome":"released"}`,
		`{"id":"a","attempt":1,"outcome":"released"},{"id":"a","attempt":2,"outcome":"released"}`, `{"id":1,"outcome":"done"}`, `null`, ``,
	} {
		f.Add(`{"jobs":[` + job + `]}`)
	}
	f.Fuzz(func(t *testing.T, body string) {
		v, err := strictjson.Parse(body, jsonLimits)
		if err != nil {
			return
		}
		named, settlements, faults := readSettlements(v, now)
		for _, f := range faults {
			if !strings.HasPrefix(f.Pointer, "#") || f.Detail == "" {
				t.Errorf("a fault without a pointer or a text: %+v", f)
			}
		}
		if len(faults) > 0 {
			return
		}
		ids := make(map[string]bool)
		states := make([]jobs.Reply, len(named))
		for i, s := range settlements {
			ids[named[i].id] = true
			states[i].State = jobs.Settled
			checkSettlement(t, s)
		}
		if len(named) != len(settlements) || len(ids) != len(named) || len(ids) < 1 || len(ids) > maxJobs {
			t.Errorf("%s is read as %d settlements of %d jobs, %d ids", body, len(settlements), len(named), len(ids))
		}
		for _, leases := range []bool{false, true} {
			if b := appendStates(named, states, leases); !json.Valid(b) {
				t.Errorf("the response to %s is %s", body, b)
			}
		}
	})
}

// FuzzDomain: the domain of a plain URL equals the domain of the same URL after a general parser has read it, as it
// reads one with an upper-case scheme.
func FuzzDomain(f *testing.F) {
	for _, rest := range []string{
		"", "/", "www.example.com", "www.example.com/a?b=c", "example.com.", ".", "..", "www.", "www.com", "-a-.b/", "a:80/", "a@b/",
		"[::1]/", "a/%2", "a/%20", "a?b", "a#b", "a/#%", "a/\x7f", "a/ b", "A.example/", "b\u00fccher.example/", "a\uff0eb/", "a//b",
		"a/\u00e9", "a\\b", "a b/", "a/\n", "www.www.a/",
	} {
		f.Add(rest)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		for _, scheme := range []string{"http", "https"} {
			got, ok := Domain(scheme + "://" + rest)
			want, wantOK := Domain(strings.ToUpper(scheme) + "://" + rest)
			if got != want || ok != wantOK {
				t.Errorf("%s://%q: %q, %t, want %q, %t", scheme, rest, got, ok, want, wantOK)
			}
		}
	})
}

// checkSettlement checks what the outcome of a settlement requires, and what is stored of an answer. The golden files
// of the worker interface show its bounds.
func checkSettlement(t *testing.T, s jobs.Settlement) {
	t.Helper()
	fails := s.Outcome == jobs.Failed || s.Outcome == jobs.Retry || s.Outcome == jobs.Unavailable
	pauses := s.Outcome == jobs.Retry || s.Outcome == jobs.Throttled
	if (s.Answer != nil) != (s.Outcome == jobs.Completed) || (s.ErrorCode != "") != fails ||
		s.ErrorMessage != "" && !fails || s.After != 0 && !pauses {
		t.Errorf("a settlement with the wrong members: %+v", s)
	}
	if s.Answer == nil {
		return
	}
	stored := string(s.Answer.AppendStored(nil))
	if !json.Valid([]byte(stored)) || !utf8.ValidString(stored) || strings.ContainsRune(stored, 0) {
		t.Fatalf("the stored form is not JSON: %q", stored)
	}
	read, err := answers.Decode(stored)
	storetest.Must(t, err)
	micros := *s.Answer
	micros.AnsweredAt = micros.AnsweredAt.Truncate(time.Microsecond)
	storetest.Equal(t, &micros, read, "what is read of the stored form")
	for i, c := range s.Answer.Citations {
		beyond := strings.ContainsFunc(c.Domain, func(r rune) bool { return r <= ' ' || r >= 0x7f || r >= 'A' && r <= 'Z' })
		if c.Position != i+1 || c.URL == "" || c.Domain == "" || beyond || strings.HasSuffix(c.Domain, "..") {
			t.Errorf("citation %d: %+v", i, c)
		}
	}
}
