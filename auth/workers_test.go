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

func TestWorkers(t *testing.T) {
	pool := storetest.New(t)
	admin := &auth.Admin{Pool: pool, Actor: "test"}
	if _, err := pool.Exec(t.Context(), `INSERT INTO providers (code, name) VALUES ('a', 'A'), ('b', 'B')`); err != nil {
		t.Fatal(err)
	}
	w, token, err := admin.CreateWorker(t.Context(), "one", []string{"b", "a", "b"})
	if err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
		got.LastSeenAt = nil
		if diff := cmp.Diff(w, got); diff != "" {
			t.Error(diff)
		}
	}
	all, err := admin.Workers(t.Context())
	if err != nil || len(all) != 1 || all[0].LastSeenAt == nil || !cmp.Equal(all[0].Providers, []string{"b", "a"}) {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO workers (id, name, token_hash, last_seen_at)
		VALUES (gen_random_uuid(), 'never', sha256('1'), NULL), (gen_random_uuid(), 'before', sha256('2'), now() - interval '6 minutes')`); err != nil {
		t.Fatal(err)
	}
	if n, err := admin.WorkersSeen(t.Context(), ""); n != 1 || err != nil {
		t.Errorf("%d workers were seen, %v, want 1", n, err)
	}
	if revoked, err := admin.RevokeWorker(t.Context(), w.ID); err != nil || revoked.ID != w.ID || revoked.RevokedAt == nil {
		t.Errorf("revoked %+v, %v", revoked, err)
	}
	if n, err := admin.WorkersSeen(t.Context(), ""); n != 0 || err != nil {
		t.Errorf("%d workers were seen, %v, want none: it is revoked", n, err)
	}
	if _, err := lookup.Find(t.Context(), hash); !errors.Is(err, auth.ErrUnknownWorker) {
		t.Errorf("a revoked worker: %v", err)
	}
	for _, f := range []func() error{
		func() error { _, err := admin.RevokeWorker(t.Context(), store.NewID()); return err },
		func() error { _, _, err := admin.CreateWorker(t.Context(), "two", []string{"c"}); return err },
		func() error { _, _, err := admin.CreateWorker(t.Context(), "two", []string{}); return err },
		func() error { _, _, err := admin.CreateWorker(t.Context(), " ", nil); return err },
	} {
		if f() == nil {
			t.Error("accepted")
		}
	}
}
