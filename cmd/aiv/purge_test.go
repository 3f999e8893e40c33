package main

import (
	"bufio"
	"context"
	"io"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/capability"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"
)

// accountRowCounts counts the rows of an account in each table that has any.
func accountRowCounts(t *testing.T, pool *pgxpool.Pool, account store.ID) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, table := range queryTexts(t, pool, `
SELECT table_name::text FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'account_id'`) {
		if n := storetest.Value[int](t, pool, `SELECT count(*) FROM `+table+` WHERE account_id = $1`, account); n > 0 {
			counts[table] = n
		}
	}
	return counts
}

func TestPurgeCommand(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	customers(t, connect(t, s.url()), 500, 300)
	before := prints{"usage -json", 0, `\{.*\{`}.expect(t, s.url())
	s.follow(t, "testdata/stories/purge.txt")
	equal(t, before, prints{"usage -json", 0, ""}.expect(t, s.url()), "usage")
}

// TestEraseCommand erases one of two accounts, and repeats an erasure that was interrupted at its end.
func TestEraseCommand(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	pool := connect(t, s.url())
	a, b := customers(t, pool, 100, 100)
	complete, other := accountRowCounts(t, pool, a), accountRowCounts(t, pool, b)
	var empty []string
	for _, table := range schema.Tables(capability.All) {
		if table.Placement == schema.ByAccount && complete[table.Name] == 0 {
			empty = append(empty, table.Name)
		}
	}
	equal(t, []string{"job_queue", "job_leases", "schedule_accounts"}, empty, "tables without rows of the account")
	s.names = []string{a.Text("acct"), "{a}", b.Text("acct"), "{b}"}
	s.prints(t, "accounts erase {a} -confirm B", failure(`the name of account {a} is not "B"; nothing was changed; see aiv accounts list`))
	equal(t, complete, accountRowCounts(t, pool, a), "rows of the account after an erasure that was not confirmed")
	s.follow(t, "testdata/stories/erase.txt")
	equal(t, map[string]int{"account_months": complete["account_months"]}, accountRowCounts(t, pool, a), "rows of the erased account")
	equal(t, other, accountRowCounts(t, pool, b), "rows of the other account")
	equal(t, []string{"B", "erased"}, queryTexts(t, pool, `SELECT name FROM accounts ORDER BY name COLLATE "C"`), "accounts")
	equal(t, []string{"accounts.erase", "accounts.erase.end", "accounts.erase", "accounts.erase.end"},
		queryTexts(t, pool, `SELECT action FROM audit_log WHERE subject = $1 ORDER BY id`, a.Text("acct")), "audit log")
}

// TestEraseInterrupted stops an erasure while it waits for requests that were admitted before the keys were revoked.
// The database is consistent, the account has no data that a client can read, and its name still confirms a repetition.
func TestEraseInterrupted(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	pool := connect(t, s.url())
	a, _ := customers(t, pool, 100, 100)
	storetest.Exec(t, pool, `UPDATE credentials SET revoked_at = NULL`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, stderr := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- testProgram(io.Discard, stderr, s.env).Run(ctx, []string{"accounts", "erase", a.Text("acct"), "-confirm", "A"})
		stderr.Close()
	}()
	printed := bufio.NewScanner(r)
	printed.Scan()
	if want := regexp.MustCompile(`^Waiting [0-9m]+s for requests that were admitted before the keys were revoked\.$`); !want.Match(printed.Bytes()) {
		t.Errorf("printed %q, want %s", printed.Text(), want)
	}
	cancel()
	printed.Scan()
	const want = "aiv: stopped after 2 runs; what was deleted stays deleted, and the same command deletes the rest: interrupted"
	if c := <-code; c != 1 || printed.Text() != want {
		t.Errorf("exit %d, %q; want 1, %q", c, printed.Text(), want)
	}
	prints{"verify", 0, `invariants hold`}.expect(t, s.url())
	equal(t, map[string]int{
		"account_months": 2, "credentials": 1, "api_rate_limit_buckets": 1, "webhook_endpoints": 1, "webhook_queues": 1,
		"job_turns": 1, "brand_revisions": 1, "visibility_recounts": 1,
	}, accountRowCounts(t, pool, a), "rows")
	storetest.Exec(t, pool, `UPDATE credentials SET revoked_at = now() - interval '1 hour'`)
	prints{"accounts erase " + a.Text("acct") + " -confirm A", 0, `is erased: 0 runs with 0 jobs`}.expect(t, s.url())
}
