package auth_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestKnownCredential: a request finds what an operator has set. An account's own quota replaces its plan's, even if it
// is none.
func TestKnownCredential(t *testing.T) {
	o := newOffice(t)
	scopes := []string{"runs:write", "runs:read"}
	c := o.issue(auth.Terms{Name: new("worker"), Scopes: append(scopes, "runs:write")})
	o.exec(`UPDATE credentials SET expires_at = 'infinity'`) // which means never
	seven, nine, none := new(int64(7)), new(int64(9)), new(int64(0))
	for _, test := range []struct {
		plan      *int64
		own       bool
		jobs      *int64
		effective *int64
	}{
		{nil, false, nil, nil}, {seven, false, nil, seven}, {seven, true, nine, nine}, {nil, true, none, none}, {seven, true, nil, nil},
		{nine, false, nil, nine},
	} {
		plan := auth.Plan{Code: "plan", Features: []string{"api_access"}, JobsPerMonth: test.plan, MaxUnfinishedJobs: test.plan}
		must(t, o.SetPlan(t.Context(), plan))
		must(t, ignore(o.SetAccountQuota(t.Context(), o.account.ID, test.own, test.jobs)))
		want := &auth.Credential{
			ID: c.ID, AccountID: o.account.ID, Name: "worker", KeyPrefix: c.KeyPrefix, Scopes: scopes, RateLimit: 60,
			Plan:         auth.Plan{Code: "plan", Features: []string{"api_access"}},
			JobsPerMonth: test.effective, MaxUnfinishedJobs: test.plan,
		}
		equal(t, fmt.Sprintf("credentials of an unknown and a known key, %+v", test), []*auth.Credential{nil, want},
			o.valid(knownKeys[0], c.Key), cmpopts.IgnoreUnexported(auth.Credential{}))
	}
}

// TestRotationKeepsTerms: the successor has the same terms, and the old key is valid for the grace period and no
// longer. It has no later expiry than before.
func TestRotationKeepsTerms(t *testing.T) {
	o := newOffice(t)
	soon := from(time.Minute)
	for _, test := range []struct {
		terms auth.Terms
		grace time.Duration
		ends  *time.Time // the old key; nil: after the grace period
	}{
		{auth.Terms{Scopes: []string{"runs:read"}, RateLimit: new(7)}, 24 * time.Hour, nil}, {auth.Terms{}, 0, nil},
		{auth.Terms{ExpiresAt: soon}, 24 * time.Hour, soon},
	} {
		what := fmt.Sprintf("%+v: ", test)
		old := o.issue(test.terms)
		next := o.key(o.RotateKey(t.Context(), old.ID, test.grace, nil))
		want := old
		want.RotatedFrom = &old.ID
		equal(t, what+"successor", want, next, cmpopts.IgnoreFields(auth.Issued{}, "ID", "Key", "KeyPrefix", "CreatedAt"))
		equal(t, what+"the successor has its own ID and key", true, next.ID != old.ID && next.Key != old.Key)
		found := o.valid(old.Key, next.Key)
		equal(t, what+"the old and the new key are valid", []bool{test.grace > 0, true}, []bool{found[0] != nil, found[1] != nil})
		ends := next.CreatedAt.Add(test.grace)
		if test.ends != nil {
			ends = *test.ends
		}
		got := storetest.Value[time.Time](t, o.Pool, `SELECT expires_at FROM credentials WHERE id = $1`, old.ID)
		equal(t, what+"end of the old key", ends, got, cmpopts.EquateApproxTime(0))
		o.exec(`UPDATE credentials SET expires_at = now() WHERE id = $1`, old.ID)
		equal(t, what+"the old key after its grace period", nil, o.valid(old.Key)[0])
	}
}

// TestConcurrentChanges: a change of a credential is decided by what an earlier one, for which it waited, has made of
// it.
func TestConcurrentChanges(t *testing.T) {
	storetest.SkipOnCitus(t, aboutLocks)
	o := newOffice(t)
	c := o.issue(auth.Terms{})
	tx := storetest.Begin(t, o.Pool, `SELECT FROM credentials WHERE id = $1 FOR UPDATE`, c.ID)
	rotate := func() error { return ignore(o.RotateKey(t.Context(), c.ID, time.Hour, nil)) }
	first := start(rotate)
	storetest.UntilWaiting(t, o.Pool, "transactionid")
	second := start(rotate)
	storetest.Eventually(t, "both rotations wait", func() bool { return storetest.Waiting(t, o.Pool) == 2 })
	must(t, tx.Rollback(t.Context()))
	must(t, <-first)
	if err := <-second; err == nil || !strings.Contains(err.Error(), "has been rotated already") {
		t.Errorf("the second rotation: %v", err)
	}
}

const aboutLocks = "about locks of rows of PostgreSQL: on a cluster other locks serialize changes of a reference table"

