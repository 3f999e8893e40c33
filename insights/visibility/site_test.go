package visibility_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A site is a database with a catalog and an account, whose jobs are settled by package jobs and counted as in aiv
// dispatch.
type site struct {
	pool    *pgxpool.Pool // of hot sessions
	plain   *pgxpool.Pool
	account store.ID
	counter *visibility.Counter

	dispatcher *jobs.Dispatcher
	older      *jobs.Dispatcher // counts nothing, as releases before facts
}

// kept are databases without rows.
var kept storetest.Kept[*site]

func newSite(t testing.TB) *site {
	t.Helper()
	db := kept.Take(t, func(t testing.TB) *site {
		url := storetest.URL(t)
		return &site{pool: storetest.Open(t, url, store.OpenHot, 6), plain: storetest.Open(t, url, store.Open, 6)}
	}, func(db *site) error {
		storetest.CloseMost(db.pool)
		return storetest.Clear(db.plain, `visibility_recounts visibility_backlog visibility_facts brands brand_revisions
			job_attempts job_results job_leases job_holds job_turns job_queue job_arrivals usage_records account_months measurement_jobs
			measurement_run_models measurement_runs own_question_tags own_questions own_question_accounts question_tags questions models
			provider_dependencies providers credentials events audit_log accounts plans`, "")
	})
	s := &site{pool: db.pool, plain: db.plain}
	storetest.Exec(t, s.pool, `INSERT INTO plans (code, features) VALUES ('p', '{api_access}')`,
		`INSERT INTO providers (code, name) VALUES ('p1', 'One')`,
		`INSERT INTO provider_dependencies (provider_code, dependency, met, note)
SELECT 'p1', d, true, 'test' FROM unnest('{configuration,secret,contract,legal_approval}'::text[]) d`,
		`INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
SELECT 'm' || n, 'Model', 'p1', 'model-' || n, 'active', '{grounded}', true FROM generate_series(1, 3) n`)
	s.exec(t, `INSERT INTO questions (id, text, language, country, topic, tags, status)
VALUES ('q1', 'Which?', 'it', 'IT', 't', '{}', 'active')`)
	s.account = s.newAccount(t)
	s.counter = newCounter(s.plain)
	s.dispatcher, s.older = s.newDispatcher(t, s.counter), s.newDispatcher(t, nil)
	return s
}

// newRunningSite returns a site with a run of some jobs.
func newRunningSite(t testing.TB, jobs int) (s *site, run store.ID) {
	t.Helper()
	s = newSite(t)
	return s, s.createRun(t, simpleRun(jobs))
}

// newAccount adds an account with a credential of the same id.
func (s *site) newAccount(t testing.TB) store.ID {
	t.Helper()
	id := store.NewID()
	s.exec(t, `INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'a', 'p')`, id)
	s.exec(t, `INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes)
VALUES ($1, $1, 'c', 'aiv_live_00000000', sha256(uuid_send($1)), '{}')`, id)
	return id
}

func (s *site) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := s.plain.Exec(t.Context(), sql, args...)
	must(t, err)
}

func newCounter(pool *pgxpool.Pool) *visibility.Counter { return visibility.NewCounter(config(pool)) }

// config returns the configuration of a Counter that reads answers and questions as aiv dispatch does.
func config(pool *pgxpool.Pool) visibility.Config {
	return visibility.Config{
		Pool: pool, Questions: catalog.QuestionTexts,
		Answers: func(ctx context.Context, db store.Querier, account, run store.ID, ordinals []int32, each func([]visibility.Job) error) error {
			return jobs.EachAnswer(ctx, db, account, run, ordinals, func(found []jobs.Ended) error { return each(counted(found)) })
		},
		Ended: func(ctx context.Context, db store.Querier, account, run store.ID, after, last int32) (all []visibility.EndedJob, err error) {
			ended, err := jobs.ReadEnded(ctx, db, account, run, after, last)
			for _, e := range ended {
				all = append(all, visibility.EndedJob(e))
			}
			return all, err
		},
	}
}

// counted returns ended jobs as package visibility takes them.
func counted(ended []jobs.Ended) []visibility.Job {
	all := make([]visibility.Job, len(ended))
	for i, e := range ended {
		all[i] = visibility.Job{Account: e.Key.Account, Run: e.Key.Run, Ordinal: e.Key.Ordinal}
		all[i].Prepared, _ = e.Prepared.(*visibility.Prepared)
		if a := e.Answer; a != nil {
			all[i].Answer = &visibility.Answer{Text: a.Text, Version: a.ModelVersion, Searched: a.Searched, Truncated: a.Truncated}
			for _, c := range a.Citations {
				all[i].Answer.Cite(c.URL, c.Title)
			}
		}
	}
	return all
}

// newDispatcher returns a dispatcher that counts as aiv dispatch does, or nothing.
func (s *site) newDispatcher(t testing.TB, c *visibility.Counter) *jobs.Dispatcher {
	t.Helper()
	config := jobs.Config{Pool: s.pool, Timeout: time.Minute, MaxWaiting: 1000, LockWait: "1min"}
	if c != nil {
		config.Count = func(ctx context.Context, tx store.Tx, b *pgx.Batch, ended []jobs.Ended) error {
			return c.Count(ctx, tx, b, counted(ended))
		}
		config.Prepare = func(ended []jobs.Ended) (all []any) {
			for _, p := range c.Prepare(counted(ended)) {
				all = append(all, p)
			}
			return all
		}
	}
	d := jobs.New(config)
	t.Cleanup(d.Stop)
	return d
}

// A runSpec is what a run asks.
type runSpec struct {
	models, questions                   []string
	repetitions                         int
	country, language, measured, method string
	created                             time.Time
}

