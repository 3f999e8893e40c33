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
	"aiv/store/storetest"
)

// TestFaultMeasurement kills the dispatcher and PostgreSQL while jobs are worked and brands change. When run.completed
// of a run is received, the metrics of the run have its answers, of which none is missing and none is counted twice,
// and what is counted of each is the result of matching the stored answer again. The tests of package visibility
// show that metrics are what is counted.
func TestFaultMeasurement(t *testing.T) {
	t.Parallel()
	runs, kills, crashes, every := byForm(10, 500), byForm(2, 50), byForm(1, 10), byForm(3, 10)
	c := storetest.NewCluster(t)
	_, key := customer(t, c.URL(), 1_000_000)
	m := newMeasurement(t, c.URL(), key.Key, runs, every)
	f := newFleetOf(t, c.URL(), []string{key.Key}, runs, 20, 1, "-webhook-allow-private")
	f.text = brandText
	f.begin(4)
	f.killDispatcher(c, kills, crashes)
	pool := open(t, c.URL())
	f.end(pool)
	storetest.Exec(t, pool, deliverNow)
	must(t, <-m.checked)
	f.check("measurement", pool)
	must(t, m.await("/v1/metrics", f.total, func() error { return nil })) // all that waited was recounted
	t.Logf("measurement: %d runs of %d jobs; %d kills of the dispatcher, %d of PostgreSQL, %d changes of brands; "+
		"%d runs were recounted at their end", runs, f.total, kills, crashes, m.changes, len(m.recounted))
}

// brandText is answerText, and a sentence that depends on the job and mentions brands or none.
func brandText(j job) string {
	h := fnv.New32a()
	h.Write([]byte(j.ID))
	sentences := []string{"Kovalt, then Ostrel.", "Ostrel One leads; Kovalt CRM follows.", "No brand is named.", "I could not find information about Kovalt.",
		"Halden is a bay.", "Kovalt and again Kovalt.", "Visit ostrel.io or Halden."}
	return answerText(j) + ". " + sentences[h.Sum32()%uint32(len(sentences))]
}

// A measurement checks runs when their end is received, and changes a brand after some of them.
type measurement struct {
	serve    *process
	pool     *pgxpool.Pool
	key      string
	ids      []string  // of brands
	received *received // events
	checked  chan error

	changes   int
	recounted map[string]bool // runs that waited for a recount when they were checked
}

// newMeasurement creates brands, and checks so many runs. A brand is changed after each number of them.
func newMeasurement(t *testing.T, url, key string, runs, every int) *measurement {
	t.Helper()
	m := &measurement{serve: startServe(t, url, "-webhook-allow-private"), pool: open(t, url), key: key,
		received: newReceived(t), checked: make(chan error, 1), recounted: make(map[string]bool)}
	for _, body := range []string{
		`{"kind":"own","name":"Kovalt","domains":["example.org"]}`, `{"kind":"competitor","name":"Ostrel","domains":["ostrel.io"]}`,
		`{"kind":"competitor","name":"Halden"}`,
	} {
		m.ids = append(m.ids, member(t, m.serve.send(t, http.StatusCreated, "POST", "/v1/brands", key, "", body).body, "id"))
	}
	newWebhook(t, m.serve, key, m.received.server.URL+"/hook")
	go func() { m.checked <- m.run(t.Context(), runs, every) }()
	return m
}

func (m *measurement) run(ctx context.Context, runs, every int) (failed error) {
	seen := make(map[string]bool)
	for deadline := time.Now().Add(patience); len(seen) < runs; {
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
		<-time.After(time.Millisecond)
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
	m.recounted[run] = true
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
