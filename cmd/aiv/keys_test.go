package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/auth"
	"aiv/store/storetest"
)

func TestKeysFromIssueToRevocation(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := &story{env: map[string]string{"DATABASE_URL": url, "AIV_ACTOR": "tess@desk"}}
	s.run(t, []step{
		// A key that could not be printed must not exist afterwards.
		{line: "keys create -account acct_00000000000000000000000000 -name ci -scopes runs:read", piped: true, code: 2,
			stderr: "aiv: the key is a secret; to write it to a pipe or a file, add -json\nRun `aiv keys create -h` for help.\n"},
		{line: "keys rotate cred_00000000000000000000000000", piped: true, code: 2,
			stderr: "aiv: the key is a secret; to write it to a pipe or a file, add -json\nRun `aiv keys rotate -h` for help.\n"},
		{line: "keys list", stdout: "There are no credentials; create one with aiv keys create.\n"},
		{line: "audit list", stdout: "There are no changes.\n"},
		{line: "plans list -json", stdout: "[]\n"},
		{line: "accounts list", stdout: "There are no accounts; create one with aiv accounts create.\n"},
		{
			line:   "plans set growth -features api_access,api_access,beta -rate 120 -json",
			stdout: `{"code":"growth","features":["api_access","beta"],"rate_limit_per_minute":120,"jobs_per_month":null,"max_unfinished_jobs":null}` + "\n",
		},
		{
			line:   "plans set -features= trial",
			stdout: "Plan trial is set: features none; 60 (default) requests per minute.\nWithout the feature api_access, its accounts can only read their identity.\n",
		},
		{
			line: "plans list",
			stdout: `
CODE    FEATURES         REQUESTS PER MINUTE  JOBS PER MONTH  UNFINISHED JOBS
growth  api_access,beta  120                  none            1000000 (default)
trial   none             60 (default)         none            1000000 (default)
`,
		},
		{
			line:   "accounts create -json -name 'Acme & Söhne' --plan growth",
			stdout: `{"id":"{acct1}","name":"Acme & Söhne","plan":"growth","own_quota":false,"jobs_per_month":null,"created_at":"{time}","erased_at":null}` + "\n",
		},
		{line: "accounts create -name X -plan gold", code: 1, stderr: "aiv: there is no plan \"gold\"; see aiv plans list\n"},
		{
			line:   "accounts set-plan {acct1} trial -json",
			stdout: `{"id":"{acct1}","name":"Acme & Söhne","plan":"trial","own_quota":false,"jobs_per_month":null,"created_at":"{time}","erased_at":null}` + "\n",
		},
		{
			line:   "accounts set-plan {acct1} growth",
			stdout: "Account {acct1}, \"Acme & Söhne\", is now on plan growth.\n",
		},
		{
			line:   "keys create -account {acct1} -name ci -scopes runs:read,runs:write -json",
			stdout: `{"id":"{cred1}","account_id":"{acct1}","name":"ci","key_prefix":"{prefix1}","scopes":["runs:read","runs:write"],"rate_limit_per_minute":120,"state":"active","expires_at":null,"disabled_at":null,"revoked_at":null,"rotated_from":null,"created_at":"{time}","key":"{key1}"}` + "\n",
			stderr: "The key of {cred1} is shown only this once; store it now.\n",
		},
		{
			line: "keys create -account {acct1} -name ci -scopes runs:reed -json",
			code: 2,
			stderr: "aiv: unknown scope \"runs:reed\"; the scopes are runs:read, runs:write, recommendations:read, alerts:read, webhooks:manage\n" +
				"Run `aiv keys create -h` for help.\n",
		},
		{
			line: "keys create -account acct_00000000000000000000000000 -name ci -scopes runs:read -json",
			code: 1, stderr: "aiv: there is no account {acct2}; see aiv accounts list\n",
		},
		{
			line: "keys create -account {acct1} -name desk -scopes '' -rate 5 -expires 2999-01-31T00:00:00+01:00",
			stdout: `
Credential {cred2}, "desk", belongs to {acct1}: scopes none; 5 requests per minute; expires: 2999-01-30T23:00:00Z.

  {key2}

`,
			stderr: "The key of {cred2} is shown only this once; store it now.\n",
		},
		{
			line:   "keys set {cred2} -expires never -scopes alerts:read",
			stdout: "Credential {cred2}, \"desk\", is active: scopes alerts:read; 5 requests per minute; expires: never.\n",
		},
		{
			line: "keys rotate {cred1} -json -grace 0s",
			stdout: `{"id":"{cred3}","account_id":"{acct1}","name":"ci","key_prefix":"{prefix2}","scopes":["runs:read","runs:write"],"rate_limit_per_minute":120,"state":"active","expires_at":null,"disabled_at":null,"revoked_at":null,"rotated_from":"{cred1}","created_at":"{time}","key":"{key3}"}
`,
			stderr: "The key of {cred3} is shown only this once; store it now.\n",
		},
		{line: "keys rotate {cred1} -json", code: 1, stderr: "aiv: {cred1} is expired; only active credentials can be rotated\n"},
		{
			line: "keys rotate {cred2} -grace 90m",
			stdout: `
Credential {cred4}, "desk", belongs to {acct1}: scopes alerts:read; 5 requests per minute; expires: never.
The old key, of {cred2}, stays valid for 1h30m, or until its expiry if that is earlier.

  {key4}

`,
			stderr: "The key of {cred4} is shown only this once; store it now.\n",
		},
		{
			line:   "keys disable {cred3} -json",
			stdout: `{"id":"{cred3}","account_id":"{acct1}","name":"ci","key_prefix":"{prefix2}","scopes":["runs:read","runs:write"],"rate_limit_per_minute":120,"state":"disabled","expires_at":null,"disabled_at":"{time}","revoked_at":null,"rotated_from":"{cred1}","created_at":"{time}"}` + "\n",
		},
		{line: "keys enable {cred3}", stdout: "Credential {cred3}, \"ci\", is active: scopes runs:read,runs:write; 120 requests per minute; expires: never.\n"},
		{line: "keys revoke {cred3}", stdout: "Credential {cred3}, \"ci\", is revoked: scopes runs:read,runs:write; 120 requests per minute; expires: never.\n"},
		{line: "keys enable {cred3}", code: 1, stderr: "aiv: {cred3} is revoked, which is permanent; create another with aiv keys create\n"},
		{line: "keys revoke cred_00000000000000000000000000", code: 1, stderr: "aiv: there is no credential {cred5}; see aiv keys list\n"},
		{line: "keys list -account acct_00000000000000000000000000 -json", stdout: "[]\n"},
		{line: "accounts create -name B -plan growth", stdout: "Account {acct3} was created: \"B\" on plan growth.\n"},
		{
			line:   "keys create -account {acct3} -name 'two\tcells\x1b[2J' -scopes runs:read -json",
			stdout: `{"id":"{cred6}","account_id":"{acct3}","name":"two\tcells\u001b[2J","key_prefix":"{prefix3}","scopes":["runs:read"],"rate_limit_per_minute":120,"state":"active","expires_at":null,"disabled_at":null,"revoked_at":null,"rotated_from":null,"created_at":"{time}","key":"{key5}"}` + "\n",
			stderr: "The key of {cred6} is shown only this once; store it now.\n",
		},
		{
			line: "keys list -account {acct3}",
			// The columns are as wide as the ids that stand here by name.
			stdout: `
ID                               ACCOUNT                          NAME           KEY                 SCOPES     RATE  STATE   EXPIRES
{cred6}  {acct3}  two�cells�[2J  {prefix3}…  runs:read  120   active  never
`,
		},
	})

	// The error reports that there is a credential whose key was not printed.
	var stderr strings.Builder
	p := testProgram(full{}, &stderr, s.env)
	code := p.Run(t.Context(), []string{"keys", "create", "-account", s.names[0], "-name", "n", "-scopes", "runs:read", "-json"})
	unshown := "aiv: credential {cred7} was created, but its key could not be printed; revoke it: write the output: no space left on device\n"
	if got := s.name(stderr.String()); code != 1 || got != unshown {
		t.Errorf("exit %d, stderr %q; want 1, %q", code, got, unshown)
	}

	// What of the keys is on record: nothing but their prefixes.
	pool := connect(t, url)
	var actions string
	must(t, pool.QueryRow(t.Context(), `SELECT string_agg(DISTINCT actor || ' ' || action, ', ') FROM audit_log`).Scan(&actions))
	want := "tess@desk accounts.create, tess@desk accounts.set-plan, tess@desk keys.create, tess@desk keys.disable, tess@desk keys.enable, " +
		"tess@desk keys.revoke, tess@desk keys.rotate, tess@desk keys.set, tess@desk plans.set"
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
	for i := 0; i < len(s.names); i += 2 {
		if !strings.HasPrefix(s.names[i+1], "{key") {
			continue
		}
		var rows int
		query := `SELECT (SELECT count(*) FROM audit_log a WHERE strpos(a::text, $1) > 0) + (SELECT count(*) FROM credentials c WHERE strpos(c::text, $1) > 0)`
		must(t, pool.QueryRow(t.Context(), query, s.names[i][len("aiv_live_")+8:]).Scan(&rows))
		if rows != 0 {
			t.Errorf("%s is in %d rows", s.names[i+1], rows)
		}
		if _, err := auth.HashKey(s.names[i]); err != nil {
			t.Errorf("%s: %v", s.names[i+1], err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
