package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestFaultSchedules kills one of two dispatchers around due times, while triggers slow the writes, and PostgreSQL.
// Each due time has one occurrence and one run, and each run is evaluated. The customer's cleanup verifies the
// database.
func TestFaultSchedules(t *testing.T) {
	t.Parallel()
	rounds, crashes := byForm(2, 60), byForm(1, 10)
	const schedules = 10
	c := storetest.NewCluster(t)
	_, key := customer(t, c.URL(), 1_000_000)
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
		if n := number(t, pool, query); n != schedules*rounds {
			t.Errorf("%s: %d, want %d", query, n, schedules*rounds)
		}
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
