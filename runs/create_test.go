package runs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"aiv/auth"
	"aiv/idempotency"
	"aiv/runs"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// TestCreateWrites reads back every column that is written.
func TestCreateWrites(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.request(`key "k"`, 2, 0, 2)
	strange := []string{`a,b`, `"`, `\`, `{}`, `NULL`, ``, "\u00e9 \n"} // ids in a catalog are simpler
	o.Proposal.QuestionIDs = strange
	o.Proposal.Locale, o.Proposal.Country, o.Proposal.Language = "de-AT", "CH", "fr"
	var encoded *runs.Run
	answer := []byte("{\"answer\":\t\x00\xff}\n")
	o.Answer = func(r *runs.Run) []byte { encoded = r; return answer }
	result := create(t, s.process(t, "", always), o)
	s.wantRuns(t, 1)
	if diff := cmp.Diff(&runs.CreateResult{RunID: encoded.ID, Answer: answer}, result); diff != "" {
		t.Errorf("the result (-want +got):\n%s", diff)
	}
	want := &runs.Run{
		ID: result.RunID, AccountID: s.credential.AccountID, CredentialID: s.credential.ID, Status: "queued", MeasurementType: "grounded",
		MethodologyVersion: "AIVM-1.0", ModelIDs: []string{"model-0", "model-1"}, QuestionIDs: strange, Repetitions: 2,
		Locale: "de-AT", Country: "CH", Language: "fr", TotalJobs: 28,
	}
	if diff := cmp.Diff(want, encoded); diff != "" {
		t.Errorf("the run given to Answer (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		query string
		want  map[string]any
	}{
		{`SELECT account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
			locale, country, language, total_jobs, jobs_returned + jobs_completed + jobs_failed + jobs_canceled AS begun, started_at, finished_at
			FROM measurement_runs`, map[string]any{
			"account_id": [16]byte(want.AccountID), "id": [16]byte(want.ID), "credential_id": [16]byte(want.CredentialID), "status": "queued",
			"measurement_type": "grounded", "methodology_version": "AIVM-1.0", "model_ids": []any{"model-0", "model-1"},
			"question_ids": []any{`a,b`, `"`, `\`, `{}`, `NULL`, ``, "\u00e9 \n"}, "repetitions": int16(2), "locale": "de-AT", "country": "CH",
			"language": "fr", "total_jobs": int32(28), "begun": int32(0), "started_at": nil, "finished_at": nil,
		}},
		{`SELECT account_id, run_id, credential_id, jobs, measurement_type, methodology_version FROM usage_records`, map[string]any{
			"account_id": [16]byte(want.AccountID), "run_id": [16]byte(want.ID), "credential_id": [16]byte(want.CredentialID), "jobs": int32(28),
			"measurement_type": "grounded", "methodology_version": "AIVM-1.0",
		}},
		{`SELECT account_id, method, route, key, octet_length(request_hash) AS hash, run_id, answer FROM idempotency_records`, map[string]any{
			"account_id": [16]byte(want.AccountID), "method": "POST", "route": "/v1/runs", "key": `key "k"`, "hash": int32(32),
			"run_id": [16]byte(want.ID), "answer": answer,
		}},
		{`SELECT count(*) AS times FROM (SELECT created_at FROM measurement_runs UNION SELECT created_at FROM usage_records UNION
			SELECT created_at FROM idempotency_records) t`, map[string]any{"times": int64(1)}},
		{`SELECT count(*) AS jobs, min(ordinal) AS first, max(ordinal) AS last FROM measurement_jobs`, map[string]any{
			"jobs": int64(28), "first": int32(1), "last": int32(28),
		}},
		{`SELECT runs, jobs_ordered, jobs_completed + jobs_failed + jobs_canceled AS ended FROM account_months`, map[string]any{
			"runs": int64(1), "jobs_ordered": int64(28), "ended": int64(0),
		}},
	} {
		rows, err := s.pool.Query(t.Context(), test.query)
		must(t, err)
		got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToMap)
		must(t, err)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.query, diff)
		}
	}
}

