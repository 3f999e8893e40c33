package runs_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestGetInBatches: reads that arrive while another is in flight share one round trip, and each gets its own run.
func TestGetInBatches(t *testing.T) {
	s, r := newProcess(t)
	other := s.customer(t)
	mine, theirs := s.credential.AccountID, other.AccountID
	first, second := create(t, r, s.request("a", 1, 2, 3)).RunID, create(t, r, s.request("b", 1, 2, 3)).RunID
	others := create(t, r, requestOf(other, "a", 1, 2, 3)).RunID

	tx := begin(t, s.pool, `LOCK TABLE measurement_runs IN ACCESS EXCLUSIVE MODE`)
	var reads sync.WaitGroup
	for i, test := range []struct {
		account, id store.ID
		want        error
	}{
		{mine, first, nil}, {mine, second, nil}, {mine, first, nil}, {mine, others, runs.ErrNotFound}, {theirs, others, nil},
		{theirs, first, runs.ErrNotFound},
	} {
		reads.Go(func() {
			run, err := r.Get(t.Context(), test.account, test.id)
			if !errors.Is(err, test.want) || run != nil && (run.ID != test.id || run.AccountID != test.account || run.TotalJobs != 6) {
				t.Errorf("read %d: got %+v, %v, want %v", i, run, err, test.want)
			}
		})
		if i == 0 {
			s.waiting(t, "relation")
		}
	}
	storetest.Eventually(t, "5 reads wait", func() bool { return r.Stats().Reads.Waiting == 5 })
	must(t, tx.Rollback(t.Context()))
	reads.Wait()
}

// TestListFilters: each pair of filters applies in each form of the query, with values that few and that many runs
// have.
func TestListFilters(t *testing.T) {
	s := newSite(t)
	s.exec(t, `
WITH run AS (
  INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids,
    repetitions, locale, country, language, total_jobs, created_at, started_at, finished_at)
  SELECT $1, gen_random_uuid(), $2, (ARRAY['completed', 'failed'])[n / 2 % 2 + 1], (ARRAY['grounded', 'plain'])[n / 4 % 2 + 1], 'AIVM-1.0',
    CASE WHEN n % 3 = 0 THEN '{m,rare}' ELSE '{m}' END::text[], '{q}', 1, 'it-IT', (ARRAY['IT', 'FR'])[n % 2 + 1], 'it',
    CASE WHEN n % 3 = 0 THEN 2 ELSE 1 END, now() - n * interval '1 second', now(), now()
  FROM generate_series(1, 2200) n
  RETURNING account_id, id, created_at, model_ids)
INSERT INTO measurement_run_models (account_id, model_id, created_at, run_id)
SELECT account_id, model, created_at, id FROM run CROSS JOIN LATERAL unnest(model_ids) AS model`, s.credential.AccountID, s.credential.ID)
	list := func(f runs.Filter, limit int) (found []runs.Run, ids []store.ID) {
		found, err := runs.List(t.Context(), s.pool, s.credential.AccountID, f, store.Page{Limit: limit})
		must(t, err)
		queued, b := []runs.Run(nil), pgx.Batch{}
		if runs.QueueList(&b, s.credential.AccountID, f, store.Page{Limit: limit}, &queued) {
			must(t, s.pool.SendBatch(t.Context(), &b).Close())
			equal(t, found, queued, f)
		}
		for _, r := range found {
			ids = append(ids, r.ID)
		}
		return found, ids
	}
	all, ids := list(runs.Filter{}, 4000)
	recent, err := runs.Recent(t.Context(), s.pool, &s.credential.AccountID, nil, 4000) // is decoded by pgx
	must(t, err)
	equal(t, recent, all, "runs")
	for _, f := range []runs.Filter{
		{Statuses: runs.Statuses}, {Country: "FR"}, {Statuses: []string{"failed"}}, {MeasurementType: "plain"},
		{Country: "FR", Statuses: []string{"failed", "running"}},
		{Country: "FR", MeasurementType: "plain"}, {Country: "DE", MeasurementType: "plain"},
		{Statuses: []string{"failed"}, MeasurementType: "plain"},
	} {
		for _, model := range []string{"", "m", "rare"} {
			for _, of := range [][]store.ID{nil, ids[:100]} {
				f.ModelID, f.IDs = model, of
				limit := 100
				if of != nil {
					limit = 20
				}
				var want []store.ID
				for i, r := range all {
					if (of == nil || i < len(of)) && (model == "" || slices.Contains(r.ModelIDs, model)) &&
						(f.Country == "" || r.Country == f.Country) && (f.Statuses == nil || slices.Contains(f.Statuses, r.Status)) &&
						(f.MeasurementType == "" || r.MeasurementType == f.MeasurementType) {
						want = append(want, r.ID)
					}
				}
				_, got := list(f, limit)
				equal(t, want[:min(len(want), limit+1)], got, f)
			}
		}
	}
}
