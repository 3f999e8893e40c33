package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/checks"
	"aiv/gateway/httpserver"
	"aiv/gateway/worker"
	"aiv/insights"
	"aiv/insights/brands/match"
	"aiv/insights/events"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
	"aiv/limits"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"
	"aiv/store/task"
)

// fixture is a database with what the golden files speak of. testdata/golden/setup.sh makes the same on a deployment, with
// the same keys.
type fixture struct {
	pool   *pgxpool.Pool
	serves *pgxpool.Pool // the gateway's, if it is another one
	reads  *pgxpool.Pool // the gateway's for reads, if it is another one
	newID  func() store.ID
	url    string
	secret []byte       // of cursors
	log    *slog.Logger // nil: discards
	master *webhooks.Master
	keys   map[string]string

	accounts    map[string]store.ID
	credentials map[string]store.ID

	gateways []*Gateway // that gateway has returned
}

// goldenDatabase is filled by the first test that needs it.
var goldenDatabase storetest.Filled[*fixture]

func newFixture(t testing.TB) *fixture {
	t.Helper()
	url, filled := goldenDatabase.Copy(t, fillGolden)
	f := &fixture{newID: store.NewID, url: url, secret: filled.secret, master: filled.master, keys: maps.Clone(filled.keys),
		accounts: maps.Clone(filled.accounts), credentials: maps.Clone(filled.credentials)}
	f.pool = storetest.Open(t, url, store.OpenHot, 8)
	t.Cleanup(func() {
		for _, g := range f.gateways {
			n := len(g.readQueue.slots)
			for _, s := range []*share{&g.bodies, &g.pages, &g.writes, &g.readQueue.waiting} {
				s.mu.Lock()
				n += s.taken
				s.mu.Unlock()
			}
			if n != 0 {
				t.Errorf("requests that have ended hold %d bytes, connections or places", n)
			}
		}
	})
	return f
}

// keyLine matches a key of setup.sh: its name, account, scopes and rate limit.
var keyLine = regexp.MustCompile(`(?m)^key (\w+) "\$(?:\(fresh "golden )?([\w ]+?)"?\)?" "?([\w:$]+)"? (\d+)`)

// fillGolden fills a database with what the golden files speak of.
func fillGolden(t testing.TB, url string) *fixture {
	t.Helper()
	ctx := t.Context()
	pool := storetest.Open(t, url, store.OpenHot, 8)
	defer pool.Close()
	f := &fixture{pool: pool, newID: store.NewID, url: url, keys: make(map[string]string), accounts: make(map[string]store.ID), credentials: make(map[string]store.ID)}

	var err error
	f.secret, err = store.Secret(ctx, pool, "cursor")
	must(t, err)
	f.master, err = webhooks.OpenMaster(ctx, pool, "")
	must(t, err)
	admin := f.auth()
	must(t, admin.SetPlan(ctx, auth.Plan{Code: "golden", Features: []string{"api_access"}}))
	must(t, admin.SetPlan(ctx, auth.Plan{Code: "golden-web", Features: []string{"dashboard"}}))
	for _, key := range keyLine.FindAllStringSubmatch(readGolden(t, "setup.sh"), -1) {
		owner, plan, scopes := "golden "+strings.ReplaceAll(key[2], "_", " "), "golden", auth.Scopes
		if key[2] == "main" {
			owner = "golden"
		}
		if key[2] == "web" {
			plan = "golden-web"
		}
		if key[3] != "$all" {
			scopes = []string{key[3]}
		}
		if _, ok := f.accounts[owner]; !ok {
			account, err := admin.CreateAccount(ctx, owner, plan)
			must(t, err)
			f.accounts[owner] = account.ID
		}
		rate, err := strconv.Atoi(key[4])
		must(t, err)
		f.issue(t, key[1], owner, scopes, rate)
	}
	for _, name := range []string{"golden quota", "golden usage"} {
		_, err := admin.SetAccountQuota(ctx, f.accounts[name], true, new(int64(12)))
		must(t, err)
	}
	_, err = admin.RevokeKey(ctx, f.credentials["revoked"])
	must(t, err)
	_, err = admin.DisableKey(ctx, f.credentials["disabled"])
	must(t, err)
	f.exec(t, `UPDATE credentials SET expires_at = now() - interval '1 second' WHERE id = $1`, f.credentials["expired"])
	next, err := admin.RotateKey(ctx, f.credentials["rotated_old"], time.Hour, nil)
	must(t, err)
	f.keys["rotated_new"] = next.Key

	main, other := f.accounts["golden"].Text("acct"), f.accounts["golden other"].Text("acct")
	lines := strings.ReplaceAll(readGolden(t, "catalog.jsonl"), "{account:other}", other)
	catalogAdmin := &catalog.Admin{Pool: pool, Actor: "golden"}
	_, err = catalogAdmin.Import(ctx, strings.NewReader(lines), nil)
	must(t, err)
	for _, d := range catalog.Dependencies {
		must(t, catalogAdmin.SetDependency(ctx, "ready", d, true, "golden"))
		must(t, catalogAdmin.SetDependency(ctx, "worked", d, true, "golden"))
		if d != "contract" && d != "legal_approval" {
			must(t, catalogAdmin.SetDependency(ctx, "pending", d, true, "golden"))
		}
	}
	// Some recommendations and alerts are about a run.
	run := f.run(t, f.gateway(), f.keys["full"])
	lines = strings.NewReplacer("{account:main}", main, "{account:other}", other, "{run}", run).
		Replace(readGolden(t, "insights.jsonl"))
	insightsAdmin := &insights.Admin{Pool: pool, Actor: "golden", Events: EventData{}, Record: webhooks.RecordMany}
	_, err = insightsAdmin.Import(ctx, strings.NewReader(lines), nil)
	must(t, err)
	return f
}

