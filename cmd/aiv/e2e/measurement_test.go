package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"testing"
	"time"
)

// brandText is answerText, and a sentence that depends on the job and mentions brands or none.
func brandText(j job) string {
	h := fnv.New32a()
	h.Write([]byte(j.ID))
	sentences := []string{"Kovalt, then Ostrel.", "Ostrel One leads; Kovalt CRM follows.", "No brand is named.",
		"I could not find information about Kovalt.", "Halden is a bay.", "Kovalt and again Kovalt.", "Visit ostrel.io or Halden."}
	return answerText(j) + ". " + sentences[h.Sum32()%uint32(len(sentences))]
}

// A measurement checks the metrics of runs when their events are received, and changes brands.
type measurement struct {
	serve    *process
	key      string
	ids      []string // of brands
	received *received
	changes  int
}

// newMeasurement creates brands.
func newMeasurement(t *testing.T, serve *process, key string, events *received) *measurement {
	t.Helper()
	m := &measurement{serve: serve, key: key, received: events}
	for _, body := range []string{
		`{"kind":"own","name":"Kovalt","domains":["example.org"]}`, `{"kind":"competitor","name":"Ostrel","domains":["ostrel.io"]}`,
		`{"kind":"competitor","name":"Halden"}`,
	} {
		m.ids = append(m.ids, member(t, m.serve.send(t, http.StatusCreated, "POST", "/v1/brands", key, "", body).body, "id"))
	}
	return m
}

// checkRuns checks so many runs of 40 jobs, and changes a brand after each number of them.
func (m *measurement) checkRuns(ctx context.Context, runs, every int) (failed error) {
	seen := make(map[string]bool)
	for deadline := time.Now().Add(patience); len(seen) < runs; <-time.After(time.Millisecond) {
		for _, run := range m.received.runs() {
			if seen[run] {
				continue
			}
			seen[run], deadline = true, time.Now().Add(patience)
			if err := m.await("/v1/metrics?run_id="+run, 40, m.changes > 0); err != nil {
				failed = errors.Join(failed, err)
			}
			if len(seen)%every == 0 {
				failed = errors.Join(failed, m.change())
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return errors.Join(failed, fmt.Errorf("the end of %d of %d runs is received", len(seen), runs))
		}
	}
	return failed
}

// await reads metrics until no answer waits for a recount, which is allowed if a brand has changed. All answers must be
// counted.
func (m *measurement) await(address string, jobs int, changed bool) error {
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		body, err := m.request("GET", address, "")
		var got struct {
			Answers  map[string]int
			Complete bool
		}
		if err := errors.Join(err, json.Unmarshal([]byte(body), &got)); err != nil {
			return err
		}
		counted, waiting := got.Answers["ok"], got.Answers["recounting"]
		others := -counted - waiting // empty, truncated, failed, canceled, pending, frozen
		for _, n := range got.Answers {
			others += n
		}
		if counted+waiting != jobs || others != 0 || got.Complete != (waiting == 0) || waiting > 0 && (!changed || time.Now().After(deadline)) {
			return fmt.Errorf("%s: %s", address, body)
		}
		if waiting == 0 {
			return nil
		}
	}
}

// change changes a brand, by a change that may be repeated.
func (m *measurement) change() error {
	m.changes++
	bodies := []string{`{"aliases":["Kovalt CRM"]}`, `{"aliases":["Ostrel One"],"domains":["example.org/a"]}`, `{"status":"archived"}`,
		`{"aliases":[]}`, `{"aliases":[],"kind":"own"}`, `{"status":"active"}`, `{"domains":["www.example.org"]}`,
		`{"kind":"competitor","domains":[]}`, `{"aliases":["bay"]}`}
	n := m.changes % len(bodies)
	_, err := m.request("PATCH", "/v1/brands/"+m.ids[n%len(m.ids)], bodies[n])
	return err
}

// request repeats a request until it succeeds.
func (m *measurement) request(method, address, body string) (string, error) {
	a, err := patiently(func() (answer, error) { return m.serve.do(context.Background(), method, address, m.key, "", body) })
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %s", method, address, a.status, a.body)
	}
	return a.body, err
}
