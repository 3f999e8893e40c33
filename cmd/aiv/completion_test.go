package main

import (
	"strings"
	"testing"
)

func TestCompletionOfCommands(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"ke":                         "keys",
		"pl":                         "plans",
		"keys r":                     "rotate revoke",
		"keys create -a":             "-account -actor",
		"keys create -account x -na": "-name",
		"keys create ":               "",
		"completion ":                "bash zsh fish",
		"help keys re":               "revoke",
		"nothing ":                   "",
		"serve -tls":                 "-tls-cert -tls-key",
		"work -url u -- ./answer -":  "",
	} {
		code, stdout, stderr := aiv(t.Context(), append([]string{"__complete"}, strings.Split(words, " ")...)...)
		if got := strings.Join(strings.Fields(stdout), " "); code != 0 || got != want || stderr != "" {
			t.Errorf("%q: exit %d, %q, %q, want %q", words, code, got, stderr, want)
		}
	}
	if _, stdout, _ := aiv(t.Context(), "__complete"); len(strings.Fields(stdout)) != len(commands()) {
		t.Errorf("nothing typed: %q", stdout)
	}
}
