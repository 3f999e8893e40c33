package auth_test

import (
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"

	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestWorkerTokens: a worker is found by its token until it is revoked, and counted while it is seen.
func TestWorkerTokens(t *testing.T) {
	o := newOffice(t)
	o.exec(`INSERT INTO providers (code, name) VALUES ('a', 'A'), ('b', 'B') ON CONFLICT DO NOTHING`)
	find := func(hash auth.Hash) (auth.Worker, error) {
		return auth.NewWorkerLookup(o.Pool, time.Minute, 10).Find(t.Context(), hash)
	}
	w, token, err := o.CreateWorker(t.Context(), "one", []string{"b", "a", "b"})
	must(t, err)
	hash, err := auth.HashWorkerToken(token)
	if _, isKey := auth.HashKey(token); err != nil || isKey == nil || !strings.HasPrefix(token, "aiv_work_") {
		t.Fatalf("the token %s: %v", token, err)
	}
	equal(t, "providers", []string{"b", "a"}, w.Providers)
	for range 2 {
		got, err := find(hash)
		must(t, err)
		equal(t, "worker", w, got, cmpopts.IgnoreFields(auth.Worker{}, "LastSeenAt"))
	}
	o.exec(`
INSERT INTO workers (id, name, token_hash, last_seen_at) VALUES
  (gen_random_uuid(), 'never', sha256('1'), NULL),
  (gen_random_uuid(), 'before', sha256('2'), now() - interval '6 minutes'),
  (gen_random_uuid(), 'by a clock ahead', sha256('4'), now() + interval '1 hour'),
  (gen_random_uuid(), 'of all providers', sha256('3'), now())`)
	seen := func(want ...int) {
		t.Helper()
		for i, provider := range []string{"", "a", "c"} {
			n, err := o.WorkersSeen(t.Context(), provider)
			must(t, err)
			equal(t, "workers that were seen, of any provider or of "+provider, want[i], n)
		}
	}
	seen(2, 2, 1)

	revoked, err := o.RevokeWorker(t.Context(), w.ID)
	must(t, err)
	equal(t, "the worker was seen and is revoked", true, revoked.LastSeenAt != nil && revoked.RevokedAt != nil)
	again, err := o.RevokeWorker(t.Context(), w.ID)
	must(t, err)
	equal(t, "the worker after a second revocation", revoked, again)
	all, err := o.Workers(t.Context())
	must(t, err)
	equal(t, "workers", 5, len(all))
	equal(t, "oldest worker", revoked, all[0])
	seen(1, 1, 1)
	for name, unknown := range map[string]auth.Hash{"a revoked worker": hash, "an unknown token": {}} {
		if _, err := find(unknown); err != auth.ErrUnknownWorker {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := ignore(o.RevokeWorker(t.Context(), store.NewID())); err == nil {
		t.Error("an unknown worker was revoked")
	}
}
