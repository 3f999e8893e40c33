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
	"aiv/store"
	"aiv/store/batch"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// TestCreateWrites reads back every column that is written.
func TestCreateWrites(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	o := s.order(`key "k"`, 2, 0, 2)
	strange := []string{`a,b`, `"`, `\`, `{}`, `NULL`, ``, "\u00e9 \n"} // ids of a catalog are plainer
	o.Proposal.QuestionIDs = strange
	o.Proposal.Locale, o.Proposal.Country, o.Proposal.Language = "de-AT", "CH", "fr"
	var told *runs.Run
	answer := []byte("{\"answer\":\t\x00\xff}\n")
	o.Answer = func(r *runs.Run) []byte { told = r; return answer }
	receipt := create(t, s.process(t, "", always), o)
	s.wantRuns(t, 1)
	if diff := cmp.Diff(&runs.CreateResult{RunID: told.ID, Answer: answer}, receipt); diff != "" {
		t.Errorf("the receipt (-want +got):\n%s", diff)
	}
	want := &runs.Run{
		ID: receipt.RunID, AccountID: s.credential.AccountID, CredentialID: s.credential.ID, Status: "queued", MeasurementType: "grounded",
		MethodologyVersion: "AIVM-1.0", ModelIDs: []string{"model-0", "model-1"}, QuestionIDs: strange, Repetitions: 2,
		Locale: "de-AT", Country: "CH", Language: "fr", TotalJobs: 28,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("what the answer is made of (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		query string
		want  map[string]any
	}{
		{`SELECT account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
			locale, country, language, total_jobs, jobs_running + jobs_completed + jobs_failed + jobs_canceled AS begun, started_at, finished_at
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

// TestKeyReused: whatever differs makes it a different request, but for the credential; another key or account is free.
func TestKeyReused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	first := create(t, r, s.order("key", 2, 2, 1))
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
		o := s.order("key", 2, 2, 1)
		change(o.Proposal)
		if receipt, err := r.Create(t.Context(), o); !errors.Is(err, runs.ErrKeyReused) {
			t.Errorf("%s: got %v, %v", name, receipt, err)
		}
	}
	replays(t, r, s.order("key", 2, 2, 1), first)
	next, err := s.admin.RotateKey(t.Context(), s.credential.ID, 0)
	must(t, err)
	rotated := s.order("key", 2, 2, 1)
	rotated.Proposal.Credential = &auth.Credential{ID: next.ID, AccountID: s.credential.AccountID}
	rotated.Proposal.CatalogRevision = 99
	replays(t, r, rotated, first)
	s.wantRuns(t, 1)

	other := s.order("key", 2, 2, 1)
	other.Proposal.Credential = s.customer(t)
	for i, o := range []*runs.CreateRequest{s.order("Key", 2, 2, 1), other, s.order("key", 2, 2, 1), s.order("key", 2, 2, 1)} {
		switch i {
		case 2:
			o.Route = "/v1/other"
		case 3:
			o.Method = "PUT"
		}
		if receipt := create(t, r, o); receipt.Replayed {
			t.Errorf("order %d: a key of another account, route, method or spelling is taken for this one", i)
		}
	}
	s.wantRuns(t, 5)
}

// TestRefusal: what is refused writes nothing and leaves its key free; what a key stands for is not judged again.
func TestRefusal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	no := &runs.Refusal{Check: "check", Faults: []runs.Fault{{Code: "no"}}}
	away := errors.New("the catalog can't be read")
	var verdict error
	r := s.process(t, "", func(*runs.Proposal) (string, error) { return "AIVM-1.0", verdict })
	for _, verdict = range []error{no, away} {
		if receipt, err := r.Create(t.Context(), s.order("key", 1, 1, 1)); !errors.Is(err, verdict) {
			t.Errorf("got %v, %v, want %v", receipt, err, verdict)
		}
		s.wantRuns(t, 0)
	}
	verdict = nil
	first := create(t, r, s.order("key", 1, 1, 2)) // another request than the refused one
	for _, verdict = range []error{no, away} {
		replays(t, r, s.order("key", 1, 1, 2), first)
		if _, err := r.Create(t.Context(), s.order("key", 1, 1, 1)); !errors.Is(err, runs.ErrKeyReused) {
			t.Errorf("another request under a key that is taken: got %v", err)
		}
	}
	s.wantRuns(t, 1)
	// Forgotten, the key is free again.
	verdict = nil
	if n, err := idempotency.Purge(t.Context(), s.pool, 0); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	if again := create(t, r, s.order("key", 1, 1, 2)); again.Replayed || again.RunID == first.RunID {
		t.Errorf("a forgotten key is replayed: %v", again)
	}
}

// TestTwins sends the same order many times at once, through two processes.
func TestTwins(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	processes := []*runs.Runs{s.process(t, "", always), s.process(t, "", always)}
	for _, size := range []int{1, 500} { // for each of the lanes
		receipts := make([]*runs.CreateResult, 64)
		var wg sync.WaitGroup
		for i := range receipts {
			wg.Go(func() {
				var err error
				if receipts[i], err = processes[i%2].Create(t.Context(), s.order(fmt.Sprint(size), 1, size, 20)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		made := 0
		want := &runs.CreateResult{RunID: receipts[0].RunID, Answer: []byte(receipts[0].RunID.Text("run") + " queued"), Replayed: true}
		for _, got := range receipts {
			if !got.Replayed {
				made++
			}
			got.Replayed = true
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("twins (-one +other):\n%s", diff)
			}
		}
		if made != 1 {
			t.Errorf("%d of the twins say that they made the run", made)
		}
	}
	s.wantRuns(t, 2)
}

// TestCallerLeaves: a run is written all the same, and told when the caller comes back.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	release := s.holdAccount(t)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := r.Create(ctx, s.order("key", 1, 1, 1))
		left <- err
	}()
	s.waiting(t, "advisory")
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	release()
	if receipt := create(t, r, s.order("key", 1, 1, 1)); !receipt.Replayed {
		t.Error("the run was not written")
	}
	s.wantRuns(t, 1)
}

func TestNobodyMayWait(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := runs.New(runs.Config{Pool: s.pool, Checks: checker(always), NewID: store.NewID})
	if receipt, err := r.Create(t.Context(), s.order("key", 1, 1, 1)); !errors.Is(err, batch.ErrOverloaded) {
		t.Errorf("got %v, %v", receipt, err)
	}
	s.wantRuns(t, 0)
}
