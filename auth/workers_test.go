package auth_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

func TestWorkerTokens(t *testing.T) {
	pool := storetest.New(t)
	admin := &auth.Admin{Pool: pool, Actor: "test"}
	must(t, ignore(pool.Exec(t.Context(), `INSERT INTO providers (code, name) VALUES ('a', 'A'), ('b', 'B')`)))
	w, token, err := admin.CreateWorker(t.Context(), "one", []string{"b", "a", "b"})
	must(t, err)
	hash, err := auth.HashWorkerToken(token)
	if err != nil || !strings.HasPrefix(token, "aiv_work_") {
		t.Fatalf("the token %s: %v", token, err)
	}
	if _, err := auth.HashKey(token); err == nil {
		t.Error("a token is taken for a key")
	}
	lookup := auth.NewWorkerLookup(pool, time.Minute, 10)
	for range 2 {
		got, err := lookup.Find(t.Context(), hash)
		must(t, err)
		got.LastSeenAt = nil
		if diff := cmp.Diff(w, got); diff != "" {
			t.Error(diff)
		}
	}
	all, err := admin.Workers(t.Context())
	if err != nil || len(all) != 1 || all[0].LastSeenAt == nil || !cmp.Equal(all[0].Providers, []string{"b", "a"}) {
		t.Errorf("%+v, %v", all, err)
	}
	must(t, ignore(pool.Exec(t.Context(), `INSERT INTO workers (id, name, token_hash, last_seen_at)
		VALUES (gen_random_uuid(), 'never', sha256('1'), NULL), (gen_random_uuid(), 'before', sha256('2'), now() - interval '6 minutes')`)))
	seen := func(provider string, want int) {
		t.Helper()
		if n, err := admin.WorkersSeen(t.Context(), provider); n != want || err != nil {
			t.Errorf("%d workers of provider %q were seen, %v, want %d", n, provider, err, want)
		}
	}
	seen("", 1)
	seen("a", 1)
	seen("c", 0)
	must(t, ignore(pool.Exec(t.Context(), `UPDATE workers SET last_seen_at = now() WHERE name = 'before'`)))
	seen("c", 1) // it works for all providers
	must(t, ignore(pool.Exec(t.Context(), `UPDATE workers SET last_seen_at = NULL WHERE name = 'before'`)))
	revoked, err := admin.RevokeWorker(t.Context(), w.ID)
	if err != nil || revoked.ID != w.ID || revoked.RevokedAt == nil {
		t.Errorf("revoked %+v, %v", revoked, err)
	}
	if again, err := admin.RevokeWorker(t.Context(), w.ID); err != nil || !cmp.Equal(again.RevokedAt, revoked.RevokedAt) {
		t.Errorf("a second revocation moves the time of the first: %+v, %v", again, err)
	}
	if all, err = admin.Workers(t.Context()); err != nil || len(all) != 3 || all[0].ID != w.ID {
		t.Errorf("the oldest worker is not the first: %+v, %v", all, err)
	}
	seen("", 0)
	if _, err := lookup.Find(t.Context(), hash); !errors.Is(err, auth.ErrUnknownWorker) {
		t.Errorf("a revoked worker: %v", err)
	}
	if _, err := lookup.Find(t.Context(), auth.Hash{}); !errors.Is(err, auth.ErrUnknownWorker) {
		t.Errorf("an unknown token: %v", err)
	}
	var known []store.ID
	if err := pool.QueryRow(t.Context(), `SELECT `+auth.RevokedWorkersSQL("$1"), []store.ID{w.ID, all[1].ID, {}}).Scan(&known); err != nil || !cmp.Equal(known, []store.ID{w.ID}) {
		t.Errorf("revoked workers: %v, %v", known, err)
	}
	if err := ignore(admin.RevokeWorker(t.Context(), store.NewID())); err == nil {
		t.Error("an unknown worker was revoked")
	}
	for _, refused := range []struct {
		name      string
		providers []string
	}{{"two", []string{"c"}}, {"two", []string{}}, {" ", nil}} {
		if _, _, err := admin.CreateWorker(t.Context(), refused.name, refused.providers); err == nil {
			t.Errorf("%+v: created", refused)
		}
	}
}

// TestLastSeen: a worker is seen once a minute, and requests do not wait for another that records it.
func TestLastSeen(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	admin := &auth.Admin{Pool: pool, Actor: "test"}
	_, token, err := admin.CreateWorker(t.Context(), "one", nil)
	must(t, err)
	hash, err := auth.HashWorkerToken(token)
	must(t, err)
	find := func(before time.Duration) (ago time.Duration) {
		t.Helper()
		must(t, ignore(pool.Exec(t.Context(), `UPDATE workers SET last_seen_at = now() - $1::interval`, before)))
		must(t, ignore(auth.NewWorkerLookup(pool, time.Minute, 10).Find(t.Context(), hash)))
		must(t, pool.QueryRow(t.Context(), `SELECT now() - last_seen_at FROM workers`).Scan(&ago))
		return ago
	}
	if ago := find(30 * time.Second); ago < 30*time.Second {
		t.Errorf("seen again after 30 s: %v ago", ago)
	}
	if ago := find(90 * time.Second); ago > 30*time.Second {
		t.Errorf("not seen again after 90 s: %v ago", ago)
	}
	must(t, ignore(pool.Exec(t.Context(), `UPDATE workers SET last_seen_at = NULL`)))
	begin(t, pool, `SELECT FROM workers FOR UPDATE`)
	if _, err := auth.NewWorkerLookup(pool, time.Minute, 10).Find(t.Context(), hash); err != nil { // a wait for the lock would end with an error
		t.Error(err)
	}
}
