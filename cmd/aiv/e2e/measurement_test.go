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

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/counting"
	"aiv/store"
)

// brandText is answerText, and a sentence that depends on the job and mentions brands or none.
func brandText(j job) string {
	h := fnv.New32a()
	h.Write([]byte(j.ID))
	sentences := []string{"Kovalt, then Ostrel.", "Ostrel One leads; Kovalt CRM follows.", "No brand is named.", "I could not find information about Kovalt.",
		"Halden is a bay.", "Kovalt and again Kovalt.", "Visit ostrel.io or Halden."}
	return answerText(j) + ". " + sentences[h.Sum32()%uint32(len(sentences))]
}

// A measurement checks what is counted of the runs of which an event is received, and changes brands.
type measurement struct {
	serve    *process
	pool     *pgxpool.Pool
	key      string
	ids      []string // of brands
	received *received

	changes int
}

// newMeasurement creates brands.
func newMeasurement(t *testing.T, serve *process, pool *pgxpool.Pool, key string, events *received) *measurement {
	t.Helper()
	m := &measurement{serve: serve, pool: pool, key: key, received: events}
	for _, body := range []string{
		`{"kind":"own","name":"Kovalt","domains":["example.org"]}`, `{"kind":"competitor","name":"Ostrel","domains":["ostrel.io"]}`,
		`{"kind":"competitor","name":"Halden"}`,
	} {
		m.ids = append(m.ids, member(t, m.serve.send(t, http.StatusCreated, "POST", "/v1/brands", key, "", body).body, "id"))
	}
	return m
}

// checkRuns checks so many runs of 40 jobs when their events are received, and changes a brand after each number of
// them. What is counted must be the result of matching the stored answers again; the tests of package visibility show
// that metrics are what is counted.
func (m *measurement) checkRuns(ctx context.Context, runs, every int) (failed error) {
	seen := make(map[string]bool)
	for deadline := time.Now().Add(patience); len(seen) < runs; <-time.After(time.Millisecond) {
		for _, run := range m.received.runs() {
			if seen[run] {
				continue
			}
			seen[run], deadline = true, time.Now().Add(patience)
			err := m.await("/v1/metrics?run_id="+run, 40, func() error { return m.mayBeRecounted(ctx, run) })
			if len(seen)%every == 0 {
				err = errors.Join(err, m.verify(ctx), m.change())
			}
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", run, err))
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return errors.Join(failed, fmt.Errorf("the end of %d of %d runs is received", len(seen), runs))
		}
	}
	return failed
}

// await reads metrics until no answer waits for a recount, which mayWait judges. All answers must be counted.
func (m *measurement) await(address string, jobs int, mayWait func() error) error {
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		body, err := m.request("GET", address, "")
		var got struct {
			Answers  struct{ OK, Empty, Truncated, Failed, Canceled, Pending, Recounting, Frozen int }
			Complete bool
		}
		if err := errors.Join(err, json.Unmarshal([]byte(body), &got)); err != nil {
			return err
		}
		a := &got.Answers
		others := a.Empty + a.Truncated + a.Failed + a.Pending + a.Canceled + a.Frozen
		if a.OK+a.Recounting != jobs || others != 0 || got.Complete != (a.Recounting == 0) {
			return fmt.Errorf("%s: complete: %t, answers: %+v", address, got.Complete, *a)
		}
		if a.Recounting == 0 {
			return nil
		}
		if err := mayWait(); err != nil || time.Now().After(deadline) {
			return fmt.Errorf("%s: %d answers wait for a recount, %w", address, a.Recounting, err)
		}
	}
}

// mayBeRecounted: answers may wait for a recount only if a brand has changed since the run was started.
func (m *measurement) mayBeRecounted(ctx context.Context, run string) error {
	id, err := store.ParseID("run", run)
	if err != nil {
		return err
	}
	var changed bool
	err = m.pool.QueryRow(ctx, `
SELECT b.changed_at >= r.started_at FROM measurement_runs r JOIN brand_revisions b ON b.account_id = r.account_id
WHERE r.id = $1`, id).Scan(&changed)
	if err != nil && store.IsUnavailable(err) {
		return nil // PostgreSQL was killed meanwhile
	}
	if err == nil && !changed {
		err = errors.New("and no brand has changed")
	}
	return err
}

// verify compares what is counted of answers with the answers. It waits for a database that is away.
func (m *measurement) verify(ctx context.Context) error {
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		violations, err := store.Verify(ctx, m.pool, counting.Invariants())
		if len(violations) > 0 {
			return fmt.Errorf("%s: %v", violations[0].Invariant.Name, violations[0].Rows)
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// change changes a brand, by a change that may be repeated.
func (m *measurement) change() error {
	m.changes++
	bodies := []string{`{"aliases":["Kovalt CRM"]}`, `{"aliases":["Ostrel One"],"domains":["example.org/a"]}`, `{"status":"archived"}`,
		`{"aliases":[]}`, `{"aliases":[],"kind":"own"}`, `{"status":"active"}`, `{"domains":["www.example.org"]}`, `{"kind":"competitor","domains":[]}`, `{"aliases":["bay"]}`}
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
