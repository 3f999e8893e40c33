package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"aiv/auth"
	"aiv/idempotency"
	"aiv/runs"
	"aiv/store/storetest"

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
	o.Response = func(r *runs.Run) []byte { encoded = r; return answer }
	result := create(t, s.process(t, "", always), o)
	s.wantRuns(t, 1)
	equal(t, &runs.CreateResult{RunID: encoded.ID, Response: answer}, result, "the result")
	want := &runs.Run{
		ID: result.RunID, AccountID: s.credential.AccountID, CredentialID: s.credential.ID, Status: "queued", MeasurementType: "grounded",
		MethodologyVersion: "AIVM-1.0", ModelIDs: []string{"model-0", "model-1"}, QuestionIDs: strange, Repetitions: 2,
		Locale: "de-AT", Country: "CH", Language: "fr", TotalJobs: 28,
	}
	equal(t, want, encoded, "the run given to Answer")
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
		equal(t, test.want, got, test.query)
	}
}

// TestKeyReused: a request that differs in anything but the credential is a different request; other keys and accounts
// are independent. TestHashOfEachMember changes each member.
func TestKeyReused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	first := create(t, r, s.request("key", 2, 2, 1))
	for name, change := range map[string]func(*runs.Proposal){
		"fewer models":           func(p *runs.Proposal) { p.ModelIDs = p.ModelIDs[:1] },
		"models in other order":  func(p *runs.Proposal) { slices.Reverse(p.ModelIDs) },
		"questions, other order": func(p *runs.Proposal) { slices.Reverse(p.QuestionIDs) },
		"a model as a question": func(p *runs.Proposal) {
			p.ModelIDs, p.QuestionIDs = p.ModelIDs[:1], append([]string{p.ModelIDs[1]}, p.QuestionIDs...)
		},
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

	route, method := s.request("key", 2, 2, 1), s.request("key", 2, 2, 1)
	route.Operation.Route, method.Operation.Method = "/v1/other", "PUT"
	for i, o := range []*runs.CreateRequest{
		s.request("Key", 2, 2, 1), s.requestOf(s.customer(t), "key", 2, 2, 1), route, method,
	} {
		equal(t, false, create(t, r, o).Replayed, "request ", i, " is replayed")
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
	equal(t, false, create(t, r, s.request("key", 1, 1, 2)).Replayed, "a purged key is replayed")
}

// TestConcurrentDuplicates sends the same request many times at once, through two processes.
func TestConcurrentDuplicates(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	processes := []*runs.Runs{s.process(t, "", always), s.process(t, "", always)}
	for _, size := range []int{1, 251} { // for each batcher
		var duplicates []*outcome
		for i := range 32 {
			duplicates = append(duplicates, goCreate(t.Context(), processes[i%2], s.request(fmt.Sprint(size), 1, size, 20)))
		}
		made := 0
		for _, d := range duplicates {
			got, err := d.wait()
			must(t, err)
			if !got.Replayed {
				made++
			}
			run := duplicates[0].result.RunID
			want := &runs.CreateResult{RunID: run, Response: []byte(run.Text("run") + " queued"), Replayed: got.Replayed}
			equal(t, want, got, "duplicate")
		}
		equal(t, 1, made, "duplicates created the run")
	}
	s.wantRuns(t, 2)
}

// TestCallerGivesUp: a run whose caller gives up while it is written is replayed when the caller retries. One whose
// caller gave up before its batch started is not written.
func TestCallerGivesUp(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	release := s.holdAccount(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := goCreate(ctx, r, s.request("first", 1, 1, 1))
	s.waiting(t, "advisory")
	second := goCreate(ctx, r, s.request("second", 1, 1, 1))
	storetest.Eventually(t, "the second request waits", func() bool { return r.Stats().Small.Waiting > 0 })
	cancel()
	for _, gaveUp := range []*outcome{first, second} {
		if _, err := gaveUp.wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	release()
	equal(t, true, create(t, r, s.request("first", 1, 1, 1)).Replayed, "the first run was written")
	equal(t, false, create(t, r, s.request("second", 1, 1, 1)).Replayed, "the second run was written")
	s.wantRuns(t, 2)
}

// TestBatchIsOneTransaction: the runs of a batch are written in one transaction, whose time they have, however many
// accounts they are of.
func TestBatchIsOneTransaction(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "", always)
	var all []*outcome
	for range 8 {
		c := s.customer(t)
		for n := range 8 {
			all = append(all, goCreate(t.Context(), r, s.requestOf(c, fmt.Sprint(n), 1, 1, 1)))
		}
	}
	for _, o := range all {
		must(t, ignore(o.wait()))
	}
	batches := 0
	for _, n := range r.Stats().Small.Sizes {
		batches += int(n)
	}
	if times := s.count(t, `SELECT count(DISTINCT created_at) FROM measurement_runs`); times != batches || batches > 16 {
		t.Errorf("%d transactions for %d batches of %d runs", times, batches, len(all))
	}
}
