package jobs_test

import (
	"testing"
	"time"

	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TestClaimReadsFewPages: the pages that a claim reads depend neither on how many accounts, runs and jobs wait, nor on how many
// leases are held or jobs are done. A purge reads only runs that may have old answers.
func TestClaimReadsFewPages(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about the plans of PostgreSQL: on a cluster a claim reads the turns of all accounts, see store/SCALING.md")
	small, large := newSiteAt(t, storetest.URL(t)), newSiteAt(t, storetest.URL(t))
	fill := func(s *site, accounts, runs int) {
		s.exec(t, `
INSERT INTO job_turns (account_id, provider_code, turn)
  SELECT md5('a' || a)::uuid, 'p' || p, a FROM generate_series(1, $1::integer) a, generate_series(1, 2) p`, accounts)
		s.exec(t, `
INSERT INTO job_queue (account_id, run_id, model_no, provider_code, run_created_at, next_ordinal, last_ordinal)
  SELECT md5('a' || a)::uuid, md5('r' || r)::uuid, p, 'p' || p, now(), 1, 1000
  FROM generate_series(1, $1::integer) a, generate_series(1, $2::integer) r, generate_series(1, 2) p`, accounts, runs)
		s.exec(t, `
INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until, started_at, worker_id)
  SELECT md5('a' || a)::uuid, md5('l' || r)::uuid, 1, 1, 'p1', now(), state, 1, 0, now() + interval '1 h', now(), md5('')::uuid
  FROM generate_series(1, $1::integer) a, generate_series(1, $2::integer) r, unnest('{held,waiting}'::text[]) state
  ON CONFLICT DO NOTHING`, accounts, runs)
		s.exec(t, `
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer)
  SELECT md5('a' || a)::uuid, md5('f' || r)::uuid, 1, 1, true, now(), now(), 'kept'
  FROM generate_series(1, $1::integer) a, generate_series(1, $2::integer) r`, accounts, runs)
		s.exec(t, `
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs, started_at, finished_at, answers_deleted)
  SELECT md5('a' || a)::uuid, md5('f' || r || age)::uuid, md5('')::uuid, 'failed', 'grounded', 'AIVM-1.0', '{m1}', '{q1}', 1,
    'it-IT', 'IT', 'it', 1, now() - age, now() - age, age > interval '1 day'
  FROM generate_series(1, $1::integer) a, generate_series(1, $2::integer / 10) r, unnest('{1 h,30 days}'::interval[]) age`, accounts, runs)
	}
	early := storetest.NewSession(t, large.pool)
	storetest.VacuumEmpty(t, large.pool, "job_arrivals", "job_queue", "job_turns", "job_leases", "job_results", "measurement_runs")
	for sql := range jobs.FlatStatements {
		early.Plan(t, sql)
	}
	fill(small, 12, 12)
	fill(large, 100, 30)
	background := func(s *site) *pgxpool.Pool {
		pool, err := store.OpenPlain(t.Context(), s.pool, 1)
		must(t, err)
		t.Cleanup(pool.Close)
		return pool
	}
	for _, test := range []struct {
		statements   map[string][]any
		small, large *storetest.Session
	}{
		{jobs.FlatStatements, storetest.NewSession(t, small.pool), storetest.NewSession(t, large.pool)},
		{jobs.FlatStatements, storetest.NewSession(t, small.pool), early},
		{jobs.PurgeStatements, storetest.NewSession(t, background(small)), storetest.NewSession(t, background(large))},
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
	notOnCitus(t, "about the pages that PostgreSQL reads: on a cluster a claim reads the turns of all accounts, see store/SCALING.md")
	measure := func(what string, accounts, runs, questions, repetitions, done int) (pages, rows int) {
		s := newSiteAt(t, storetest.URL(t))
		pool, err := store.OpenHot(t.Context(), s.url+"&synchronous_commit=on", 1) // of which every statement is counted
		must(t, err)
		t.Cleanup(pool.Close)
		d := jobs.New(jobs.Config{Pool: pool, Timeout: time.Minute, MaxWaiting: 10})
		var ids []store.ID
		for range accounts {
			ids = append(ids, s.account(t))
		}
		create := func(runs, questions, repetitions int) {
			s.exec(t, `
WITH run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs)
  SELECT a, gen_random_uuid(), a, 'grounded', 'AIVM-1.0', '{m1,m2}', ARRAY(SELECT 'q' || n FROM generate_series(1, $3::integer) n), $4::integer, 'it-IT', 'IT', 'it',
    2 * $3::integer * $4::integer
  FROM unnest($1::uuid[]) a, generate_series(1, $2::integer)
  RETURNING account_id, id
), arrival AS (`+jobs.EnqueueSQL+`) SELECT count(*) FROM run`, ids, runs, questions, repetitions)
			for s.count(t, `SELECT count(*) FROM job_arrivals`) > 0 {
				sweep(t, d)
			}
		}
		work := func(limit, times int) {
			for range times {
				got := claim(t, d, limit)
				if len(got) != limit {
					t.Fatalf("%s: %d jobs", what, len(got))
				}
				settle(t, d, jobs.Completed, got...)
			}
		}
		// The session keeps the plans that it makes while next to nothing waits.
		create(1, 1, 1)
		work(1, 1)
		storetest.VacuumEmpty(t, s.pool, "job_arrivals", "job_queue", "job_turns", "job_leases", "job_results", "provider_minutes", "measurement_runs")
		work(accounts*2-1, 1)
		create(done, 1, 1)
		work(120, accounts*2*done/120)
		create(runs, questions, repetitions)
		work(10, 1)
		pagesBefore, rowsBefore := touched(t, pool)
		work(10, 5)
		pages, rows = touched(t, pool)
		t.Logf("%s: %d pages and %d rows for 5 claims and settlements of 10 jobs", what, (pages - pagesBefore), (rows - rowsBefore))
		return pages - pagesBefore, rows - rowsBefore
	}
	compare := func(what string, pages, rows, morePages, moreRows int) {
		// Indexes have more levels, and dead entries are skipped.
		if morePages > 2*pages || moreRows > rows+rows/2 {
			t.Errorf("%s: %d pages and %d rows; where few wait, %d and %d", what, morePages, moreRows, pages, rows)
		}
	}
	pages, rows := measure("few wait", 12, 12, 1, 1, 0)
	p, r := measure("many wait", 100, 10, 100, 20, 3)
	compare("many wait", pages, rows, p, r)
	p, r = measure("many are done", 12, 12, 1, 1, 60)
	compare("many are done", pages, rows, p, r)
	pages, rows = measure("one account has few runs", 1, 40, 1, 1, 0)
	p, r = measure("one account has many runs", 1, 1_000, 1, 1, 0)
	compare("one account has many runs", pages, rows, p, r)
}

// TestFewSpans: a claim gets only the spans of fresh jobs that it may need. An account keeps its turn until its last
// job is handed out.
func TestFewSpans(t *testing.T) {
	t.Parallel()
	notOnCitus(t, "about the rows that PostgreSQL returns: on a cluster the statement has another form")
	s, d := start(t)
	a := s.account(t)
	for range 5 {
		s.createRun(t, a, []string{"m1"}, 10, 1)
	}
	sweep(t, d) // queues them
	for wanted, want := range map[int]int{1: 1, 9: 1, 10: 2, 11: 2, 20: 3, 49: 5, 100: 5} {
		if got, err := jobs.FreshSpans(t.Context(), s.pool, wanted); got != want || err != nil {
			t.Errorf("for %d jobs, %d spans are returned (%v), want %d", wanted, got, err, want)
		}
	}
	for left := 50; left > 0; left -= 10 {
		equal(t, 1, s.count(t, `SELECT count(*) FROM job_turns`), "turns with ", left, " jobs left")
		equal(t, 10, len(claim(t, d, 10)), "jobs with ", left, " left")
	}
	equal(t, 0, s.count(t, `SELECT count(*) FROM job_turns`), "turns at the end")
}

// touched returns how many pages and rows of tables and indexes were read so far, by the only connection of a pool.
func touched(t *testing.T, pool *pgxpool.Pool) (pages, rows int) {
	t.Helper()
	must(t, ignore(pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`)))
	must(t, pool.QueryRow(t.Context(), `
SELECT (SELECT sum(heap_blks_read + heap_blks_hit + COALESCE(idx_blks_read + idx_blks_hit, 0)) FROM pg_statio_user_tables)::bigint,
  (SELECT sum(seq_tup_read + COALESCE(idx_tup_fetch, 0)) FROM pg_stat_user_tables)::bigint`).Scan(&pages, &rows))
	return pages, rows
}
