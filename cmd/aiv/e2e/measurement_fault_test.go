package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/brands"
	"aiv/insights/brands/match"
	"aiv/store"
	"aiv/store/storetest"
)

// TestFaultMeasurement kills the dispatcher and PostgreSQL while jobs are worked and brands change. When run.completed
// of a run is received, the metrics of the run are those of its stored answers, of which none is missing and none is
// counted twice.
func TestFaultMeasurement(t *testing.T) {
	t.Parallel()
	runs, kills, crashes, every := byForm(10, 500), byForm(2, 50), byForm(1, 10), byForm(3, 10)
	c := storetest.NewCluster(t)
	account, key := customer(t, c.URL(), 1_000_000)
	m := newMeasurement(t, c, account, key.Key, every)
	f := newFleetOf(t, c.URL(), []string{key.Key}, runs, 20, 1, "-webhook-allow-private")
	f.text = brandText
	f.begin(4)
	f.killDispatcher(c, kills, crashes)
	pool := open(t, c.URL())
	f.end(pool)
	storetest.Exec(t, pool, deliverNow)
	m.wait(runs)
	f.check("measurement", pool)
	m.checkAll(f.total)
	t.Logf("measurement: %d runs of %d jobs; %d kills of the dispatcher, %d of PostgreSQL, %d changes of brands; %d runs were checked at their end, %d of them after a recount",
		runs, f.total, kills, crashes, m.changes, len(m.checked), m.recounted)
}

// brandText is answerText, and a sentence that depends on the job and mentions brands or none.
func brandText(j job) string {
	h := fnv.New32a()
	h.Write([]byte(j.ID))
	sentences := []string{"Kovalt, then Ostrel.", "Ostrel One leads; Kovalt CRM follows.", "No brand is named.", "I could not find information about Kovalt.",
		"Halden is a bay.", "Kovalt and again Kovalt.", "Visit ostrel.io or Halden."}
	return answerText(j) + ". " + sentences[h.Sum32()%uint32(len(sentences))]
}

// A measurement checks the metrics of runs when their end is received, and changes a brand after some of them.
type measurement struct {
	t       *testing.T
	serve   *process
	pool    *pgxpool.Pool
	account store.ID
	key     string
	every   int      // a brand is changed after as many runs
	ids     []string // of brands

	done chan struct{} // closed when the checks have ended

	mu        sync.Mutex
	received  []string // runs, in the order of their events
	seen      map[string]bool
	closed    bool
	checked   map[string]bool
	recounted int // runs that waited for a recount when they were checked
	changes   int
}

func newMeasurement(t *testing.T, c *storetest.Cluster, account, key string, every int) *measurement {
	t.Helper()
	id, err := store.ParseID("acct", account)
	must(t, err)
	m := &measurement{t: t, serve: startServe(t, c.URL(), "-webhook-allow-private"), pool: open(t, c.URL()), account: id, key: key, every: every,
		done: make(chan struct{}), seen: make(map[string]bool), checked: make(map[string]bool)}
	for _, body := range []string{
		`{"kind":"own","name":"Kovalt","domains":["example.org"]}`, `{"kind":"competitor","name":"Ostrel","domains":["ostrel.io"]}`,
		`{"kind":"competitor","name":"Halden"}`,
	} {
		a, err := m.serve.do(t.Context(), "POST", "/v1/brands", key, "", body)
		var made struct{ ID string }
		if err != nil || a.status != http.StatusCreated || json.Unmarshal([]byte(a.body), &made) != nil {
			t.Fatalf("creating a brand: %v %v", a, err)
		}
		m.ids = append(m.ids, made.ID)
	}
	receiver := httptest.NewServer(http.HandlerFunc(m.receive))
	t.Cleanup(receiver.Close)
	newWebhook(t, m.serve, key, receiver.URL+"/hook")
	go m.run()
	t.Cleanup(m.close)
	return m
}

