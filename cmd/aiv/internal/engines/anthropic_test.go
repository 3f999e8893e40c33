package engines

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/store/storetest"
)

// TestAnthropicConversations compares the requests for jobs with a golden file. One process executes the jobs of the
// file, which have a model and a country, one after the other. The lines that begin with "then" are responses of the API
// in place of a short answer, or its reset of the connection. What is sent follows ">", the status of the response "<",
// and the settlement "->".
func TestAnthropicConversations(t *testing.T) {
	t.Parallel()
	s := enginestest.New(t, "anthropic")
	x := newTest(t, "anthropic", s.URL)
	var got strings.Builder
	transport := x.transport
	x.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		check(t, err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		fmt.Fprintf(&got, "> %s\n", body)
		response, err := transport.RoundTrip(r)
		if err == nil {
			fmt.Fprintln(&got, "<", response.StatusCode)
		}
		return response, err
	})
	file := filepath.Join("testdata", "conversations", "anthropic.txt")
	text, err := os.ReadFile(file)
	check(t, err)
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if kind == ">" || kind == "<" || kind == "->" {
			continue
		}
		got.WriteString(line)
		first, rest, _ := strings.Cut(rest, " ")
		switch kind {
		case "then":
			if status, err := strconv.Atoi(first); err == nil {
				s.Then(enginestest.Answer(status, rest))
			} else {
				s.Then(reset(""))
			}
		case "job":
			job := testJob(first, true)
			job.Country = rest
			settlement, _ := outcome(t, x, job)
			fmt.Fprintln(&got, "->", settlement)
		}
	}
	golden(t, file, got.String())
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
