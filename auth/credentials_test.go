package auth_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/auth"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestRateLimits: a credential's own limit, else its plan's, else the service's.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	own, plain := o.issue(t, auth.Terms{RateLimit: new(auth.MaxRateLimit)}), o.issue(t, auth.Terms{})
	for _, test := range []struct {
		plan       *int
		own, plain int
	}{{nil, auth.MaxRateLimit, auth.DefaultRateLimit}, {new(600), auth.MaxRateLimit, 600}, {nil, auth.MaxRateLimit, auth.DefaultRateLimit}} {
		must(t, o.SetPlan(t.Context(), auth.Plan{Code: "plan", Features: []string{auth.APIAccess}, RateLimit: test.plan}))
		found := valid(t, o.Pool, own.Key, plain.Key)
		if got := found[own.Key].RateLimit; got != test.own {
			t.Errorf("the credential's own: got %d, want %d", got, test.own)
		}
		if got := found[plain.Key].RateLimit; got != test.plain {
			t.Errorf("the plan's: got %d, want %d", got, test.plain)
		}
	}
}

// TestOwnQuotaReplacesThePlans: an account's own quota replaces that of its plan, also where it is none.
func TestOwnQuotaReplacesThePlans(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.issue(t, auth.Terms{})
	for _, test := range []struct {
		plan       *int64
		own        bool
		jobs, want *int64
	}{
		{nil, false, nil, nil},
		{new(int64(7)), false, nil, new(int64(7))},
		{new(int64(7)), true, new(int64(9)), new(int64(9))},
		{nil, true, new(int64(0)), new(int64(0))},
		{new(int64(7)), true, nil, nil},
		{new(int64(8)), false, nil, new(int64(8))},
		{nil, false, nil, nil},
	} {
		must(t, o.SetPlan(t.Context(), auth.Plan{Code: "plan", JobsPerMonth: test.plan, MaxUnfinishedJobs: test.plan}))
		must(t, ignore(o.SetAccountQuota(t.Context(), o.account.ID, test.own, test.jobs)))
		got := valid(t, o.Pool, c.Key)[c.Key]
		if !cmp.Equal(got.JobsPerMonth, test.want) || !cmp.Equal(got.MaxUnfinishedJobs, test.plan) {
			t.Errorf("%+v: got %v jobs per month, %v unfinished jobs", test, got.JobsPerMonth, got.MaxUnfinishedJobs)
		}
	}
}