// receive takes a delivery.
func (m *measurement) receive(w http.ResponseWriter, q *http.Request) {
	var event struct {
		Type string
		Data struct{ ID string }
	}
	if err := json.NewDecoder(q.Body).Decode(&event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if event.Type == "run.completed" && !m.seen[event.Data.ID] {
		m.seen[event.Data.ID] = true
		m.received = append(m.received, event.Data.ID)
	}
}

// next returns the next run whose end was received, or "" at the end.
func (m *measurement) next() (run string) {
	for {
		m.mu.Lock()
		closed := m.closed
		if len(m.received) > 0 {
			run, m.received = m.received[0], m.received[1:]
		}
		m.mu.Unlock()
		if run != "" || closed {
			return run
		}
		<-time.After(time.Millisecond)
	}
}

// run checks runs until the end.
func (m *measurement) run() {
	defer close(m.done)
	for run := m.next(); run != ""; run = m.next() {
		recounted, err := m.check(run)
		if err != nil {
			m.t.Errorf("%s: %v", run, err)
		}
		m.mu.Lock()
		m.checked[run] = true
		if recounted {
			m.recounted++
		}
		change := len(m.checked)%m.every == 0
		m.mu.Unlock()
		if change {
			m.change()
		}
	}
}

func (m *measurement) close() {
	m.mu.Lock()
	m.closed, m.received = true, nil
	m.mu.Unlock()
	<-m.done
}

// wait waits until all runs were checked.
func (m *measurement) wait(runs int) {
	m.t.Helper()
	storetest.Eventually(m.t, "the end of each run is received and checked", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.checked) == runs
	})
	m.close()
}

// change changes a brand, by a change that may be repeated.
func (m *measurement) change() {
	m.changes++
	bodies := []string{`{"aliases":["Kovalt CRM"]}`, `{"aliases":["Ostrel One"],"domains":["example.org/a"]}`, `{"status":"archived"}`,
		`{"aliases":[]}`, `{"aliases":[],"kind":"own"}`, `{"status":"active"}`, `{"domains":["www.example.org"]}`, `{"kind":"competitor","domains":[]}`, `{"aliases":["bay"]}`}
	n := m.changes % len(bodies)
	if _, err := m.request("PATCH", "/v1/brands/"+m.ids[n%len(m.ids)], bodies[n]); err != nil {
		m.t.Error(err)
	}
}

// request repeats a request until it succeeds.
func (m *measurement) request(method, address, body string) (string, error) {
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		a, err := m.serve.do(context.Background(), method, address, m.key, "", body)
		if err == nil && a.status == http.StatusOK {
			return a.body, nil
		}
		if err == nil && a.status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			return "", fmt.Errorf("%s %s: %d %s, %w", method, address, a.status, a.body, err)
		}
	}
}

// A count is the parts of a cell of metrics.
type count struct{ Count, Of int64 }

// brandCounts are the metrics of a brand.
type brandCounts struct {
	Brand         string `json:"brand_id"`
	Mentions      int64
	MentionRate   count `json:"mention_rate"`
	CitationRate  count `json:"citation_rate"`
	FirstRate     count `json:"first_rate"`
	ShareOfVoice  count `json:"share_of_voice"`
	CitationShare count `json:"citation_share"`
	Position      count
}

// runMetrics is a response of GET /v1/metrics.
type runMetrics struct {
	Revision int64 `json:"brand_revision"`
	Answers  struct{ OK, Empty, Truncated, Failed, Canceled, Pending, Recounting, Frozen int64 }
	Complete bool
	Data     []brandCounts
}

