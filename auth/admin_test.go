package auth_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// audited is a row of audit_log.
type audited struct {
	Actor, Action, Subject string
	Detail                 map[string]any
}

func auditLog(t *testing.T, pool *pgxpool.Pool) []audited {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT actor, action, subject, detail FROM audit_log ORDER BY id`)
	must(t, err)
	log, err := pgx.CollectRows(rows, pgx.RowToStructByPos[audited])
	must(t, err)
	return log
}

// TestEachOperationIsAudited runs every operation once and reads its records.
func TestEachOperationIsAudited(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	ctx := t.Context()
	must(t, o.SetPlan(ctx, auth.Plan{Code: "plus", Features: []string{"b", "a", "b"}, RateLimit: new(600)}))
	_, err := o.SetAccountPlan(ctx, o.account.ID, "plus")
	must(t, err)
	c := o.issue(t, auth.Terms{Scopes: []string{"runs:read"}})
	expiry := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
	must(t, ignore(o.SetKey(ctx, c.ID, auth.Terms{Name: new("n"), Scopes: []string{"runs:write", "runs:write"}, RateLimit: new(5), ExpiresAt: &expiry})))
	must(t, ignore(o.SetKey(ctx, c.ID, auth.Terms{ExpiresAt: new(time.Time)})))
	must(t, ignore(o.DisableKey(ctx, c.ID)))
	must(t, ignore(o.EnableKey(ctx, c.ID)))
	next, err := o.RotateKey(ctx, c.ID, time.Hour, nil)
	must(t, err)
	must(t, ignore(o.RevokeKey(ctx, c.ID)))

	account, cred := o.account.ID.Text("acct"), c.ID.Text("cred")
	want := []audited{
		{"olga", "plans.set", "plan", map[string]any{"features": []any{"api_access"}, "rate_limit_per_minute": nil, "jobs_per_month": nil, "max_unfinished_jobs": nil}},
		{"olga", "accounts.create", account, map[string]any{"name": "Acme", "plan": "plan"}},
		{"olga", "plans.set", "plus", map[string]any{"features": []any{"b", "a"}, "rate_limit_per_minute": 600.0, "jobs_per_month": nil, "max_unfinished_jobs": nil}},
		{"olga", "accounts.set-plan", account, map[string]any{"plan": "plus"}},
		{"olga", "keys.create", cred, map[string]any{"key_prefix": c.KeyPrefix, "account": account, "name": "key", "scopes": []any{"runs:read"}}},
		{"olga", "keys.set", cred, map[string]any{"name": "n", "scopes": []any{"runs:write"}, "rate_limit_per_minute": 5.0,
			"expires_at": expiry.Format(time.RFC3339)}},
		{"olga", "keys.set", cred, map[string]any{"expires_at": nil}},
		{"olga", "keys.disable", cred, map[string]any{}},
		{"olga", "keys.enable", cred, map[string]any{}},
		{"olga", "keys.rotate", next.ID.Text("cred"), map[string]any{"key_prefix": next.KeyPrefix, "rotated_from": cred, "grace": "1h0m0s"}},
		{"olga", "keys.revoke", cred, map[string]any{}},
	}
	if diff := cmp.Diff(want, auditLog(t, o.Pool)); diff != "" {
		t.Errorf("audit_log (-want +got):\n%s", diff)
	}
	for _, issued := range []auth.Issued{c, next} {
		if tables := storetest.TablesWith(t, o.Pool, issued.Key[len(issued.KeyPrefix):]); tables != nil {
			t.Errorf("the secret part of a key is in %v", tables)
		}
	}
	if storetest.TablesWith(t, o.Pool, c.KeyPrefix) == nil {
		t.Error("the test does not find the prefixes, so it would not find secrets")
	}
}

func TestAdminRejects(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.issue(t, auth.Terms{Scopes: []string{"runs:read"}})
	revoked, expired, disabled := o.issue(t, auth.Terms{}), o.issue(t, auth.Terms{}), o.issue(t, auth.Terms{})
	must(t, ignore(o.RevokeKey(t.Context(), revoked.ID)))
	must(t, ignore(o.DisableKey(t.Context(), disabled.ID)))
	must(t, ignore(o.Pool.Exec(t.Context(), `UPDATE credentials SET expires_at = now(), disabled_at = now() WHERE id = $1`, expired.ID)))
	before := auditLog(t, o.Pool)

	unknown := store.NewID()
	past := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	const badCode = "use 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit"
	const noScope = `unknown scope "admin"; the scopes are runs:read, runs:write, recommendations:read, alerts:read, webhooks:manage`
	ctx := t.Context()
	create := func(account store.ID, terms auth.Terms) error { return ignore(o.CreateKey(ctx, account, terms)) }
	set := func(id store.ID, terms auth.Terms) error { return ignore(o.SetKey(ctx, id, terms)) }
	rotate := func(id store.ID, grace time.Duration) error { return ignore(o.RotateKey(ctx, id, grace, nil)) }
	name := new("n")
	for _, test := range []struct {
		got  error
		want string
	}{
		{o.SetPlan(ctx, auth.Plan{Code: "A"}), `invalid plan code "A": ` + badCode},
		{o.SetPlan(ctx, auth.Plan{Code: ""}), `invalid plan code "": ` + badCode},
		{o.SetPlan(ctx, auth.Plan{Code: strings.Repeat("a", 65)}), `invalid plan code "` + strings.Repeat("a", 65) + `": ` + badCode},
		{o.SetPlan(ctx, auth.Plan{Code: "p", Features: []string{"api access"}}), `invalid feature "api access": ` + badCode},
		{o.SetPlan(ctx, auth.Plan{Code: "p", RateLimit: new(0)}), "invalid rate limit 0: use 1 to 1000000 requests per minute"},
		{o.SetPlan(ctx, auth.Plan{Code: "p", JobsPerMonth: new(int64(-1))}), "-1 jobs: the number must not be negative"},
		{o.SetPlan(ctx, auth.Plan{Code: "p", MaxUnfinishedJobs: new(int64(-1))}), "-1 jobs: the number must not be negative"},
		{ignore(o.SetAccountQuota(ctx, o.account.ID, true, new(int64(-1)))), "-1 jobs: the number must not be negative"},
		{ignore(o.CreateAccount(ctx, " ", "plan")), "the account name is empty"},
		{ignore(o.CreateAccount(ctx, "n", "none")), `there is no plan "none"; see aiv plans list`},
		{ignore(o.SetAccountPlan(ctx, o.account.ID, "none")), `there is no plan "none"; see aiv plans list`},
		{ignore(o.SetAccountPlan(ctx, unknown, "plan")), "there is no account " + unknown.Text("acct") + "; see aiv accounts list"},
		{create(o.account.ID, auth.Terms{}), "the credential has no name"},
		{create(o.account.ID, auth.Terms{Name: new("\t")}), "the credential name is empty"},
		{create(o.account.ID, auth.Terms{Name: name, Scopes: []string{"runs:read", "admin"}}), noScope},
		{create(o.account.ID, auth.Terms{Name: name, RateLimit: new(1_000_001)}), "invalid rate limit 1000001: use 1 to 1000000 requests per minute"},
		{create(o.account.ID, auth.Terms{Name: name, ExpiresAt: &past}), "the expiry 2020-01-02T03:04:05Z is in the past; use aiv keys revoke to end a key now"},
		{create(unknown, auth.Terms{Name: name}), "there is no account " + unknown.Text("acct") + "; see aiv accounts list"},
		{set(c.ID, auth.Terms{Scopes: []string{"admin"}}), noScope},
		{set(c.ID, auth.Terms{RateLimit: new(-1)}), "invalid rate limit -1: use 1 to 1000000 requests per minute"},
		{set(unknown, auth.Terms{Name: name}), "there is no credential " + unknown.Text("cred") + "; see aiv keys list"},
		{rotate(c.ID, -time.Second), "the grace period is negative"},
		{rotate(unknown, 0), "there is no credential " + unknown.Text("cred") + "; see aiv keys list"},
		{rotate(revoked.ID, 0), revoked.ID.Text("cred") + " is revoked; only active credentials can be rotated"},
		{rotate(expired.ID, 0), expired.ID.Text("cred") + " is expired; only active credentials can be rotated"},
		{rotate(disabled.ID, 0), disabled.ID.Text("cred") + " is disabled; only active credentials can be rotated"},
		{ignore(o.RevokeKey(ctx, unknown)), "there is no credential " + unknown.Text("cred") + "; see aiv keys list"},
	} {
		if got := fmt.Sprint(test.got); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
	if diff := cmp.Diff(before, auditLog(t, o.Pool)); diff != "" {
		t.Errorf("a rejected change is in audit_log (-before +after):\n%s", diff)
	}
}