func (f *fixture) auth() *auth.Admin {
	return &auth.Admin{Pool: f.pool, Actor: "golden"}
}

func (f *fixture) logger() *slog.Logger { return cmp.Or(f.log, slog.New(slog.DiscardHandler)) }

func (f *fixture) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := f.pool.Exec(t.Context(), sql, args...)
	must(t, err)
}

func (f *fixture) issue(t testing.TB, name, account string, scopes []string, rate int) {
	t.Helper()
	title := "golden " + name
	c, err := f.auth().CreateKey(t.Context(), f.accounts[account], auth.Terms{Name: &title, Scopes: scopes, RateLimit: &rate})
	must(t, err)
	f.keys[name], f.credentials[name] = c.Key, c.ID
}

// gateway returns a gateway on the fixture's database, as aiv serve makes it.
func (f *fixture) gateway() *Gateway {
	pool := cmp.Or(f.serves, f.pool)
	reads := cmp.Or(f.reads, pool)
	models := catalog.New(pool)
	g := New(Config{
		Limits: limits.New(limits.Config{Pool: pool, Timeout: time.Minute, MaxWaiting: 10_000,
			CatalogRevision: catalog.RevisionSQL}),
		Runs: runs.New(runs.Config{Pool: pool, Reads: reads, NewID: f.newID, Timeout: storetest.Patience, MaxWaiting: 10_000,
			Checks:  &checks.Registry{Checks: checks.Standard(), Catalog: models},
			Enqueue: jobs.EnqueueSQL, Finished: recordFinished}),
		Webhooks:  webhooks.New(webhooks.Config{Pool: reads, Master: f.master, NewID: f.newID}),
		Schedules: schedules.New(schedules.Config{Pool: reads, NewID: f.newID, Record: webhooks.Record, Events: EventData{}}),
		Questions: catalog.NewOwnQuestions(catalog.OwnConfig{Pool: reads, NewID: f.newID, NormalForm: match.NormalForm}),
		Catalog:   models, Reads: reads, MaxReads: int(reads.Config().MaxConns), MaxWaiting: 1000, CursorSecret: f.secret,
		Log:     f.logger(),
		NewID:   f.newID,
		Timeout: storetest.Patience,
		Metrics: NewMetrics(),
	})
	g.measureTime, g.readQueue.wait, g.readQueue.sharedTurn = storetest.Patience, storetest.Patience, storetest.Patience
	f.gateways = append(f.gateways, g)
	return g
}

