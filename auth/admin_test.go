package auth_test

import (
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
	"aiv/store/storetest"
)

// TestAdminRejects: what cannot be is refused, with a message that names it, and not audited.
func TestAdminRejects(t *testing.T) {
	o, ctx := newOffice(t), t.Context()
	revoked, expired, disabled := o.issue(auth.Terms{}).ID, o.issue(auth.Terms{}).ID, o.issue(auth.Terms{}).ID
	o.key(o.RevokeKey(ctx, revoked))
	o.key(o.DisableKey(ctx, disabled))
	o.exec(`UPDATE credentials SET expires_at = now(), disabled_at = now() WHERE id = $1`, expired)
	const audited = `SELECT count(*) FROM audit_log`
	before := storetest.Value[int](t, o.Pool, audited)

	unknown, account, name := store.NewID(), o.account.ID, new("n")
	plan := func(p auth.Plan) error { return o.SetPlan(ctx, p) }
	create := func(account store.ID, terms auth.Terms) error { return ignore(o.CreateKey(ctx, account, terms)) }
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
		{ignore(o.SetKey(ctx, unknown, auth.Terms{Name: name})), "no credential " + unknown.Text("cred")},
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
	equal(t, "rows of audit_log", before, storetest.Value[int](t, o.Pool, audited))
}
