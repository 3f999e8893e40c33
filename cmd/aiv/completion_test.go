package main

import (
	"strings"
	"testing"
)

func TestCompletionOfCommands(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"ke"}, "keys"},
		{[]string{"pl"}, "plans"},
		{[]string{"keys", "r"}, "rotate revoke"},
		{[]string{"keys", "create", "-a"}, "-account -actor"},
		{[]string{"keys", "create", "-account", "x", "-na"}, "-name"},
		{[]string{"keys", "create", ""}, ""},
		{[]string{"completion", ""}, "bash zsh fish"},
		{[]string{"help", "keys", "re"}, "revoke"},
		{[]string{"nothing", ""}, ""},
		{[]string{"serve", "-tls"}, "-tls-cert -tls-key"},
	} {
		code, stdout, stderr := aiv(t.Context(), append([]string{"__complete"}, test.words...)...)
		if got := strings.Join(strings.Fields(stdout), " "); code != 0 || got != test.want || stderr != "" {
			t.Errorf("%q: exit %d, %q, %q, want %q", test.words, code, got, stderr, test.want)
		}
	}
	if _, stdout, _ := aiv(t.Context(), "__complete"); len(strings.Fields(stdout)) != len(commands()) {
		t.Errorf("nothing typed: %q", stdout)
	}
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, stdout, stderr := aiv(t.Context(), "completion", shell); code != 0 || !strings.Contains(stdout, "aiv __complete ") || stderr != "" {
			t.Errorf("%s: exit %d, %q, %q", shell, code, stdout, stderr)
		}
	}
	if code, _, stderr := aiv(t.Context(), "completion", "csh"); code != 2 || !strings.Contains(stderr, `not "csh"`) {
		t.Errorf("csh: exit %d, %q", code, stderr)
	}
}