// countEnded counts ended jobs, as aiv dispatch does.
func countEnded() func(context.Context, store.Tx, *pgx.Batch, []jobs.Ended) error {
	counter := newAnswers()
	return func(ctx context.Context, tx store.Tx, b *pgx.Batch, ended []jobs.Ended) error {
		all := make([]visibility.Job, len(ended))
		for i, e := range ended {
			all[i] = visibility.Job{Account: e.Key.Account, Run: e.Key.Run, Ordinal: e.Key.Ordinal}
			if e.Answer != nil {
				all[i].Answer = matchedAnswer(e.Answer)
			}
		}
		return counter.Count(ctx, tx, b, all)
	}
}

// recordFinished records the events of runs as aiv serve does.
func recordFinished(ctx context.Context, tx store.Tx, finished []runs.Run) error {
	causes := make([]events.Cause, len(finished))
	for i := range finished {
		r := &finished[i]
		causes[i] = events.Cause{AccountID: r.AccountID, ID: store.NewID(), Type: "run." + r.Status, SubjectID: r.ID, Data: EncodeRun(r)}
	}
	return webhooks.Record(ctx, tx, causes)
}

// target serves the fixture on a loopback port.
func (f *fixture) target(t testing.TB) *target {
	t.Helper()
	return &target{keys: f.keys, dial: listen(t, f.gateway())}
}

// serveWorkers serves the worker interface on the fixture's database, as aiv dispatch does, and gives the target
// workers: main, which may have the jobs of the model golden/worked, elsewhere, which may only have jobs of another
// provider, and revoked.
func (f *fixture) serveWorkers(t *testing.T, at *target) *jobs.Dispatcher {
	t.Helper()
	for name, provider := range map[string]string{"main": "worked", "elsewhere": "pending", "revoked": "worked"} {
		w, token, err := f.auth().CreateWorker(t.Context(), "golden "+name, []string{provider})
		must(t, err)
		at.keys["worker:"+name] = token
		if name == "revoked" {
			_, err := f.auth().RevokeWorker(t.Context(), w.ID)
			must(t, err)
		}
	}
	pool := f.as(t, schema.Dispatch)
	const timeout = time.Minute
	dispatcher := jobs.New(jobs.Config{Pool: pool, Timeout: timeout, MaxWaiting: 1000, Count: countEnded()})
	at.dialWorkers = listen(t, worker.New(worker.Config{Jobs: dispatcher, Workers: auth.NewWorkerLookup(pool, timeout, 100),
		NewID: store.NewID, Timeout: timeout, Log: f.logger(), Metrics: worker.NewMetrics()}))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { task.NewRunner(f.logger(), dispatcher.Tasks()).Run(ctx) })
	t.Cleanup(func() {
		stop()
		dispatcher.Stop()
		running.Wait()
	})
	return dispatcher
}

// listen serves on a loopback port until the test ends, and returns a function that connects to it.
func listen(t testing.TB, h http.Handler) (dial func(context.Context) (net.Conn, error)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	s := httpserver.New(h, slog.New(slog.DiscardHandler))
	s.ReadTimeout = storetest.Patience
	ended := make(chan error, 1)
	go func() { ended <- httpserver.Serve(ctx, s, l, time.Minute) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("shutting down: %v", err)
		}
	})
	return func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}
}

const smallRun = `{"model_ids":["golden/all"],"question_ids":["golden-q1"],"repetitions":1,` +
	`"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`

