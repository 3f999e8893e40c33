package runs_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/idempotency"
	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

// TestCreateWrites reads back a run and its response. The invariants of wantRuns compare the other rows with the run.
func TestCreateWrites(t *testing.T) {
	s, r := newProcess(t)
	q := s.request(`key "k"`, 2, 0, 2)
	strange := []string{`a,b`, `"`, `\`, `{}`, `NULL`, ``, "\u00e9 \n"} // ids in a catalog are simpler
	q.Proposal.QuestionIDs = strange
	q.Proposal.Locale, q.Proposal.Country, q.Proposal.Language = "de-AT", "CH", "fr"
	response := []byte("{\"answer\":\t\x00\xff}\n")
	q.Response = func(r *runs.Run) []byte { return response }
	result := create(t, r, q)
	want := &runs.Run{
		ID: result.RunID, AccountID: s.credential.AccountID, Status: "queued", MeasurementType: "grounded",
		MethodologyVersion: "AIVM-1.0", ModelIDs: []string{"model-0", "model-1"}, QuestionIDs: strange, Repetitions: 2,
		Locale: "de-AT", Country: "CH", Language: "fr", TotalJobs: 28,
	}
	equal(t, &runs.CreateResult{RunID: want.ID, Response: response}, result, "the result")
	q.Response = func(*runs.Run) []byte { return []byte("another") }
	replays(t, r, q, result)
	read, err := r.Get(t.Context(), want.AccountID, want.ID)
	must(t, err)
	want.CreatedAt = read.CreatedAt
	equal(t, want, read, "the run in the database")
	s.wantRuns(t, 1)
}

// TestKeyReused: a request that differs in any member but the credential is another request. Other keys, accounts,
// routes and methods are independent.
func TestKeyReused(t *testing.T) {
	s, r := newProcess(t)
	request := func(change func(*runs.Proposal)) *runs.CreateRequest {
		q := s.request("key", 2, 2, 1)
		change(q.Proposal)
		return q
	}
	first := create(t, r, request(func(*runs.Proposal) {}))
	for _, f := range reflect.VisibleFields(reflect.TypeFor[runs.Proposal]()) {
		if f.Name == "Orderer" || f.Name == "CatalogRevision" {
			continue // not of the request
		}
		fails(t, r, request(func(p *runs.Proposal) {
			switch v := reflect.ValueOf(p).Elem().FieldByIndex(f.Index); v.Kind() {
			case reflect.String:
				v.SetString("x")
			case reflect.Int64:
				v.SetInt(2)
			default:
				slices.Reverse(v.Interface().([]string))
			}
		}), runs.ErrKeyReused, f.Name)
	}
	fails(t, r, request(func(p *runs.Proposal) {
		p.ModelIDs, p.QuestionIDs = p.ModelIDs[:1], append([]string{p.ModelIDs[1]}, p.QuestionIDs...)
	}), runs.ErrKeyReused, "a model as a question")
	replays(t, r, request(func(p *runs.Proposal) { p.Orderer.CredentialID, p.CatalogRevision = store.NewID(), 99 }), first)
	s.wantRuns(t, 1)

	route, method := s.request("key", 2, 2, 1), s.request("key", 2, 2, 1)
	route.Operation.Route, method.Operation.Method = "/v1/other", "PUT"
	for _, q := range []*runs.CreateRequest{s.request("Key", 2, 2, 1), requestOf(s.customer(t), "key", 2, 2, 1), route, method} {
		create(t, r, q)
	}
	s.wantRuns(t, 5)
}

// TestRefusedRunWritesNothing: a refused request writes nothing and leaves its key free; a replay skips the checks.
func TestRefusedRunWritesNothing(t *testing.T) {
	s := newSite(t)
	no := &runs.Refusal{Check: "check", Faults: []runs.Fault{{Code: "no"}}}
	away := errors.New("the catalog can't be read")
	var verdict error
	check := checker(func(*runs.Proposal) (string, error) { return "AIVM-1.0", verdict })
	r := newRuns(runs.Config{Pool: s.open(t, ""), Checks: check})
	for _, verdict = range []error{no, away} {
		fails(t, r, s.request("key", 1, 1, 1), verdict)
		s.wantRuns(t, 0)
	}
	verdict = nil
	first := create(t, r, s.request("key", 1, 1, 2)) // differs from the refused request
	for _, verdict = range []error{no, away} {
		replays(t, r, s.request("key", 1, 1, 2), first)
		fails(t, r, s.request("key", 1, 1, 1), runs.ErrKeyReused, "another request with a used key")
	}
	s.wantRuns(t, 1)
	// If the key cannot be looked up, a refusal is not the response: the request may be a replay.
	pool, err := store.OpenHot(t.Context(), s.url, 1)
	must(t, err)
	pool.Close()
	verdict = no
	_, err = newRuns(runs.Config{Pool: pool, Checks: check}).Create(t.Context(), s.request("key", 1, 1, 1))
	if errors.Is(err, no) || !store.IsUnavailable(err) {
		t.Errorf("got %v, want a temporary error", err)
	}

	verdict = nil
	if n, err := idempotency.Purge(t.Context(), s.pool, 0); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	create(t, r, s.request("key", 1, 1, 2)) // a purged key is free again
}

// TestConcurrentDuplicates sends the same request many times at once, through two processes. It creates one run, also
// where the account's quota suffices for no second one.
func TestConcurrentDuplicates(t *testing.T) {
	s := newSite(t)
	processes := []*runs.Runs{s.process(t, ""), s.process(t, "")}
	jobs := int64(0)
	for i, questions := range []int{1, 251, 1, 251} { // for each batcher
		if jobs += int64(questions) * 20; i >= 2 {
			s.meter(new(jobs), nil)
		}
		results := make([]*runs.CreateResult, 32)
		var made atomic.Int64
		storetest.AtOnce(len(results), func(k int) {
			result, err := processes[k%2].Create(t.Context(), s.request(fmt.Sprint("run ", i), 1, questions, 20))
			if err != nil {
				t.Error(err)
				return
			}
			if !result.Replayed {
				made.Add(1)
			}
			result.Replayed = true
			results[k] = result
		})
		equal(t, slices.Repeat(results[:1], len(results)), results, "the results of duplicates")
		equal(t, int64(1), made.Load(), "duplicates created the run")
	}
	s.wantRuns(t, 4)
}

// TestCreateTx: a run is written with the other changes of a transaction or not at all, once for a key that no client
// can send, and within the quota of its account.
func TestCreateTx(t *testing.T) {
	s, r := newProcess(t)
	// due creates a run of models × questions in a transaction that ends with an error, or nil.
	due := func(quota *int64, key string, models, questions int, end error) (result *runs.CreateResult, err error) {
		q := s.request(key, models, questions, 1)
		q.Operation = idempotency.Operation{Method: "schedule", Route: "weekly"}
		q.Proposal.Orderer.JobsPerMonth = quota
		ended := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			result, err = r.CreateTx(t.Context(), tx, q, "AIVM-1.0")
			must(t, ignore(tx.Exec(t.Context(), `UPDATE accounts SET name = name || '+' WHERE id = $1`, s.credential.AccountID)))
			return end
		})
		equal(t, fmt.Sprint(end), fmt.Sprint(ended), "the end of the transaction")
		return result, err
	}
	must(t, ignore(due(nil, "rolled back", 1, 1, errors.New("back"))))
	s.wantRuns(t, 0)
	for name, quota := range map[string]*int64{"no quota": nil, "a quota": new(int64(12_012))} {
		first, err := due(quota, name, 2, 3, nil)
		must(t, err)
		first.Replayed = true
		again, err := due(quota, name, 2, 3, nil)
		must(t, err)
		equal(t, first, again, name, ": the key again")
		if _, err := due(quota, name, 2, 2, nil); !errors.Is(err, runs.ErrKeyReused) {
			t.Errorf("%s: the key with another run: %v", name, err)
		}
		must(t, ignore(due(quota, name+", large", 12, 500, nil)))
	}
	if _, err := due(new(int64(12_012)), "too large", 1, 1, nil); !errors.As(err, new(*runs.QuotaError)) {
		t.Errorf("a run for which no job remains: %v", err)
	}
	s.wantRuns(t, 4)
}
