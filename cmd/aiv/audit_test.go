package main

import (
	"strings"
	"testing"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.run(t, []step{
		{line: "plans set p -features api_access -actor ann", stdout: "Plan p is set: features api_access; 60 (default) requests per minute.\n"},
		{line: "plans set q -features api_access,x -rate 5 -actor bob",
			stdout: "Plan q is set: features api_access,x; 5 requests per minute.\n"},
		{line: "audit list -json -subject p", stdout: `[{"at":"{time}","actor":"ann","action":"plans.set","subject":"p",` +
			`"detail":{"features":["api_access"],"jobs_per_month":null,"max_unfinished_jobs":null,"rate_limit_per_minute":null}}]` + "\n"},
		{line: "audit list -json -limit 1", stdout: `[{"at":"{time}","actor":"bob","action":"plans.set","subject":"q",` +
			`"detail":{"features":["api_access","x"],"jobs_per_month":null,"max_unfinished_jobs":null,"rate_limit_per_minute":5}}]` + "\n",
			stderr: "The list ends at -limit 1; more changes follow.\n"},
		{line: "audit list -by another", stdout: "There are no changes.\n"},
	})
	pool := connect(t, s.url())
	for _, test := range []struct {
		env        map[string]string
		args, want string
	}{
		{map[string]string{"AIV_ACTOR": "env"}, "-actor flag", "flag"},
		{map[string]string{"AIV_ACTOR": "env", "SUDO_USER": "sue"}, "", "env"},
		{map[string]string{"SUDO_USER": "sue"}, "", "sue@"},
		{nil, "", "@"},
	} {
		p := testProgram(&strings.Builder{}, &strings.Builder{}, test.env)
		if code := p.Run(t.Context(), words("plans set p -features x -database-url "+s.url()+" "+test.args)); code != 0 {
			t.Fatal(p.Stderr)
		}
		var actor string
		err := pool.QueryRow(t.Context(), `SELECT actor FROM audit_log ORDER BY id DESC LIMIT 1`).Scan(&actor)
		if err != nil || !strings.Contains(actor, test.want) || !strings.Contains(test.want, "@") && actor != test.want {
			t.Errorf("%v %s: actor %q (%v), want %q", test.env, test.args, actor, err, test.want)
		}
	}
}
