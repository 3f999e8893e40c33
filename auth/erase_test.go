package auth_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/auth"
	"aiv/store/storetest"
)

// TestNoKeysOfAnErasedAccount creates and rotates keys while an erasure waits for the lock of one of the account's credentials.
// None of them may be valid after it.
func TestNoKeysOfAnErasedAccount(t *testing.T) {
	t.Parallel()
	if storetest.OnCitus() {
		t.Skip("about locks of rows of PostgreSQL: on a cluster other locks serialize changes of a reference table")
	}
	o := newOffice(t)
	held, other := o.issue(t, auth.Terms{}), o.issue(t, auth.Terms{})
	tx, err := o.Pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // for failures
	_, err = tx.Exec(t.Context(), `SELECT FROM credentials WHERE id = $1 FOR UPDATE`, held.ID)
	must(t, err)

	erased := make(chan error, 1)
	go func() {
		_, err := o.BeginErasing(t.Context(), o.account.ID)
		erased <- err
	}()
	storetest.UntilWaiting(t, o.Pool, "transactionid")
	created, rotated := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := o.CreateKey(t.Context(), o.account.ID, auth.Terms{Name: new("late")})
		created <- err
	}()
	go func() {
		_, err := o.RotateKey(t.Context(), other.ID, time.Hour, nil)
		rotated <- err
	}()
	storetest.Eventually(t, "the three transactions wait for locks, or have ended", func() bool {
		var waiting int
		must(t, o.Pool.QueryRow(t.Context(),
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting))
		return waiting+len(created)+len(rotated) >= 3
	})
	must(t, tx.Rollback(t.Context()))
	must(t, <-erased)

	want := fmt.Sprintf("account %s is erased", o.account.ID.Text("acct"))
	for name, result := range map[string]chan error{"create": created, "rotate": rotated} {
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
	erased := make(chan error, 1)
	must(t, pgx.BeginFunc(t.Context(), o.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT FROM credentials WHERE id = $1 FOR UPDATE`, key.ID); err != nil {
			return err
		}
		go func() {
			_, err := o.BeginErasing(t.Context(), o.account.ID)
			erased <- err
		}()
		storetest.UntilWaiting(t, o.Pool, "transactionid")
		_, err := tx.Exec(t.Context(), `UPDATE credentials SET disabled_at = now() WHERE id = $1`, key.ID)
		return err
	}))
	must(t, <-erased)
}
