package auth_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/auth"
	"aiv/store"
	"aiv/store/storetest"
)

// TestNoKeysOfAnErasedAccount creates and rotates keys while an erasure waits for the lock of one of the account's
// credentials. None of them may be valid after it.
func TestNoKeysOfAnErasedAccount(t *testing.T) {
	t.Parallel()
	if storetest.OnCitus() {
		t.Skip("about locks of rows of PostgreSQL: on a cluster other locks serialize changes of a reference table")
	}
	o := newOffice(t)
	held, other := o.issue(t, auth.Terms{}), o.issue(t, auth.Terms{})
	tx := begin(t, o.Pool, `SELECT FROM credentials WHERE id = $1 FOR UPDATE`, held.ID)

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
	for name, result := range map[string]<-chan error{"create": created, "rotate": rotated} {
		if got := fmt.Sprint(<-result); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	var valid int
	must(t, o.Pool.QueryRow(t.Context(), `SELECT count(*) FROM credentials WHERE revoked_at IS NULL`).Scan(&valid))
	if valid != 0 {
		t.Errorf("%d credentials of the erased account are not revoked", valid)
	}
}

// TestErasureWhileAKeyChanges: an erasure and a change of a key lock the key before what all changes of keys lock.
func TestErasureWhileAKeyChanges(t *testing.T) {
	t.Parallel()
	if storetest.OnCitus() {
		t.Skip("about the triggers of PostgreSQL: a cluster has none")
	}
	o := newOffice(t)
	key := o.issue(t, auth.Terms{})
	tx := begin(t, o.Pool, `SELECT FROM credentials WHERE id = $1 FOR UPDATE`, key.ID)
	erased := start(func() error { return ignore(o.BeginErasing(t.Context(), o.account.ID)) })
	storetest.UntilWaiting(t, o.Pool, "transactionid")
	must(t, ignore(tx.Exec(t.Context(), `UPDATE credentials SET disabled_at = now() WHERE id = $1`, key.ID)))
	must(t, tx.Commit(t.Context()))
	must(t, <-erased)
}

// TestEraseAgain: an erasure that is repeated keeps the times of the first, and the latest revocation counts, so that
// it waits until the requests of all keys have ended, and not again.
func TestEraseAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	other, err := o.CreateAccount(t.Context(), "Other", "plan")
	must(t, err)
	theirs, err := o.CreateKey(t.Context(), other.ID, auth.Terms{Name: new("theirs")})
	must(t, err)
	begin := func(id store.ID, least, most time.Duration) {
		t.Helper()
		revoked, err := o.BeginErasing(t.Context(), id)
		must(t, err)
		if revoked < least || revoked > most {
			t.Errorf("the latest key was revoked %v ago, want %v to %v", revoked, least, most)
		}
	}
	begin(o.account.ID, 24*time.Hour, 24*time.Hour) // without keys
	must(t, ignore(o.Pool.Exec(t.Context(), `UPDATE accounts SET erased_at = NULL`)))
	long := o.issue(t, auth.Terms{})
	o.issue(t, auth.Terms{})
	must(t, ignore(o.RevokeKey(t.Context(), long.ID)))
	must(t, ignore(o.Pool.Exec(t.Context(), `UPDATE credentials SET revoked_at = $2 WHERE id = $1`, long.ID, time.Now().Add(-5*time.Hour))))
	begin(o.account.ID, 0, time.Hour)
	must(t, ignore(o.Pool.Exec(t.Context(), `UPDATE credentials SET revoked_at = $1 WHERE revoked_at IS NOT NULL`, time.Now().Add(-2*time.Hour))))
	first, err := o.Account(t.Context(), o.account.ID)
	must(t, err)
	begin(o.account.ID, 2*time.Hour, 3*time.Hour)
	again, err := o.Account(t.Context(), o.account.ID)
	must(t, err)
	if first.ErasedAt == nil || !cmp.Equal(again, first) {
		t.Errorf("erased at %v, and again at %v", first.ErasedAt, again.ErasedAt)
	}

	must(t, o.EndErasing(t.Context(), o.account.ID))
	end, err := o.Account(t.Context(), o.account.ID)
	must(t, err)
	first.Name = "erased"
	if diff := cmp.Diff(first, end); diff != "" {
		t.Errorf("after the end (-want +got):\n%s", diff)
	}
	left, err := o.Keys(t.Context(), nil)
	must(t, err)
	if len(left) != 1 || left[0].ID != theirs.ID || left[0].State != "active" {
		t.Errorf("keys after the end: %+v", left)
	}
}