// check compares the metrics of a run that is final with its stored answers. Answers may wait for a recount only if a
// brand has changed since the run was started.
func (m *measurement) check(run string) (recounted bool, err error) {
	id, err := store.ParseID("run", run)
	if err != nil {
		return false, err
	}
	for deadline := time.Now().Add(patience); ; {
		body, err := m.request("GET", "/v1/metrics?run_id="+run, "")
		if err != nil {
			return recounted, err
		}
		var got runMetrics
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			return recounted, err
		}
		a := &got.Answers
		if sum := a.OK + a.Empty + a.Truncated + a.Failed + a.Recounting; sum != 40 || a.Pending+a.Canceled+a.Frozen != 0 || got.Complete != (a.Recounting == 0) {
			return recounted, fmt.Errorf("complete: %t, answers: %+v", got.Complete, *a)
		}
		if a.Recounting == 0 {
			return recounted, m.compare(run, &got)
		}
		recounted = true
		var changed bool
		err = m.pool.QueryRow(context.Background(), `
SELECT b.changed_at >= r.started_at FROM measurement_runs r JOIN brand_revisions b ON b.account_id = r.account_id WHERE r.account_id = $1 AND r.id = $2`,
			m.account, id).Scan(&changed)
		if err == nil && !changed || time.Now().After(deadline) {
			return recounted, fmt.Errorf("%d answers wait for a recount, changed: %t, %w", a.Recounting, changed, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// compare recounts the stored answers of a run.
func (m *measurement) compare(run string, got *runMetrics) error {
	body, err := m.request("GET", "/v1/runs/"+run+"/results?limit=100", "")
	if err != nil {
		return err
	}
	var results struct {
		Data []struct {
			Answer *struct {
				Text      string
				Citations []struct{ URL string }
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &results); err != nil {
		return err
	}
	active, err := m.brands()
	if err != nil {
		return err
	}
	if active.revision != got.Revision {
		return fmt.Errorf("the metrics are of revision %d, not %d", got.Revision, active.revision)
	}
	var of []match.Answer
	question := active.matcher.Question("?")
	for _, r := range results.Data {
		if r.Answer == nil {
			continue
		}
		a := match.Answer{Text: r.Answer.Text, Question: question}
		for _, c := range r.Answer.Citations {
			a.Citations = append(a.Citations, match.Citation{URL: c.URL})
		}
		of = append(of, a)
	}
	if diff := cmp.Diff(active.count(of), got.Data); diff != "" || int64(len(of)) != got.Answers.OK {
		return fmt.Errorf("%d stored answers, %d counted (-want +got):\n%s", len(of), got.Answers.OK, diff)
	}
	return nil
}

// activeBrands are those of the account at a revision.
type activeBrands struct {
	revision int64
	ids      []string
	matcher  *match.Matcher
}

// brands reads the active brands, which only this goroutine changes.
func (m *measurement) brands() (*activeBrands, error) {
	var active []brands.Brand
	var b activeBrands
	err := error(nil)
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		active, b.revision, err = brands.ReadActive(context.Background(), m.pool, m.account)
		if err == nil || time.Now().After(deadline) {
			break
		}
	}
	var compiled []match.Brand
	for i := range active {
		compiled, b.ids = append(compiled, active[i].Compiled()), append(b.ids, active[i].ID.Text("brand"))
	}
	b.matcher = match.Compile(compiled)
	return &b, err
}

// count counts answers one by one.
func (b *activeBrands) count(of []match.Answer) []brandCounts {
	counts := make([]brandCounts, len(b.ids))
	var voices, pages int64
	for i, id := range b.ids {
		counts[i].Brand = id
	}
	for _, a := range of {
		found := b.matcher.Match(a)
		pages += int64(len(found.Pages))
		for _, f := range found.Brands {
			c := &counts[f.Brand]
			c.Mentions += int64(f.Mentions)
			c.CitationShare.Count += int64(f.Citations)
			if f.Citations > 0 {
				c.CitationRate.Count++
			}
			if f.Mentions == 0 {
				continue
			}
			voices++
			c.MentionRate.Count++
			c.Position.Count += int64(f.Position)
			if f.Position == 1 {
				c.FirstRate.Count++
			}
		}
	}
	for i := range counts {
		c := &counts[i]
		mentioned := c.MentionRate.Count
		c.MentionRate.Of, c.CitationRate.Of, c.FirstRate.Of, c.Position.Of = int64(len(of)), int64(len(of)), mentioned, mentioned
		c.ShareOfVoice = count{mentioned, voices}
		c.CitationShare.Of = pages
	}
	return counts
}

// checkAll compares all runs again, after the last recount. Together they have the given number of answers.
func (m *measurement) checkAll(jobs int) {
	m.t.Helper()
	for run := range m.checked {
		if _, err := m.check(run); err != nil {
			m.t.Errorf("in the end, %s: %v", run, err)
		}
	}
	body, err := m.request("GET", "/v1/metrics", "")
	var got runMetrics
	if err := errors.Join(err, json.Unmarshal([]byte(body), &got)); err != nil || got.Answers.OK != int64(jobs) || !got.Complete {
		m.t.Errorf("in the end, %d of %d jobs are counted, %v: %s", got.Answers.OK, jobs, err, body)
	}
}