func TestKnownCredential(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.issue(t, auth.Terms{Name: new("worker"), Scopes: []string{"runs:write", "runs:read", "runs:write"}})
	want := &auth.Credential{
		ID: c.ID, AccountID: o.account.ID, Name: "worker", KeyPrefix: c.KeyPrefix, Scopes: []string{"runs:write", "runs:read"},
		RateLimit: 60, Plan: auth.Plan{Code: "plan", Features: []string{"api_access"}},
	}
	got := valid(t, o.Pool, knownKeys[0].key, c.Key)
	if diff := cmp.Diff(map[string]*auth.Credential{c.Key: want}, got, cmpopts.IgnoreUnexported(auth.Credential{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	must(t, ignore(o.Pool.Exec(t.Context(), `UPDATE credentials SET expires_at = 'infinity'`))) // which means never
	if diff := cmp.Diff(want, valid(t, o.Pool, c.Key)[c.Key]); diff != "" {
		t.Errorf("with the expiry infinity (-want +got):\n%s", diff)
	}
	if all, err := o.Keys(t.Context(), nil); err != nil || len(all) != 1 || all[0].ExpiresAt != nil {
		t.Errorf("with the expiry infinity: %+v, %v", all, err)
	}
	for _, test := range []struct {
		scopes []string
		want   bool
	}{{[]string{"runs:read"}, true}, {[]string{"alerts:read"}, false}, {[]string{"alerts:read", "runs:write"}, true}, {nil, false}} {
		if has := want.HasScope(test.scopes...); has != test.want {
			t.Errorf("any of %v: got %v", test.scopes, has)
		}
	}
	if !want.Plan.Entitled("api_access") || want.Plan.Entitled("api") {
		t.Error("Entitled does not match the features of the plan")
	}
}

// TestChangedStateHoldsAtOnce: a change of state holds at once and is listed.
func TestChangedStateHoldsAtOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.issue(t, auth.Terms{})
	step := func(name, state string, change func(context.Context, store.ID) (auth.Issued, error)) auth.Issued {
		t.Helper()
		got, err := change(t.Context(), c.ID)
		must(t, err)
		if got.State != state {
			t.Errorf("%s: the state is %s, want %s", name, got.State, state)
		}
		if _, ok := valid(t, o.Pool, c.Key)[c.Key]; ok != (state == "active") {
			t.Errorf("%s: the key is valid: %v", name, ok)
		}
		return got
	}
	first := step("disable", "disabled", o.DisableKey)
	if again := step("disable again", "disabled", o.DisableKey); !again.DisabledAt.Equal(*first.DisabledAt) {
		t.Error("a second disable moves the time of the first")
	}
	step("enable", "active", o.EnableKey)
	step("enable again", "active", o.EnableKey)
	step("disable before revoke", "disabled", o.DisableKey)
	first = step("revoke", "revoked", o.RevokeKey)
	if again := step("revoke again", "revoked", o.RevokeKey); !again.RevokedAt.Equal(*first.RevokedAt) {
		t.Error("a second revoke moves the time of the first")
	}
	if _, err := o.EnableKey(t.Context(), c.ID); err == nil || !strings.Contains(err.Error(), "is revoked, which is permanent") {
		t.Errorf("enable after revoke: got %v, want a refusal", err)
	}
	step("the key stays revoked", "revoked", o.RevokeKey)
}

func TestSetKeyLeavesTheRest(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	expiry := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	want := o.issue(t, auth.Terms{Name: new("a"), Scopes: []string{"runs:read"}, RateLimit: new(7), ExpiresAt: &expiry})
	want.Key = ""
	for _, test := range []struct {
		terms  auth.Terms
		change func(*auth.Issued)
	}{
		{auth.Terms{}, func(*auth.Issued) {}},
		{auth.Terms{Name: new("b")}, func(c *auth.Issued) { c.Name = "b" }},
		{auth.Terms{Scopes: []string{"alerts:read", "alerts:read"}}, func(c *auth.Issued) { c.Scopes = []string{"alerts:read"} }},
		{auth.Terms{Scopes: []string{}}, func(c *auth.Issued) { c.Scopes = []string{} }},
		{auth.Terms{RateLimit: new(8)}, func(c *auth.Issued) { c.RateLimit = 8 }},
		{auth.Terms{ExpiresAt: new(time.Time)}, func(c *auth.Issued) { c.ExpiresAt = nil }},
		{auth.Terms{ExpiresAt: &expiry}, func(c *auth.Issued) { c.ExpiresAt = &expiry }},
	} {
		test.change(&want)
		got, err := o.SetKey(t.Context(), want.ID, test.terms)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.terms, diff)
		}
	}
}

// TestRotationKeepsTerms: the successor has the same terms, and the old key is valid for the grace period and no longer.
func TestRotationKeepsTerms(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Minute).UTC().Truncate(time.Microsecond)
	for _, test := range []struct {
		name     string
		terms    auth.Terms
		grace    time.Duration
		oldLives bool
		oldEnds  func(now time.Time) time.Time
	}{
		{"a day", auth.Terms{Scopes: []string{"runs:read"}, RateLimit: new(7)}, 24 * time.Hour, true,
			func(now time.Time) time.Time { return now.Add(24 * time.Hour) }},
		{"no grace", auth.Terms{}, 0, false, func(now time.Time) time.Time { return now }},
		{"grace does not prolong", auth.Terms{ExpiresAt: &soon}, 24 * time.Hour, true, func(time.Time) time.Time { return soon }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			old := o.issue(t, test.terms)
			next, err := o.RotateKey(t.Context(), old.ID, test.grace, nil)
			must(t, err)
			want := old
			want.RotatedFrom = &old.ID
			if diff := cmp.Diff(want, next, cmpopts.IgnoreFields(auth.Issued{}, "ID", "Key", "KeyPrefix", "CreatedAt")); diff != "" {
				t.Errorf("the successor (-want +got):\n%s", diff)
			}
			if next.ID == old.ID || next.Key == old.Key {
				t.Error("the successor has the ID or the key of the old credential")
			}
			listed, err := o.Keys(t.Context(), &o.account.ID)
			must(t, err)
			if ends := *listed[0].ExpiresAt; !ends.Equal(test.oldEnds(next.CreatedAt)) {
				t.Errorf("the old key ends at %v, %v after the rotation", ends, ends.Sub(next.CreatedAt))
			}
			found := valid(t, o.Pool, old.Key, next.Key)
			if _, lives := found[old.Key]; lives != test.oldLives {
				t.Errorf("the old key is valid: %v", lives)
			}
			if found[next.Key] == nil {
				t.Error("the new key is not valid")
			}
			// After the grace period the old key is invalid.
			must(t, ignore(o.Pool.Exec(t.Context(), `UPDATE credentials SET expires_at = now() WHERE id = $1`, old.ID)))
			if found := valid(t, o.Pool, old.Key); len(found) != 0 {
				t.Error("the old key outlives its grace period")
			}
		})
	}
}