// TestKeyReused: a request that differs in any member but the credential is a different request; other keys and
// accounts are independent.
func TestKeyReused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	first := create(t, r, s.request("key", 2, 2, 1))
	for name, change := range map[string]func(*runs.Proposal){
		"fewer models":           func(p *runs.Proposal) { p.ModelIDs = p.ModelIDs[:1] },
		"models in other order":  func(p *runs.Proposal) { p.ModelIDs = []string{p.ModelIDs[1], p.ModelIDs[0]} },
		"questions, other order": func(p *runs.Proposal) { p.QuestionIDs = []string{p.QuestionIDs[1], p.QuestionIDs[0]} },
		"a model as a question": func(p *runs.Proposal) {
			p.ModelIDs, p.QuestionIDs = p.ModelIDs[:1], append([]string{p.ModelIDs[1]}, p.QuestionIDs...)
		},
		"repetitions":      func(p *runs.Proposal) { p.Repetitions = 2 },
		"measurement type": func(p *runs.Proposal) { p.MeasurementType = "other" },
		"locale":           func(p *runs.Proposal) { p.Locale = "it-CH" },
		"country":          func(p *runs.Proposal) { p.Country = "CH" },
		"language":         func(p *runs.Proposal) { p.Language = "it-IT" },
	} {
		o := s.request("key", 2, 2, 1)
		change(o.Proposal)
		if result, err := r.Create(t.Context(), o); !errors.Is(err, runs.ErrKeyReused) {
			t.Errorf("%s: got %v, %v", name, result, err)
		}
	}
	replays(t, r, s.request("key", 2, 2, 1), first)
	next, err := s.admin.RotateKey(t.Context(), s.credential.ID, 0, nil)
	must(t, err)
	rotated := s.request("key", 2, 2, 1)
	rotated.Proposal.Orderer = runs.OrdererOf(&auth.Credential{ID: next.ID, AccountID: s.credential.AccountID})
	rotated.Proposal.CatalogRevision = 99
	replays(t, r, rotated, first)
	s.wantRuns(t, 1)

	other := s.request("key", 2, 2, 1)
	other.Proposal.Orderer = runs.OrdererOf(s.customer(t))
	for i, o := range []*runs.CreateRequest{s.request("Key", 2, 2, 1), other, s.request("key", 2, 2, 1), s.request("key", 2, 2, 1)} {
		switch i {
		case 2:
			o.Operation.Name = "/v1/other"
		case 3:
			o.Operation.Kind = "PUT"
		}
		if result := create(t, r, o); result.Replayed {
			t.Errorf("request %d: a key of another account, route, method or spelling is taken for this key", i)
		}
	}
	s.wantRuns(t, 5)
}

// TestRefusedRunWritesNothing: a refused request writes nothing and leaves its key free; a replay skips the checks.
func TestRefusedRunWritesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	no := &runs.Refusal{Check: "check", Faults: []runs.Fault{{Code: "no"}}}
	away := errors.New("the catalog can't be read")
	var verdict error
	r := s.process(t, "", func(*runs.Proposal) (string, error) { return "AIVM-1.0", verdict })
	for _, verdict = range []error{no, away} {
		if result, err := r.Create(t.Context(), s.request("key", 1, 1, 1)); !errors.Is(err, verdict) {
			t.Errorf("got %v, %v, want %v", result, err, verdict)
		}
		s.wantRuns(t, 0)
	}
	verdict = nil
	first := create(t, r, s.request("key", 1, 1, 2)) // differs from the refused request
	for _, verdict = range []error{no, away} {
		replays(t, r, s.request("key", 1, 1, 2), first)
		if _, err := r.Create(t.Context(), s.request("key", 1, 1, 1)); !errors.Is(err, runs.ErrKeyReused) {
			t.Errorf("another request with a used key: got %v", err)
		}
	}
	s.wantRuns(t, 1)
	// A purged key is free again.
	verdict = nil
	if n, err := idempotency.Purge(t.Context(), s.pool, 0); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	if again := create(t, r, s.request("key", 1, 1, 2)); again.Replayed || again.RunID == first.RunID {
		t.Errorf("a purged key is replayed: %v", again)
	}
}

// TestConcurrentDuplicates sends the same request many times at once, through two processes.
func TestConcurrentDuplicates(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	processes := []*runs.Runs{s.process(t, "", always), s.process(t, "", always)}
	for _, size := range []int{1, 251} { // for each batcher
		results := make([]*runs.CreateResult, 32)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() {
				var err error
				if results[i], err = processes[i%2].Create(t.Context(), s.request(fmt.Sprint(size), 1, size, 20)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		made := 0
		want := &runs.CreateResult{RunID: results[0].RunID, Answer: []byte(results[0].RunID.Text("run") + " queued"), Replayed: true}
		for _, got := range results {
			if !got.Replayed {
				made++
			}
			got.Replayed = true
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("duplicates (-one +other):\n%s", diff)
			}
		}
		if made != 1 {
			t.Errorf("%d of the duplicates created the run, want 1", made)
		}
	}
	s.wantRuns(t, 2)
}

// TestCallerGivesUp: the run is written, and replayed when the caller retries.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	release := s.holdAccount(t)
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error)
	go func() {
		_, err := r.Create(ctx, s.request("key", 1, 1, 1))
		gaveUp <- err
	}()
	s.waiting(t, "advisory")
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	release()
	if result := create(t, r, s.request("key", 1, 1, 1)); !result.Replayed {
		t.Error("the run was not written")
	}
	s.wantRuns(t, 1)
}

// TestBatchIsOneTransaction: the runs of a batch are written in one transaction, whose time they have, however many
// accounts they are of.
func TestBatchIsOneTransaction(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	var all []*runs.CreateRequest
	for range 8 {
		c := s.customer(t)
		for n := range 8 {
			q := s.request(fmt.Sprint(n), 1, 1, 1)
			q.Proposal.Orderer = runs.OrdererOf(c)
			all = append(all, q)
		}
	}
	var wg sync.WaitGroup
	for _, q := range all {
		wg.Go(func() {
			if _, err := r.Create(t.Context(), q); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	batches := uint64(0)
	for _, n := range r.Stats().Small.Sizes {
		batches += n
	}
	var times uint64
	must(t, s.pool.QueryRow(t.Context(), `SELECT count(DISTINCT created_at) FROM measurement_runs`).Scan(&times))
	if times != batches || batches > 16 {
		t.Errorf("%d transactions for %d batches of %d runs", times, batches, len(all))
	}
}
