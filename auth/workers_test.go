package auth_test

import (
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
)

// worker creates a worker, with the hash of its token.
func (o *office) worker(providers ...string) (auth.Worker, auth.Hash) {
	o.t.Helper()
	w, token, err := o.CreateWorker(o.t.Context(), "one", providers)
	must(o.t, err)
	hash, err := auth.HashWorkerToken(token)
	if _, isKey := auth.HashKey(token); err != nil || isKey == nil || !strings.HasPrefix(token, "aiv_work_") {
		o.t.Fatalf("the token %s: %v", token, err)
	}
	return w, hash
}

// find looks a worker up by its token.
func (o *office) find(hash auth.Hash) (auth.Worker, error) {
	return auth.NewWorkerLookup(o.Pool, time.Minute, 10).Find(o.t.Context(), hash)
}

func TestWorkerTokens(t *testing.T) {
	o := newOffice(t)
	o.exec(`INSERT INTO providers (code, name) VALUES ('a', 'A'), ('b', 'B') ON CONFLICT DO NOTHING`)
	w, hash := o.worker("b", "a", "b")
	for range 2 {
		got, err := o.find(hash)
		must(t, err)
		got.LastSeenAt = nil
		equal(t, "worker", w, got)
	}
	workers := func() []auth.Worker {
		t.Helper()
		all, err := o.Workers(t.Context())
		must(t, err)
		return all
	}
	all := workers()
	equal(t, "the worker was seen", true, all[0].LastSeenAt != nil)
	w.LastSeenAt, w.Providers = all[0].LastSeenAt, []string{"b", "a"}
	equal(t, "workers", []auth.Worker{w}, all)
	o.exec(`
INSERT INTO workers (id, name, token_hash, last_seen_at) VALUES
  (gen_random_uuid(), 'never', sha256('1'), NULL),
  (gen_random_uuid(), 'before', sha256('2'), now() - interval '6 minutes')`)
	seen := func(provider string, want int) {
		t.Helper()
		n, err := o.WorkersSeen(t.Context(), provider)
		must(t, err)
		equal(t, "workers of provider "+provider+" that were seen", want, n)
	}
	seen("", 1)
	seen("a", 1)
	seen("c", 0)
	o.exec(`UPDATE workers SET last_seen_at = now() WHERE name = 'before'`)
	seen("c", 1) // it works for all providers
	o.exec(`UPDATE workers SET last_seen_at = NULL WHERE name = 'before'`)

	for range 2 { // a second revocation keeps the time of the first
		got, err := o.RevokeWorker(t.Context(), w.ID)
		must(t, err)
		equal(t, "the worker is revoked", true, got.RevokedAt != nil)
		if w.RevokedAt == nil {
			w.RevokedAt = got.RevokedAt
		}
		equal(t, "revoked worker", w, got)
	}
	all = workers()
	equal(t, "workers", 3, len(all))
	equal(t, "oldest worker", w, all[0])
	seen("", 0)
	for name, unknown := range map[string]auth.Hash{"a revoked worker": hash, "an unknown token": {}} {
		if _, err := o.find(unknown); err != auth.ErrUnknownWorker {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ignore(o.RevokeWorker(t.Context(), store.NewID())); err == nil {
		t.Error("an unknown worker was revoked")
	}
	for _, refused := range []auth.Worker{
		{Name: "two", Providers: []string{"c"}}, {Name: "two", Providers: []string{}}, {Name: " "},
	} {
		if _, _, err := o.CreateWorker(t.Context(), refused.Name, refused.Providers); err == nil {
			t.Errorf("%+v: created", refused)
		}
	}
}

// TestLastSeen: a worker is seen once a minute, and requests do not wait for another that records it.
func TestLastSeen(t *testing.T) {
	o := newOffice(t)
	_, hash := o.worker()
	for before, after := range map[time.Duration]time.Duration{30 * time.Second: 30 * time.Second, 90 * time.Second: 0} {
		o.exec(`UPDATE workers SET last_seen_at = now() - $1::interval`, before)
		o.done(o.find(hash))
		var ago time.Duration
		must(t, o.Pool.QueryRow(t.Context(), `SELECT now() - last_seen_at FROM workers`).Scan(&ago))
		if ago < after || ago > after+30*time.Second {
			t.Errorf("found %v after it was seen: now seen %v ago, want %v", before, ago, after)
		}
	}
	o.exec(`UPDATE workers SET last_seen_at = NULL`)
	o.begin(`SELECT FROM workers FOR UPDATE`)
	o.done(o.find(hash)) // a wait for the lock would end with an error
}