// TestConcurrentChanges: a change of a credential is decided by what an earlier one, for which it waited, has made of
// it.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	if storetest.OnCitus() {
		t.Skip("about locks of rows of PostgreSQL: on a cluster other locks serialize changes of a reference table")
	}
	o := newOffice(t)
	rotate := func(ctx context.Context, id store.ID) (auth.Issued, error) {
		return o.RotateKey(ctx, id, time.Hour, nil)
	}
	for _, test := range []struct {
		name          string
		first, second func(context.Context, store.ID) (auth.Issued, error)
		want          string
	}{
		{"two rotations", rotate, rotate, "has been rotated already"},
		{"rotate after revoke", o.RevokeKey, rotate, "is revoked"},
		{"enable after revoke", o.RevokeKey, o.EnableKey, "is revoked"},
	} {
		c := o.issue(t, auth.Terms{})
		tx := begin(t, o.Pool, `SELECT FROM credentials WHERE id = $1 FOR UPDATE`, c.ID)
		first := start(func() error { return ignore(test.first(t.Context(), c.ID)) })
		storetest.Eventually(t, "the first waits", func() bool { return storetest.Waiting(t, o.Pool) == 1 })
		second := start(func() error { return ignore(test.second(t.Context(), c.ID)) })
		storetest.Eventually(t, "the second waits", func() bool { return storetest.Waiting(t, o.Pool) == 2 })
		must(t, tx.Rollback(t.Context()))
		if err := <-first; err != nil {
			t.Errorf("%s: the first failed: %v", test.name, err)
		}
		if err := <-second; err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want that it %s", test.name, err, test.want)
		}
	}
}

