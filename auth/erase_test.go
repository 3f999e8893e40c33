package auth_test

import (
	"fmt"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
	"aiv/store/storetest"
)

// TestNoKeysOfAnErasedAccount creates and rotates keys while an erasure waits for the lock of one of the account's
// credentials. None of them may be valid after it.
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
	equal(t, "states of the keys", "revoked revoked", keys[0].State+" "+keys[1].State)
	equal(t, "keys", 2, len(keys))
}

// TestEraseAgain: an erasure that is repeated keeps the times of the first, and the latest revocation counts, so that
// it waits until the requests of all keys have ended, and not again.
func TestEraseAgain(t *testing.T) {
	o := newOffice(t)
	theirs := o.issueTo(o.create("Other", "plan"), auth.Terms{})
	erase := func(id store.ID, least, most time.Duration) auth.Account {
		t.Helper()
		revoked, err := o.BeginErasing(t.Context(), id)
		must(t, err)
		if revoked < least || revoked > most {
			t.Errorf("the latest key was revoked %v ago, want %v to %v", revoked, least, most)
		}
		a, err := o.Account(t.Context(), id)
		must(t, err)
		return a
	}
	erase(o.create("Without keys", "plan").ID, 24*time.Hour, 24*time.Hour)
	long := o.issue(auth.Terms{})
	o.issue(auth.Terms{})
	o.key(o.RevokeKey(t.Context(), long.ID))
	o.exec(`UPDATE credentials SET revoked_at = now() - interval '5 hours' WHERE id = $1`, long.ID)
	first := erase(o.account.ID, 0, time.Hour)
	equal(t, "the account is erased", true, first.ErasedAt != nil)
	o.exec(`UPDATE credentials SET revoked_at = now() - interval '2 hours' WHERE id <> $1 AND revoked_at IS NOT NULL`, long.ID)
	equal(t, "the account after a second erasure", first, erase(o.account.ID, 2*time.Hour, 3*time.Hour))
	equal(t, "the key of another account is valid", true, o.valid(theirs.Key)[0] != nil)
}