// TestExpiringKeyIsReported: a key that expires soon is reported until it has a successor that is valid for as long or
// longer.
func TestExpiringKeyIsReported(t *testing.T) {
	o, ctx := newOffice(t), t.Context()
	soon, later, never := from(time.Hour), from(1000*time.Hour), new(time.Time)
	want := func(after string, want ...store.ID) {
		t.Helper()
		expiring, err := auth.ReadExpiring(ctx, o.Pool, 24*time.Hour, 10)
		must(t, err)
		var got []store.ID
		for _, e := range expiring {
			got = append(got, e.ID)
		}
		equal(t, "expiring keys after "+after, want, got)
	}
	rotate := func(id store.ID, expires *time.Time) store.ID {
		t.Helper()
		return o.key(o.RotateKey(ctx, id, 2*time.Hour, expires)).ID
	}
	o.issue(auth.Terms{})
	old := o.issue(auth.Terms{ExpiresAt: soon}).ID
	want("issue", old)
	same := rotate(old, nil)
	want("rotation with the old expiry", same)
	extended := rotate(same, later)
	want("rotation with another expiry")
	o.key(o.RevokeKey(ctx, rotate(extended, never)))
	want("revocation of the successor", extended)
	if _, err := o.RotateKey(ctx, extended, time.Hour, nil); err == nil || !strings.Contains(err.Error(), "-expires") {
		t.Errorf("the grace period is the expiry of another key: %v", err)
	}
	again := rotate(extended, never)
	want("another rotation")
	o.key(o.DisableKey(ctx, again))
	want("disabling the successor", extended)
	o.exec(`UPDATE credentials SET expires_at = now() WHERE id = $1`, extended)
	want("the end of the key", same) // whose successor it was
}

// TestNoKeysOfAnErasedAccount: keys that are created or rotated while an erasure waits for a lock are not valid after it.
func TestNoKeysOfAnErasedAccount(t *testing.T) {
	storetest.SkipOnCitus(t, aboutLocks)
	o := newOffice(t)
	held, other := o.issue(auth.Terms{}), o.issue(auth.Terms{})
	tx := storetest.Begin(t, o.Pool, `SELECT FROM credentials WHERE id = $1 FOR UPDATE`, held.ID)
	erased := start(func() error { return ignore(o.BeginErasing(t.Context(), o.account.ID)) })
	storetest.UntilWaiting(t, o.Pool, "transactionid")
	created := start(func() error { return ignore(o.CreateKey(t.Context(), o.account.ID, auth.Terms{Name: new("late")})) })
	rotated := start(func() error { return ignore(o.RotateKey(t.Context(), other.ID, time.Hour, nil)) })
	storetest.Eventually(t, "the three transactions wait for locks, or have ended", func() bool {
		return storetest.Waiting(t, o.Pool)+len(created)+len(rotated) >= 3
	})
	must(t, tx.Rollback(t.Context()))
	must(t, <-erased)

	want := fmt.Sprintf("account %s is erased", o.account.ID.Text("acct"))
	equal(t, "create", want, fmt.Sprint(<-created))
	equal(t, "rotate", want, fmt.Sprint(<-rotated))
	keys, err := o.Keys(t.Context(), nil)
	must(t, err)
	if len(keys) != 2 || keys[0].State != "revoked" || keys[1].State != "revoked" {
		t.Errorf("the account has the keys %+v", keys)
	}
}

// TestEraseAgain: an erasure that is repeated keeps the times of the first, and the latest revocation counts, so that
// it waits until the requests of all keys have ended, and not again.
func TestEraseAgain(t *testing.T) {
	o := newOffice(t)
	theirs := o.key(o.CreateKey(t.Context(), o.create("Other", "plan").ID, auth.Terms{Name: new("key")}))
	erase := func(id store.ID, least, most int) auth.Account {
		t.Helper()
		revoked, err := o.BeginErasing(t.Context(), id)
		must(t, err)
		if hours := revoked.Hours(); hours < float64(least) || hours > float64(most) {
			t.Errorf("the latest key was revoked %v hours ago, want %d to %d", hours, least, most)
		}
		a, err := o.Account(t.Context(), id)
		must(t, err)
		return a
	}
	erase(o.create("Without keys", "plan").ID, 24, 24)
	long := o.issue(auth.Terms{})
	o.issue(auth.Terms{})
	o.key(o.RevokeKey(t.Context(), long.ID))
	o.exec(`UPDATE credentials SET revoked_at = now() - interval '5 hours' WHERE id = $1`, long.ID)
	first := erase(o.account.ID, 0, 1)
	equal(t, "the account is erased", true, first.ErasedAt != nil)
	o.exec(`UPDATE credentials SET revoked_at = now() - interval '2 hours' WHERE id <> $1 AND revoked_at IS NOT NULL`, long.ID)
	equal(t, "the account after a second erasure", first, erase(o.account.ID, 2, 3))
	equal(t, "the key of another account is valid", true, o.valid(theirs.Key)[0] != nil)
}

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
