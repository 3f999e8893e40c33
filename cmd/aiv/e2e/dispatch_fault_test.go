package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestFaultDispatch kills the dispatcher, PostgreSQL and workers while jobs are worked and brands change. No acknowledged
// settlement is lost, no job is settled by two attempts, and every run is completed. Each run has one event, and each of
// two webhooks gets it at least once, under one id. When it is received, the metrics of the run have its answers, of
// which none is missing and none is counted twice.
func TestFaultDispatch(t *testing.T) {
	t.Parallel()
	runs, kills, crashes, deaths, every := byForm(10, 500), byForm(2, 50), byForm(1, 10), byForm(0, 50), byForm(3, 10)
	c := storetest.NewCluster(t)
	_, key := customer(t, c.URL())
	serve := startServe(t, c.URL(), "-webhook-allow-private")
	webhooks := []*received{newReceived(t), newReceived(t)}
	for _, r := range webhooks {
		newWebhook(t, serve, key.Key, r.server.URL+"/hook")
	}
	m := newMeasurement(t, serve, key.Key, webhooks[0])
	checked := make(chan error, 1)
	go func() { checked <- m.checkRuns(t.Context(), runs, every) }()
	for n := range runs {
		serve.send(t, 202, "POST", "", key.Key, fmt.Sprint("run-", n), strings.Replace(testRun, `"repetitions":3`, `"repetitions":20`, 1))
	}
	jobs := 40 * runs
	f := newFleet(t, c.URL(), 1, "-webhook-allow-private")
	f.text, f.forgetful = brandText, 0.1
	f.begin(4)
	for n := range kills {
		next := jobs*n/(kills+2) + rand.IntN(20)
		f.until("the next kill", func(settled, _ int) bool { return settled > next })
		if n%(kills/crashes) == 0 {
			crash(t, c)
		}
		f.dispatch[0].Load().kill()
		f.dispatch[0].Store(startDispatch(t, c.URL(), "-webhook-allow-private"))
	}
	pool := open(t, c.URL())
	f.end(pool)
	if n := int(f.deaths.Load()); n < deaths {
		t.Errorf("%d workers were killed, want %d", n, deaths)
	}
	f.check("dispatch", pool)
	if !storetest.Long() { // else what killed processes had taken to deliver is delivered after 45 s
		storetest.Exec(t, pool, `UPDATE webhook_queues SET wake_at = now(), version = version + 1`)
	}
	must(t, <-checked)
	must(t, m.await("/v1/metrics", jobs, true)) // all that waited was recounted
	storetest.Equal(t, runs, number(t, pool, `SELECT count(*) FROM events`), "events of runs")
	for _, r := range webhooks {
		r.awaits(t, runs)
	}
	t.Logf("%d kills of the dispatcher, %d of PostgreSQL, %d changes of brands", kills, crashes, m.changes)
}

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
		total := 0 // with those that are empty, truncated, failed, canceled, pending, frozen
		for _, n := range got.Answers {
			total += n
		}
		if counted+waiting != jobs || total != jobs || got.Complete != (waiting == 0) || waiting > 0 && (!changed || time.Now().After(deadline)) {
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
	a, err := m.serve.patiently(context.Background(), method, address, m.key, "", body)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %s", method, address, a.status, a.body)
	}
	return a.body, err
}

// TestFaultSchedules kills one of two dispatchers around due times, while triggers slow the writes, and PostgreSQL.
// Each due time has one occurrence and one run, and each run is evaluated. The customer's cleanup verifies the
// database.
func TestFaultSchedules(t *testing.T) {
	t.Parallel()
	rounds, crashes := byForm(2, 60), byForm(1, 10)
	const schedules = 10
	c := storetest.NewCluster(t)
	_, key := customer(t, c.URL())
	serve := startServe(t, c.URL())
	var envelope struct{ Body json.RawMessage }
	must(t, json.Unmarshal([]byte(testRun), &envelope))
	at := time.Now().UTC().Add(12 * time.Hour).Format("15:04") // no due time but those that the test sets
	for n := range schedules {
		body := fmt.Sprintf(`{"name":"schedule %d","cadence":"daily","at":%q,"time_zone":"UTC","run":%s}`, n, at, envelope.Body)
		serve.send(t, 201, "POST", "/v1/schedules", key.Key, "", body)
	}
	c.Exec(t, "aiv", slowWrites)
	dispatch := []*process{startDispatch(t, c.URL()), startDispatch(t, c.URL())}
	base := time.Now().UTC().Truncate(time.Minute).Add(-time.Duration(rounds) * time.Minute)
	for n := range rounds {
		due := base.Add(time.Duration(n) * time.Minute) // all earlier than now; the following due time is half a day away
		c.Exec(t, "aiv", `UPDATE schedules SET next_at = '`+due.Format(time.RFC3339)+`'`)
		<-time.After(rand.N(400 * time.Millisecond)) // a moment around the transactions
		if n%(rounds/crashes) == rounds/crashes-1 {
			crash(t, c)
		}
		dispatch[n%2].kill()
		dispatch[n%2] = startDispatch(t, c.URL())
		waitUntil(t, c.URL(), `SELECT count(*) = 0 FROM schedules WHERE next_at <= now()`)
		for _, id := range regexp.MustCompile("run_[0-9a-z]{26}").FindAllString(serve.get(t, "?path=/v1/runs&status=queued", key.Key).body, -1) {
			storetest.Eventually(t, "the run is canceled", func() bool { // after a crash, the first request may find a lost connection
				a, err := serve.do(t.Context(), "POST", "/v1/runs/"+id+"/cancel", key.Key, "", "{}")
				must(t, err)
				return a.status == 200 || a.status == 409
			})
		}
	}
	waitUntil(t, c.URL(), `SELECT count(*) = 0 FROM schedule_occurrences WHERE evaluated_at IS NULL`)
	pool := open(t, c.URL())
	for _, query := range []string{
		`SELECT count(*) FROM schedule_occurrences`, `SELECT count(*) FROM measurement_runs`, `SELECT count(*) FROM usage_records`,
		`SELECT count(DISTINCT (schedule_id, due_at)) FROM schedule_occurrences WHERE status = 'created'`,
	} {
		storetest.Equal(t, schedules*rounds, number(t, pool, query), query)
	}
	t.Logf("schedules: %d due times, %d kills of a dispatcher, %d of PostgreSQL", schedules*rounds, rounds, crashes)
}

// slowWrites makes the transactions that carry out due times last.
const slowWrites = `
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(random() * 0.04); RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE INSERT ON measurement_runs FOR EACH ROW EXECUTE FUNCTION slow();
CREATE TRIGGER slow BEFORE INSERT ON usage_records FOR EACH ROW EXECUTE FUNCTION slow();
CREATE TRIGGER slow BEFORE INSERT ON schedule_occurrences FOR EACH ROW EXECUTE FUNCTION slow();
CREATE TRIGGER slow BEFORE UPDATE ON schedules FOR EACH ROW EXECUTE FUNCTION slow();`
