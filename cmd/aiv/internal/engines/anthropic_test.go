package engines

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/store/storetest"
)

// TestAnthropicAdapts: a model that cannot be forced, and a country that the search does not take, change the request
// once for a job, and are remembered of this model and this country.
func TestAnthropicAdapts(t *testing.T) {
	t.Parallel()
	const (
		forced  = `"tool_choice":{"type":"tool","name":"web_search"}`
		offered = `"tool_choice":{"type":"auto"}`
		located = `"user_location":{"type":"approximate","country":"IT"}`
		search  = `"system":"Search the web before answering. `
		country = `The user is in the country with the ISO 3166-1 code `
	)
	s := enginestest.New(t, "anthropic")
	x := newTest(t, "anthropic", s.URL)
	for i, test := range []struct {
		model, country string
		requests       int
		want           []string // of the request that was accepted
		not            string
	}{
		{"forced-1", "IT", 1, []string{forced, located, `"system":"Answer in the language`}, offered},
		{"free-1", "IT", 2, []string{offered, located, search + "Answer"}, forced},
		{"free-1", "IT", 1, []string{offered, located}, forced},
		{"forced-1", "IE", 2, []string{forced, `"system":"` + country + "IE. Answer"}, "user_location"},
		{"free-1", "IE", 1, []string{offered, search + country}, "user_location"},
		{"free-2", "PL", 3, []string{offered, search + country}, "user_location"},
		{"forced-2", "IT", 1, []string{forced, located}, offered},
	} {
		job := testJob(test.model, true)
		job.Country = test.country
		got, attrs := outcome(t, x, job)
		if !strings.HasPrefix(got, completed) || attrs["requests"] != test.requests {
			t.Fatalf("%s in %s, job %d: %s after %v requests", test.model, test.country, i, got, attrs["requests"])
		}
		body := s.Requests()[i].Body
		lacking := func(part string) bool { return !strings.Contains(body, part) }
		if slices.ContainsFunc(test.want, lacking) || !lacking(test.not) {
			t.Errorf("%s in %s, job %d: %s, want %q and not %q", test.model, test.country, i, body, test.want, test.not)
		}
	}
}

// TestAnthropicAdaptsTogether: jobs in progress may each get the rejection; what counts is what the job itself sent.
func TestAnthropicAdaptsTogether(t *testing.T) {
	t.Parallel()
	x := newTest(t, "anthropic", enginestest.New(t, "anthropic").URL)
	storetest.AtOnce(8, func(int) {
		job := testJob("free-1", true)
		job.Country = "IE"
		if got, attrs := outcome(t, x, job); !strings.HasPrefix(got, completed) || attrs["requests"].(int) > 3 {
			t.Errorf("%s, %v", got, attrs)
		}
	})
}

// TestAnthropicAdaptsOnce: a rejection that comes again fails the job, as does one of a request that did not force.
func TestAnthropicAdaptsOnce(t *testing.T) {
	t.Parallel()
	x := newTest(t, "anthropic", "http://127.0.0.1:1")
	x.transport = canned{400, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"tool_choice: no"}}`}
	for i, want := range []int{2, 1} {
		got, attrs := outcome(t, x, testJob("m", true))
		if !strings.Contains(got, `"code":"invalid_request"`) || attrs["requests"] != want {
			t.Errorf("job %d: %s, %v", i, got, attrs)
		}
	}
}

// pausedBlocks have members that the engine does not know, and forms of numbers and texts that a decoder would change.
const pausedBlocks = `{"type":"text","text":"I search. \u003cb\u003e é"},{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"},"new":{"n":1.0,"big":12345678901234567890,"e":1e2}},` +
	`{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://a.example/","encrypted_content":"Eq/+="}]}`

func paused(blocks string) http.HandlerFunc {
	return enginestest.Answer(200, `{"model":"m-1","stop_reason":"pause_turn","content":[`+blocks+`],"usage":{"input_tokens":10,"output_tokens":5,"server_tool_use":{"web_search_requests":1}}}`)
}

// TestAnthropicContinues: a paused turn is continued with its blocks unchanged; texts, searches and costs add up.
func TestAnthropicContinues(t *testing.T) {
	t.Parallel()
	s := enginestest.New(t, "anthropic")
	second := `{"type":"text","text":"First. "}`
	s.Then(paused(pausedBlocks), paused(second), enginestest.Answer(200,
		`{"model":"m-2","stop_reason":"end_turn","content":[{"type":"text","text":"Last."}],"usage":{"input_tokens":100,"output_tokens":50,"server_tool_use":null}}`))
	got, attrs := outcome(t, newTest(t, "anthropic", s.URL), testJob("m", true))
	want := `{"outcome":"completed","answer":{"text":"First. Last.","citations":[],"search_queries":["q"],"model_version":"m-2","searched":true,"truncated":false,` +
		`"usage":{"input_tokens":120,"output_tokens":60,"searches":2}}}`
	if got != want || attrs["requests"] != 3 {
		t.Errorf("%v:\n got %s\nwant %s", attrs, got, want)
	}
	for i, blocks := range []string{"", pausedBlocks, pausedBlocks + "," + second} {
		tail := `"messages":[{"role":"user","content":"Wohin zum <Laufen> & Wandern?"}`
		choice := `"tool_choice":{"type":"tool","name":"web_search"}}`
		if i > 0 { // A turn that goes on cannot be forced.
			tail += `,{"role":"assistant","content":[` + blocks + `]}`
			choice = `"tool_choice":{"type":"auto"}}`
		}
		body := s.Requests()[i].Body
		if !strings.Contains(body, `"system":"Answer`) || !strings.Contains(body, tail+`],"tools":`) ||
			!strings.HasSuffix(body, choice) {
			t.Errorf("request %d: %s", i, body)
		}
	}
}

// TestAnthropicPausesWithoutEnd: a turn is continued eight times; what it has said by then is an answer that was cut. A turn
// without content cannot be continued.
func TestAnthropicPausesWithoutEnd(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"A": `"text":"AAAAAAAAA"`, "": `"code":"output_limit"`} {
		s := enginestest.New(t, "anthropic")
		for range 20 {
			s.Then(paused(fmt.Sprintf(`{"type":"text","text":%q}`, text)))
		}
		got, attrs := outcome(t, newTest(t, "anthropic", s.URL), testJob("m", true))
		if !strings.Contains(got, want) || attrs["requests"] != 9 || text != "" && !strings.Contains(got, `"truncated":true`) {
			t.Errorf("%q: %s, %v", text, got, attrs)
		}
	}
	s := enginestest.New(t, "anthropic")
	s.Then(paused(""))
	if got, _ := outcome(t, newTest(t, "anthropic", s.URL), testJob("m", true)); !strings.Contains(got, `"code":"empty_answer"`) {
		t.Errorf("a pause without content: %s", got)
	}
}
