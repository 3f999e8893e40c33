package auth_test

import (
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"

	"github.com/jackc/pgx/v5"
)

// audited is a row of audit_log.
type audited struct {
	Actor, Action, Subject string
	Detail                 map[string]any
}

func (o *office) audited() []audited {
	o.t.Helper()
	log, err := store.Collect(o.t.Context(), o.Pool, pgx.RowToStructByPos[audited],
		`SELECT actor, action, subject, detail FROM audit_log ORDER BY id`)
	must(o.t, err)
	return log
}

// TestEachOperationIsAudited runs every operation once and reads its records.
func TestEachOperationIsAudited(t *testing.T) {
	o, ctx := newOffice(t), t.Context()
	must(t, o.SetPlan(ctx, auth.Plan{Code: "plus", Features: []string{"b", "a", "b"}, RateLimit: new(600)}))
	o.done(o.SetAccountPlan(ctx, o.account.ID, "plus"))
	c := o.issue(auth.Terms{Scopes: []string{"runs:read"}})
	expiry := time.Now().Add(24 * time.Hour).In(time.FixedZone("", 3600))
	scopes := []string{"runs:write", "runs:write"}
	terms := auth.Terms{Name: new("n"), Scopes: scopes, RateLimit: new(5), ExpiresAt: &expiry}
	o.key(o.SetKey(ctx, c.ID, terms))
	o.key(o.SetKey(ctx, c.ID, auth.Terms{ExpiresAt: new(time.Time)}))
	o.key(o.DisableKey(ctx, c.ID))
	o.key(o.EnableKey(ctx, c.ID))
	next := o.key(o.RotateKey(ctx, c.ID, time.Hour, nil))
	o.key(o.RevokeKey(ctx, c.ID))

	account, cred := o.account.ID.Text("acct"), c.ID.Text("cred")
	type detail = map[string]any
	equal(t, "audit_log", []audited{
		{"olga", "plans.set", "plan", detail{"features": []any{"api_access"}, "rate_limit_per_minute": nil,
			"jobs_per_month": nil, "max_unfinished_jobs": nil}},
		{"olga", "accounts.create", account, detail{"name": "Acme", "plan": "plan"}},
		{"olga", "plans.set", "plus", detail{"features": []any{"b", "a"}, "rate_limit_per_minute": 600.0,
			"jobs_per_month": nil, "max_unfinished_jobs": nil}},
		{"olga", "accounts.set-plan", account, detail{"plan": "plus"}},
		{"olga", "keys.create", cred, detail{"key_prefix": c.KeyPrefix, "account": account, "name": "key",
			"scopes": []any{"runs:read"}}},
		{"olga", "keys.set", cred, detail{"name": "n", "scopes": []any{"runs:write"}, "rate_limit_per_minute": 5.0,
			"expires_at": store.FormatTime(expiry)}},
		{"olga", "keys.set", cred, detail{"expires_at": nil}},
		{"olga", "keys.disable", cred, detail{}},
		{"olga", "keys.enable", cred, detail{}},
		{"olga", "keys.rotate", next.ID.Text("cred"), detail{"key_prefix": next.KeyPrefix, "rotated_from": cred,
			"grace": "1h0m0s"}},
		{"olga", "keys.revoke", cred, detail{}},
	}, o.audited())
}

// TestAdminRejects: what cannot be is refused, with a message that names it, and not audited.
func TestAdminRejects(t *testing.T) {
	o, ctx := newOffice(t), t.Context()
	revoked, expired, disabled := o.issue(auth.Terms{}).ID, o.issue(auth.Terms{}).ID, o.issue(auth.Terms{}).ID
	o.key(o.RevokeKey(ctx, revoked))
	o.key(o.DisableKey(ctx, disabled))
	o.exec(`UPDATE credentials SET expires_at = now(), disabled_at = now() WHERE id = $1`, expired)
	before := o.audited()

	unknown, account, name := store.NewID(), o.account.ID, new("n")
	plan := func(p auth.Plan) error { return o.SetPlan(ctx, p) }
	create := func(account store.ID, terms auth.Terms) error { return ignore(o.CreateKey(ctx, account, terms)) }
	set := func(id store.ID, terms auth.Terms) error { return ignore(o.SetKey(ctx, id, terms)) }
	rotate := func(id store.ID, grace time.Duration) error { return ignore(o.RotateKey(ctx, id, grace, nil)) }
	for _, test := range []struct {
		got  error
		want string // a part of the message
	}{
		{plan(auth.Plan{Code: "A"}), `plan code "A"`},
		{plan(auth.Plan{Code: "p", Features: []string{"api access"}}), `feature "api access"`},
		{plan(auth.Plan{Code: "p", RateLimit: new(0)}), "rate limit 0"},
		{plan(auth.Plan{Code: "p", JobsPerMonth: new(int64(-1))}), "-1 jobs"},
		{ignore(o.SetAccountQuota(ctx, account, true, new(int64(-1)))), "-1 jobs"},
		{ignore(o.CreateAccount(ctx, " ", "plan")), "name is empty"},
		{ignore(o.SetAccountPlan(ctx, account, "none")), `no plan "none"`},
		{ignore(o.SetAccountPlan(ctx, unknown, "plan")), "no account " + unknown.Text("acct")},
		{create(account, auth.Terms{}), "no name"},
		{create(account, auth.Terms{Name: name, Scopes: []string{"runs:read", "admin"}}), `unknown scope "admin"`},
		{create(account, auth.Terms{Name: name, RateLimit: new(1_000_001)}), "rate limit 1000001"},
		{create(account, auth.Terms{Name: name, ExpiresAt: from(-time.Hour)}), "is in the past"},
		{create(unknown, auth.Terms{Name: name}), "no account " + unknown.Text("acct")},
		{set(unknown, auth.Terms{Name: name}), "no credential " + unknown.Text("cred")},
		{rotate(revoked, -time.Second), "the grace period is negative"},
		{rotate(unknown, 0), "no credential " + unknown.Text("cred")},
		{rotate(revoked, 0), "is revoked"},
		{ignore(o.EnableKey(ctx, revoked)), "is revoked"},
		{rotate(expired, 0), "is expired"},
		{rotate(disabled, 0), "is disabled"},
	} {
		if test.got == nil || !strings.Contains(test.got.Error(), test.want) {
			t.Errorf("got %v, want %s", test.got, test.want)
		}
	}
	equal(t, "audit_log after rejected changes", before, o.audited())
}
