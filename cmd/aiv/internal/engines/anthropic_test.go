package engines

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
)

// TestAnthropicAdapts: a model that cannot be forced, and a country that the search does not take, change the request
// once for a job, and are remembered.
func TestAnthropicAdapts(t *testing.T) {
	t.Parallel()
	const (
		forced  = `"tool_choice":{"type":"tool","name":"web_search"}`
		offered = `"tool_choice":{"type":"auto"}`
		search  = `Search the web before answering.`
		country = `The user is in the country with the ISO 3166-1 code `
	)
	for _, test := range []struct {
		name, model, country string
		want, not            []string // of the request that was accepted
		rejected             int      // requests of the first job
	}{
		{"forced", "claude-haiku-4-5", "IT", []string{forced, `"country":"IT"`}, []string{search, country}, 0},
		{"not forced", "free-1", "IT", []string{offered, `"country":"IT"`, search}, []string{country}, 1},
		{"country refused", "claude-haiku-4-5", "IE", []string{forced, country + "IE."}, []string{search, "user_location"}, 1},
		{"both", "free-1", "IE", []string{offered, search + " " + country + "IE."}, []string{"user_location"}, 2},
	} {
		s := enginestest.New(t, "anthropic")
		x := newTest(t, "anthropic", s.URL)
		job := testJob(test.model, true)
		job.Country = test.country
		for i, requests := range []int{1 + test.rejected, 1} { // what was rejected is remembered
			got, attrs := outcome(t, x, job)
			if !strings.HasPrefix(got, `{"outcome":"completed"`) || attrs["requests"] != requests {
				t.Errorf("%s, job %d: %s after %v requests, want %d", test.name, i, got, attrs["requests"], requests)
				continue
			}
			body := s.Requests()[i].Body
			for _, w := range test.want {
				if !strings.Contains(body, w) {
					t.Errorf("%s: the request lacks %s: %s", test.name, w, body)
				}
			}
			for _, n := range test.not {
				if strings.Contains(body, n) {
					t.Errorf("%s: the request has %s: %s", test.name, n, body)
				}
			}
		}
		other := testJob("claude-opus", true) // what is remembered is of this model and country
		outcome(t, x, other)
		if body := s.Requests()[2].Body; !strings.Contains(body, forced) || !strings.Contains(body, `"country":"IT"`) {
			t.Errorf("%s: another model: %s", test.name, body)
		}
	}
}

// TestAnthropicAdaptsTogether: jobs in progress may each get the rejection; what counts is what the job itself sent.
func TestAnthropicAdaptsTogether(t *testing.T) {
	t.Parallel()
	s := enginestest.New(t, "anthropic")
	x := newTest(t, "anthropic", s.URL)
	var jobs sync.WaitGroup
	for range 8 {
		jobs.Go(func() {
			job := testJob("free-1", true)
			job.Country = "IE"
			if got, attrs := outcome(t, x, job); !strings.HasPrefix(got, `{"outcome":"completed"`) || attrs["requests"].(int) > 3 {
				t.Errorf("%s, %v", got, attrs)
			}
		})
	}
	jobs.Wait()
}

// TestAnthropicAdaptsOnce: a rejection that comes again fails the job, as does one of a request that did not force.
func TestAnthropicAdaptsOnce(t *testing.T) {
	t.Parallel()
	rejection := enginestest.Answer(400, `{"type":"error","error":{"type":"invalid_request_error","message":"tool_choice: no"}}`)
	s := enginestest.New(t, "anthropic")
	s.Then(rejection, rejection, rejection)
	x := newTest(t, "anthropic", s.URL)
	for i, want := range []int{2, 1} {
		if got, attrs := outcome(t, x, testJob("m", true)); !strings.Contains(got, `"code":"invalid_request"`) || attrs["requests"] != want {
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
	requests := s.Requests()
	for i, blocks := range []string{"", pausedBlocks, pausedBlocks + "," + second} {
		var body struct {
			System   string
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
			Tool_choice struct{ Type string }
		}
		if err := json.Unmarshal([]byte(requests[i].Body), &body); err != nil {
			t.Fatal(err)
		}
		switch {
		case i == 0:
			if len(body.Messages) != 1 || body.Tool_choice.Type != "tool" {
				t.Errorf("the first request: %s", requests[0].Body)
			}
		case len(body.Messages) != 2 || body.Messages[1].Role != "assistant" || string(body.Messages[1].Content) != "["+blocks+"]" || body.Tool_choice.Type != "auto" ||
			strings.Contains(body.System, "Search"):
			t.Errorf("request %d: %s", i, requests[i].Body)
		}
	}
}

// TestAnthropicPausesWithoutEnd: a turn is continued eight times; what it has said by then is an answer that was cut.
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
}