// simpleRun asks one model one question some times.
func simpleRun(repetitions int) runSpec {
	return runSpec{models: []string{"m1"}, questions: []string{"q1"}, repetitions: repetitions, country: "IT",
		language: "it", measured: "grounded", method: "AIVM-1.0", created: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
}

// createRun adds a queued run.
func (s *site) createRun(t testing.TB, r runSpec) store.ID {
	t.Helper()
	id := store.NewID()
	s.exec(t, `
WITH run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions,
    locale, country, language, total_jobs, created_at)
  SELECT $1, $2, $1, $3, $4, $5, $6, $7::integer, 'it-IT', $8, $9, cardinality($5::text[]) * cardinality($6::text[]) * $7::integer, $10
  RETURNING account_id, id
), arrival AS (`+jobs.EnqueueSQL+`) SELECT count(*) FROM run`,
		s.account, id, r.measured, r.method, r.models, r.questions, r.repetitions, r.country, r.language, r.created)
	return id
}

// claim claims jobs of all accounts.
func (s *site) claim(t testing.TB, limit int) (claimed []jobs.Job) {
	t.Helper()
	for len(claimed) < limit {
		more, err := s.dispatcher.Claim(t.Context(), &jobs.ClaimRequest{Worker: store.NewID(), Limit: min(100, limit-len(claimed)), Lease: time.Hour})
		must(t, err)
		if len(more) == 0 {
			break
		}
		claimed = append(claimed, more...)
	}
	return claimed
}

// answer claims a job for each answer and settles it.
func (s *site) answer(t testing.TB, d *jobs.Dispatcher, all ...*answers.Answer) {
	t.Helper()
	var settlements []jobs.Settlement
	for i, j := range s.claim(t, len(all)) {
		settlements = append(settlements, completed(j, all[i]))
	}
	settle(t, d, settlements...)
}

// texts returns n answers with a text.
func texts(n int, text string) []*answers.Answer {
	return slices.Repeat([]*answers.Answer{{Text: text}}, n)
}

// citing returns an answer that cites a page.
func citing(text, url string) *answers.Answer {
	return &answers.Answer{Text: text, Citations: []answers.Citation{{Position: 1, URL: url}}}
}

func completed(j jobs.Job, a *answers.Answer) jobs.Settlement {
	return jobs.Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: jobs.Completed, Answer: a}
}

func failed(j jobs.Job) jobs.Settlement {
	return jobs.Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: jobs.Failed, ErrorCode: "code", ErrorMessage: "message"}
}

// settle settles jobs, each of which must be held.
func settle(t testing.TB, d *jobs.Dispatcher, settlements ...jobs.Settlement) {
	t.Helper()
	replies, err := d.Settle(t.Context(), jobs.Reporter{}, settlements)
	must(t, err)
	for i, r := range replies {
		if r.State != jobs.Settled {
			t.Fatalf("job %v: %s", settlements[i].Key, r.State)
		}
	}
}

func named(kind, name string) brands.Change {
	return brands.Change{Kind: &kind, Name: &name, MatchCase: new(false)}
}

// createBrand adds a brand and returns its id.
func (s *site) createBrand(t testing.TB, kind, name string) store.ID {
	t.Helper()
	b, err := brands.Create(t.Context(), s.plain, s.account, store.NewID(), named(kind, name))
	must(t, err)
	return b.ID
}

func (s *site) changeBrand(t testing.TB, id store.ID, c brands.Change) {
	t.Helper()
	_, err := brands.Update(t.Context(), s.plain, s.account, id, c)
	must(t, err)
}

func alias(text string) brands.Change { return brands.Change{Aliases: []string{text}} }

// age makes jobs of a run as old as those whose answers purge deletes.
func (s *site) age(t testing.TB, run store.ID, ordinals ...int32) {
	t.Helper()
	s.exec(t, `
UPDATE measurement_runs SET started_at = now() - interval '40 days' WHERE id = $1 AND started_at IS NOT NULL`, run)
	s.exec(t, `
UPDATE job_results SET started_at = now() - interval '40 days', finished_at = now() - interval '39 days'
WHERE run_id = $1 AND ordinal = ANY ($2)`, run, ordinals)
}

func (s *site) purge(t testing.TB) error {
	_, err := jobs.Purge(t.Context(), s.plain, 20*24*time.Hour, visibility.DeleteAnswers)
	return err
}

func recount(t testing.TB, c *visibility.Counter) error {
	_, err := c.Recount(t.Context())
	return err
}

func merge(t testing.TB, c *visibility.Counter) error {
	_, err := c.Merge(t.Context())
	return err
}

// verify fails the test unless facts and jobs are consistent.
func (s *site) verify(t testing.TB) {
	t.Helper()
	storetest.Verify(t, s.plain, append(newCounter(nil).Invariants(), jobs.Invariants()...)...)
}

func (s *site) readMetrics(t testing.TB, q *visibility.Query) *visibility.Metrics {
	t.Helper()
	m, err := visibility.ReadMetrics(t.Context(), s.pool, s.account, q)
	must(t, err)
	return m
}

// check fails the test unless the account has these answers, which mention its brands, by name, so often.
func (s *site) check(t testing.TB, when string, want visibility.Answers, mentioned ...int64) {
	t.Helper()
	m := s.readMetrics(t, &visibility.Query{})
	var got []int64
	for i := range m.Rows {
		got = append(got, m.Rows[i].MentionRate.Count)
	}
	if m.Answers != want || !slices.Equal(got, mentioned) || want.Complete() != (want.Pending+want.Recounting == 0) {
		t.Errorf("%s: %+v mention the brands %v times, want %+v and %v", when, m.Answers, got, want, mentioned)
	}
}

var must = storetest.Must