// ask sends a request to the gateway in-process.
func ask(g http.Handler, key, method, address, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, Base+address, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

// run creates a run of one job.
func (f *fixture) run(t testing.TB, g http.Handler, key string) (id string) {
	t.Helper()
	return create(t, g, key, "/v1/runs", smallRun)
}

// create sends a POST that succeeds, and returns the id in the response.
func create(t testing.TB, g http.Handler, key, address, body string) (id string) {
	t.Helper()
	w := ask(g, key, "POST", address, body)
	var created struct{ ID string }
	must(t, json.Unmarshal(w.Body.Bytes(), &created))
	if w.Code != http.StatusAccepted && w.Code != http.StatusCreated {
		t.Fatal(w.Body)
	}
	return created.ID
}

// faultyRows are rows that no request makes, by the fault: $1 is the account and $2 its key.
var faultyRows = map[string]struct{ account, sql string }{
	"hundred_brands": {"brands", `
		INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
		SELECT $1, gen_random_uuid(), i, 'competitor', 'Brand ' || i, '{}', '{}', '{}', false, 'active'
		FROM generate_series(1, 100) i WHERE $2::uuid IS NOT NULL`},
	"hundred_schedules": {"schedules", insertSchedules + `
		SELECT $1, gen_random_uuid(), 'Schedule ' || i, 'active', NULL, 'daily', 0, 'UTC', '{golden/all}', '{golden-q1}', 1,
			'grounded', 'it-IT', 'IT', 'it', 1000, now() + interval '1 day', $2, now(), now() FROM generate_series(1, 100) i`},
	"paused_by_an_operator": {"schedules", insertSchedules + `
		VALUES ($1, gen_random_uuid(), 'Paused', 'paused', 'operator', 'daily', 0, 'UTC', '{golden/all}', '{golden-q1}', 1,
			'grounded', 'it-IT', 'IT', 'it', 1000, NULL, $2, now(), now())`},
	"past_due_times": {"schedules", `
		WITH schedule AS (` + insertSchedules + `
			VALUES ($1, gen_random_uuid(), 'Due', 'active', NULL, 'daily', 0, 'UTC', '{golden/all}', '{golden-q1}', 1,
				'grounded', 'it-IT', 'IT', 'it', 1000, now() + interval '1 day', $2, now(), now()) RETURNING account_id, id)
		INSERT INTO schedule_occurrences
		SELECT account_id, id, now() - interval '9 days', now() - interval '2 days', 8, 'skipped', 'missed',
			'8 due times passed before they could be carried out.', NULL, now(), NULL FROM schedule`},
	"ten_thousand_questions": {"questions", `
		INSERT INTO own_questions (account_id, id, text, language, country, topic, tags, status)
		SELECT $1, 'question/' || n, 'Question ' || n || '?', 'en', 'US', 'numbers', '{}', 'archived'
		FROM generate_series(1, 10000) n WHERE $2::uuid IS NOT NULL`},
}

const insertSchedules = `
	INSERT INTO schedules (account_id, id, name, status, paused_reason, cadence, at_minute, time_zone, model_ids,
		question_ids, repetitions, measurement_type, locale, country, language, min_change, next_at, credential_id,
		created_at, updated_at)`

// broken serves the fixture with something broken.
func (f *fixture) broken(t *testing.T, fault string) *target {
	t.Helper()
	if rows, ok := faultyRows[fault]; ok {
		f.exec(t, rows.sql, f.accounts["golden "+rows.account], f.credentials[rows.account])
		return f.target(t)
	}
	switch fault {
	case "database_away":
		cmp.Or(f.serves, f.pool).Close()
	case "table_missing": // an unexpected error
		f.exec(t, `ALTER TABLE measurement_jobs RENAME TO elsewhere`)
	case "duplicate_in_progress": // the transaction of a concurrent duplicate that does not end
		tx := storetest.Begin(t, f.pool, `SET session_replication_role = replica`)
		_, err := tx.Exec(t.Context(), `
			INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer)
			VALUES ($1, 'POST', '/v1/runs', 'duplicate', sha256(''), $2, '')`, f.accounts["golden"], store.NewID())
		must(t, err)
		f.serves, err = store.OpenAnother(t.Context(), f.serves, 8, "lock_timeout", 500*time.Millisecond)
		must(t, err)
		t.Cleanup(f.serves.Close)
	case "no_request_may_wait":
		none := limits.New(limits.Config{Pool: f.pool, Timeout: time.Minute, CatalogRevision: catalog.RevisionSQL})
		return &target{keys: f.keys, dial: listen(t, bare(Config{Timeout: time.Minute, Limits: none}))}
	default:
		t.Fatalf("unknown fault %q", fault)
	}
	return f.target(t)
}

var must = storetest.Must

// parseRun returns the UUID of a run's id.
func parseRun(t testing.TB, text string) string {
	t.Helper()
	id, err := store.ParseID("run", text)
	must(t, err)
	return id.UUID()
}
