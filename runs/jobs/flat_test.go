package jobs

import (
	"crypto/md5"
	"slices"
	"testing"
	"time"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// md5ID returns the id that SQL makes by md5(text)::uuid.
func md5ID(text string) store.ID { return md5.Sum([]byte(text)) }

// The statements whose cost must not depend on how many jobs, runs and accounts there are, with arguments that fit
// them: of hot sessions, and of the plain sessions of a purge.
var (
	flatStatements = map[string][]any{
		readSupply:    {[]string{"p1"}, 10},
		claimable:     {nil},
		expiredLeases: nil,
		overdueLeases: nil,
		// Reads of a run.
		`SELECT ` + runs.RunningJobs("r.account_id") + ` FROM (
  SELECT md5($1)::uuid AS account_id, md5($2)::uuid AS id, 'running' AS status, 2000 AS total_jobs, 0 AS jobs_returned,
    0 AS jobs_completed, 0 AS jobs_failed) r`: {"a1", "r1"},
	}
	purgeStatements = map[string][]any{
		answeredRuns:  {time.Now().Add(-MinAnswersKept), time.Time{}, store.ID{}, store.ID{}, 10},
		deleteAnswers: {md5ID("a1"), md5ID("f1"), 1, 2000, time.Now().Add(-MinAnswersKept)},
	}
)

// fill inserts rows for so many accounts: a turn at both providers, and of each run two rows of the queue, a held and a
// waiting lease, a result, and rows of old and new runs that are final.
func (s *site) fill(accounts, runs int) {
	s.t.Helper()
	const ofEach = `FROM (SELECT md5('a' || a)::uuid AS account FROM generate_series(1, $1::integer) a) accounts,
  generate_series(1, $2::integer) r `
	s.exec(`
INSERT INTO job_turns (account_id, provider_code, turn)
SELECT md5('a' || a)::uuid, 'p' || p, a FROM generate_series(1, $1::integer) a, generate_series(1, 2) p`, accounts)
	for _, insert := range []string{`
INSERT INTO job_queue (account_id, run_id, model_no, provider_code, run_created_at, next_ordinal, last_ordinal)
SELECT account, md5('r' || r)::uuid, p, 'p' || p, now(), 1, 1000 ` + ofEach + `, generate_series(1, 2) p`, `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries,
  until, started_at, worker_id)
SELECT account, md5('l' || r)::uuid, 1, 1, 'p1', now(), state, 1, 0, now() + interval '1 h', now(), md5('')::uuid
` + ofEach + `, unnest('{held,waiting}'::text[]) state ON CONFLICT DO NOTHING`, `
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer)
SELECT account, md5('f' || r)::uuid, 1, 1, true, now(), now(), 'kept' ` + ofEach, `
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids,
  question_ids, repetitions, locale, country, language, total_jobs, started_at, finished_at, answers_deleted)
SELECT account, md5('f' || r || age)::uuid, md5('')::uuid, 'failed', 'grounded', 'AIVM-1.0', '{m1}', '{q1}', 1,
  'it-IT', 'IT', 'it', 1, now() - age, now() - age, age > interval '1 day'
` + ofEach + `, unnest('{1 h,30 days}'::interval[]) age WHERE r <= $2 / 10`} {
		s.exec(insert, accounts, runs)
	}
}

const readsAllTurns = "on a cluster a claim reads the turns of all accounts, see store/SCALING.md"

// claimedTables are the tables that claims and settlements read and write.
var claimedTables = []string{"job_arrivals", "job_queue", "job_turns", "job_leases", "job_results", "provider_minutes",
	"measurement_runs"}

// TestClaimReadsFewPages: the pages that a claim reads depend neither on how many accounts, runs and jobs wait, nor on
// how many leases are held or jobs are done. A purge reads only runs that may have old answers.
func TestClaimReadsFewPages(t *testing.T) {
	t.Parallel()
	notOnCitus(t, readsAllTurns)
	small, large := ownSite(t), ownSite(t)
	early := storetest.NewSession(t, large.pool)
	storetest.VacuumEmpty(t, large.pool, claimedTables...)
	for sql := range flatStatements {
		early.Plan(t, sql)
	}
	small.fill(12, 12)
	large.fill(100, 30)
	plain := func(s *site) *storetest.Session {
		return storetest.NewSession(t, storetest.Open(t, s.url, store.Open, 1))
	}
	for _, test := range []struct {
		statements   map[string][]any
		small, large *storetest.Session
	}{
		{flatStatements, storetest.NewSession(t, small.pool), storetest.NewSession(t, large.pool)},
		{flatStatements, storetest.NewSession(t, small.pool), early},
		{purgeStatements, plain(small), plain(large)},
	} {
		for sql, args := range test.statements {
			few, many := test.small.Explain(t, sql, args...), test.large.Explain(t, sql, args...)
			if !few.Flat(many) {
				t.Errorf("%+v where little waits, %+v where much does:\n%s", few, many, sql)
			}
		}
	}
}

// TestClaimsAreFlat: claiming and settling touch as many pages and rows of tables where 12 accounts have a few runs,
// where 100 accounts wait for 4 million jobs, where one has 1,000 runs, and where many runs have been worked and
// nothing was vacuumed. It is not parallel: while transactions of other tests are open, PostgreSQL keeps dead
// entries of indexes, in all databases.
func TestClaimsAreFlat(t *testing.T) {
	notOnCitus(t, readsAllTurns)
	few := load{accounts: 12, runs: 12, questions: 1, repetitions: 1}.touches(t)
	one := load{accounts: 1, runs: 40, questions: 1, repetitions: 1}.touches(t)
	for _, test := range []struct {
		what  string
		less  storetest.Cost
		large load
	}{
		{"many wait", few, load{accounts: 100, runs: 10, questions: 100, repetitions: 20, done: 3}},
		{"many are done", few, load{accounts: 12, runs: 12, questions: 1, repetitions: 1, done: 60}},
		{"one account has many runs", one, load{accounts: 1, runs: 1000, questions: 1, repetitions: 1}},
	} {
		more := test.large.touches(t)
		t.Logf("%s: %+v; where few wait, %+v", test.what, more, test.less)
		// Indexes have more levels, and dead entries are skipped.
		if more.Pages > 2*test.less.Pages || more.Rows > test.less.Rows+test.less.Rows/2 {
			t.Errorf("%s: %+v; where few wait, %+v", test.what, more, test.less)
		}
	}
}

// A load is how many runs of each account wait or are done.
type load struct{ accounts, runs, questions, repetitions, done int }

// touches returns what 5 claims and settlements of 10 jobs cost.
func (l load) touches(t *testing.T) storetest.Cost {
	t.Helper()
	s := ownSite(t)
	pool := storetest.Open(t, s.url+"&synchronous_commit=on", store.OpenHot, 1) // of which every statement is counted
	s.d = s.dispatcher(Config{Pool: pool})
	var accounts []store.ID
	for range l.accounts {
		accounts = append(accounts, s.account())
	}
	create := func(runs, questions, repetitions int) {
		of := slices.Repeat(accounts, runs)
		ids := make([]store.ID, len(of))
		for i := range ids {
			ids[i] = store.NewID()
		}
		const from = "FROM unnest($1::uuid[], $2::uuid[]) AS k (account, run)"
		s.exec(insertRuns("account", "run", from), of, ids, []string{"m1", "m2"}, questions, repetitions)
		for s.rows("job_arrivals") > 0 {
			s.sweep()
		}
	}
	work := func(limit, times int) {
		for range times {
			got := s.claim(limit)
			if len(got) != limit {
				t.Fatalf("%+v: %d jobs", l, len(got))
			}
			s.settle(Completed, got...)
		}
	}
	// The session keeps the plans that it makes while next to nothing waits.
	create(1, 1, 1)
	work(1, 1)
	storetest.VacuumEmpty(t, s.pool, claimedTables...)
	work(l.accounts*2-1, 1)
	create(l.done, 1, 1)
	work(120, l.accounts*2*l.done/120)
	create(l.runs, l.questions, l.repetitions)
	work(10, 1)
	before := touched(t, pool)
	work(10, 5)
	after := touched(t, pool)
	return storetest.Cost{Rows: after.Rows - before.Rows, Pages: after.Pages - before.Pages}
}

// touched returns what was read so far by the only connection of a pool.
func touched(t *testing.T, pool *pgxpool.Pool) (c storetest.Cost) {
	t.Helper()
	must(t, ignore(pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`)))
	must(t, pool.QueryRow(t.Context(), `
SELECT (SELECT sum(heap_blks_read + heap_blks_hit + COALESCE(idx_blks_read + idx_blks_hit, 0))
    FROM pg_statio_user_tables)::bigint,
  (SELECT sum(seq_tup_read + COALESCE(idx_tup_fetch, 0)) FROM pg_stat_user_tables)::bigint`).Scan(&c.Pages, &c.Rows))
	return c
}
