package main

import (
	"errors"
	"strings"
	"testing"

	"aiv/auth"
	"aiv/store/storetest"
)

// secretInPipe refuses to print a key where it may stay.
const secretInPipe = "the key is a secret; to write it to a pipe or a file, add -json"

// shown is what a command says beside a key.
func shown(credential string) string {
	return "The key of " + credential + " is shown only this once; store it now.\n"
}

// accountJSON is an account as commands print it.
func accountJSON(id, name, plan, quota string) string {
	return `{"id":"` + id + `","name":"` + name + `","plan":"` + plan + `",` + quota +
		`,"created_at":"{time}","erased_at":null}`
}

const noQuota = `"own_quota":false,"jobs_per_month":null`

// planJSON is a plan as commands print it.
func planJSON(code, features, limits string) string {
	return `{"code":"` + code + `","features":[` + features + `],` + limits + `}`
}

// credentialJSON is a credential as commands print it. state has the members from the state on.
func credentialJSON(id, account, name, prefix, scopes, state string) string {
	return `{"id":"` + id + `","account_id":"` + account + `","name":"` + name + `","key_prefix":"` + prefix +
		`","scopes":[` + scopes +
		`],"rate_limit_per_minute":120,` + state + "}\n"
}

func TestKeysFromIssueToRevocation(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.env["AIV_ACTOR"] = "tess@desk"
	const absent = "acct_00000000000000000000000000"
	const readWrite = `"runs:read","runs:write"`
	const active = `"state":"active","expires_at":null,"disabled_at":null,"revoked_at":null,"rotated_from":null,"created_at":"{time}","key":"`
	const rotated = `,"revoked_at":null,"rotated_from":"{cred1}","created_at":"{time}"`
	const three = "Credential {cred3}, \"ci\", is "
	const state = ": scopes runs:read,runs:write; 120 requests per minute; expires: never.\n"
	s.run(t, []step{
		// A key that could not be printed must not exist afterwards.
		piped(misuse("keys create", "-account "+absent+" -name ci -scopes runs:read", secretInPipe)),
		piped(misuse("keys rotate", "cred_00000000000000000000000000", secretInPipe)),
		{line: "keys list", stdout: "There are no credentials; create one with aiv keys create.\n"},
		{line: "audit list", stdout: "There are no changes.\n"},
		{line: "accounts list", stdout: "There are no accounts; create one with aiv accounts create.\n"},
		{line: "plans set growth -features api_access,api_access,beta -rate 120 -json",
			stdout: planJSON("growth", `"api_access","beta"`,
				`"rate_limit_per_minute":120,"jobs_per_month":null,"max_unfinished_jobs":null`) + "\n"},
		{line: "plans set -features= trial", stdout: `
Plan trial is set: features none; 60 (default) requests per minute.
Without the feature api_access, its accounts can only read their identity.
`},
		{line: "plans list", stdout: `
CODE    FEATURES         REQUESTS PER MINUTE  JOBS PER MONTH  UNFINISHED JOBS
growth  api_access,beta  120                  none            1000000 (default)
trial   none             60 (default)         none            1000000 (default)
`},
		{line: "accounts create -json -name 'Acme & Söhne' --plan growth",
			stdout: accountJSON("{acct1}", "Acme & Söhne", "growth", noQuota) + "\n"},
		{line: "accounts set-plan {acct1} growth", stdout: "Account {acct1}, \"Acme & Söhne\", is now on plan growth.\n"},
		{line: "keys create -account {acct1} -name ci -scopes runs:read,runs:write -json", stderr: shown("{cred1}"),
			stdout: credentialJSON("{cred1}", "{acct1}", "ci", "{prefix1}", readWrite, active+`{key1}"`)},
		{line: "keys create -account {acct1} -name desk -scopes '' -rate 5 -expires 2999-01-31T00:00:00+01:00",
			stderr: shown("{cred2}"), stdout: `
Credential {cred2}, "desk", belongs to {acct1}: scopes none; 5 requests per minute; expires: 2999-01-30T23:00:00Z.

  {key2}

`},
		{line: "keys set {cred2} -expires never -scopes alerts:read",
			stdout: "Credential {cred2}, \"desk\", is active: scopes alerts:read; 5 requests per minute; expires: never.\n"},
		{line: "keys rotate {cred1} -json -grace 0s", stderr: shown("{cred3}"),
			stdout: credentialJSON("{cred3}", "{acct1}", "ci", "{prefix2}", readWrite,
				`"state":"active","expires_at":null,"disabled_at":null`+rotated+`,"key":"{key3}"`)},
		fails("keys rotate {cred1} -json", "{cred1} is expired; only active credentials can be rotated"),
		{line: "keys rotate {cred2} -grace 90m", stderr: shown("{cred4}"), stdout: `
Credential {cred4}, "desk", belongs to {acct1}: scopes alerts:read; 5 requests per minute; expires: never.
The old key, of {cred2}, stays valid for 1h30m, or until its expiry if that is earlier.

  {key4}

`},
		{line: "keys disable {cred3} -json", stdout: credentialJSON("{cred3}", "{acct1}", "ci", "{prefix2}",
			readWrite, `"state":"disabled","expires_at":null,"disabled_at":"{time}"`+rotated)},
		{line: "keys enable {cred3}", stdout: three + "active" + state},
		{line: "keys revoke {cred3}", stdout: three + "revoked" + state},
		fails("keys enable {cred3}", "{cred3} is revoked, which is permanent; create another with aiv keys create"),
		{line: "accounts create -name B -plan growth", stdout: "Account {acct2} was created: \"B\" on plan growth.\n"},
		{line: "keys create -account {acct2} -name 'two\tcells\x1b[2J\u202e' -scopes runs:read -json", stderr: shown("{cred5}"),
			stdout: credentialJSON("{cred5}", "{acct2}", "two\\tcells\\u001b[2J\u202e", "{prefix3}", `"runs:read"`, active+`{key5}"`)},
		// The columns are as wide as the ids that stand here by name.
		{line: "keys list -account {acct2}", stdout: `
ID                               ACCOUNT                          NAME            KEY                 SCOPES     RATE  STATE   EXPIRES
{cred5}  {acct2}  two�cells�[2J�  {prefix3}…  runs:read  120   active  never
`},
	})

	// The error reports that there is a credential whose key was not printed.
	var stderr strings.Builder
	p := testProgram(full{}, &stderr, s.env)
	code := p.Run(t.Context(), []string{"keys", "create", "-account", s.names[0], "-name", "n", "-scopes", "runs:read", "-json"})
	unshown := "aiv: credential {cred6} was created, but its key could not be printed; revoke it: write the output: no space left on device\n"
	if got := s.name(stderr.String()); code != 1 || got != unshown {
		t.Errorf("exit %d, stderr %q; want 1, %q", code, got, unshown)
	}

	// What of the keys is on record: nothing but their prefixes.
	pool := connect(t, s.url())
	var actions string
	must(t, pool.QueryRow(t.Context(), `SELECT string_agg(DISTINCT actor || ' ' || action, ', ') FROM audit_log`).Scan(&actions))
	equal(t, "tess@desk accounts.create, tess@desk accounts.set-plan, tess@desk keys.create, tess@desk keys.disable, "+
		"tess@desk keys.enable, tess@desk keys.revoke, tess@desk keys.rotate, tess@desk keys.set, tess@desk plans.set", actions, "audit log")
	for i := 0; i < len(s.names); i += 2 {
		key, name := s.names[i], s.names[i+1]
		if !strings.HasPrefix(name, "{key") {
			continue
		}
		prefix := key[:len("aiv_live_")+8]
		if storetest.TablesWith(t, pool, prefix) == nil {
			t.Errorf("the search does not find the prefix of %s, so it would not find the rest", name)
		}
		tables := storetest.TablesWith(t, pool, key[len(prefix):])
		if _, err := auth.HashKey(key); tables != nil || err != nil {
			t.Errorf("%s is in the tables %v (%v)", name, tables, err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