// TestExpiringKeyIsReported: a key that expires soon is reported until it has a successor, which has the expiry of the old key or
// another.
func TestExpiringKeyIsReported(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	soon, later := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond), time.Now().Add(1000*time.Hour).UTC().Truncate(time.Microsecond)
	o.issue(t, auth.Terms{})
	old := o.issue(t, auth.Terms{ExpiresAt: &soon})
	want := func(ids ...store.ID) {
		t.Helper()
		expiring, err := auth.ReadExpiring(t.Context(), o.Pool, 24*time.Hour, 10)
		must(t, err)
		var got []store.ID
		for _, e := range expiring {
			got = append(got, e.ID)
		}
		if !slices.Equal(got, ids) {
			t.Errorf("got %v, want %v", got, ids)
		}
	}
	rotate := func(id store.ID, expires *time.Time) auth.Issued {
		t.Helper()
		next, err := o.RotateKey(t.Context(), id, 2*time.Hour, expires)
		must(t, err)
		return next
	}
	want(old.ID)
	same := rotate(old.ID, nil)
	want(same.ID)
	extended := rotate(same.ID, &later)
	want()
	if e := extended.ExpiresAt; e == nil || !e.Equal(later) {
		t.Errorf("the new key expires at %v, want %v", e, later)
	}
	forever := rotate(extended.ID, &time.Time{})
	if e := forever.ExpiresAt; e != nil {
		t.Errorf("the new key expires at %v, want never", e)
	}
	want()
	must(t, ignore(o.RevokeKey(t.Context(), forever.ID)))
	want(extended.ID)
	// The grace period is no expiry of another key.
	if _, err := o.RotateKey(t.Context(), extended.ID, time.Hour, nil); err == nil || !strings.Contains(err.Error(), "-expires") {
		t.Errorf("rotating again after the successor was revoked: %v", err)
	}
	again := rotate(extended.ID, &time.Time{})
	if again.ExpiresAt != nil {
		t.Errorf("the new key expires at %v, want never", again.ExpiresAt)
	}
	if _, err := o.RotateKey(t.Context(), extended.ID, 0, &later); err == nil || !strings.Contains(err.Error(), "rotate its successor "+again.ID.Text("cred")) {
		t.Errorf("rotating a key that has a valid successor: %v", err)
	}
	past := time.Now().Add(-time.Hour)
	if _, err := o.RotateKey(t.Context(), extended.ID, 0, &past); err == nil || !strings.Contains(err.Error(), "is in the past") {
		t.Errorf("an expiry in the past: %v", err)
	}
	want()
	// Only valid keys are reported, the first to expire first, and only valid successors count.
	sooner := time.Now().Add(time.Minute).UTC().Truncate(time.Microsecond)
	second, first := o.issue(t, auth.Terms{ExpiresAt: &soon}), o.issue(t, auth.Terms{ExpiresAt: &sooner})
	want(first.ID, second.ID)
	if one, err := auth.ReadExpiring(t.Context(), o.Pool, 24*time.Hour, 1); err != nil || len(one) != 1 || one[0].ID != first.ID {
		t.Errorf("at most one: %v, %v", one, err)
	}
	next := rotate(first.ID, nil)
	for _, step := range []struct {
		do   func(context.Context, store.ID) (auth.Issued, error)
		id   store.ID
		want []store.ID
	}{
		{o.DisableKey, second.ID, []store.ID{next.ID}},
		{o.DisableKey, next.ID, []store.ID{first.ID}},
		{o.EnableKey, next.ID, []store.ID{next.ID}},
		{o.RevokeKey, next.ID, []store.ID{first.ID}},
	} {
		must(t, ignore(step.do(t.Context(), step.id)))
		want(step.want...)
	}
	must(t, ignore(o.Pool.Exec(t.Context(), `UPDATE credentials SET expires_at = now() WHERE id = $1`, first.ID)))
	want()
}

func TestListsOfCredentials(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	must(t, o.SetPlan(t.Context(), auth.Plan{Code: "a-plan", RateLimit: new(9)}))
	other, err := o.CreateAccount(t.Context(), "Other", "a-plan")
	must(t, err)
	first, second := o.issue(t, auth.Terms{}), o.issue(t, auth.Terms{})
	theirs, err := o.CreateKey(t.Context(), other.ID, auth.Terms{Name: new("theirs")})
	must(t, err)

	must(t, ignore(o.Pool.Exec(t.Context(), `UPDATE credentials SET created_at = $2 WHERE id = $1`, second.ID, time.Now().Add(-time.Hour))))
	must(t, ignore(o.SetAccountPlan(t.Context(), o.account.ID, "plan"))) // moves the row within its table, but not in the list

	plans, err := o.Plans(t.Context())
	must(t, err)
	want := []auth.Plan{{Code: "a-plan", Features: []string{}, RateLimit: new(9)}, {Code: "plan", Features: []string{"api_access"}}}
	if diff := cmp.Diff(want, plans); diff != "" {
		t.Errorf("plans (-want +got):\n%s", diff)
	}
	accounts, err := o.Accounts(t.Context())
	must(t, err)
	if diff := cmp.Diff([]auth.Account{o.account, other}, accounts, cmpopts.IgnoreFields(auth.Account{}, "CreatedAt")); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	names := func(account *store.ID) (ids []store.ID) {
		keys, err := o.Keys(t.Context(), account)
		must(t, err)
		for _, k := range keys {
			if k.Key != "" {
				t.Error("the list shows a raw key")
			}
			ids = append(ids, k.ID)
		}
		return ids
	}
	if got := names(&o.account.ID); !slices.Equal(got, []store.ID{second.ID, first.ID}) {
		t.Errorf("keys of an account: got %v", got)
	}
	if got := names(nil); !slices.Equal(got, []store.ID{second.ID, first.ID, theirs.ID}) {
		t.Errorf("keys of all: got %v", got)
	}
}
