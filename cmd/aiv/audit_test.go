package main

import (
	"strings"
	"testing"
)

// TestActor: the audit log names who runs a command.
func TestActor(t *testing.T) {
	t.Parallel()
	s := newStory(t)
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
