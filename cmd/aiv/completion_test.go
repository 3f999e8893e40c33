package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompletion: what may follow the words typed so far.
func TestCompletion(t *testing.T) {
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
	if _, stdout, _ := aiv(t.Context(), "__complete"); len(strings.Fields(stdout)) != len(commands) {
		t.Errorf("nothing typed: %q", stdout)
	}
}

// TestCompletionInBash has a real bash complete, by the program itself.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	const script = `
aiv() { "$PROGRAM" "$@"; }
source <(aiv completion bash)
complete -p aiv
COMP_WORDS=(aiv keys ro) COMP_CWORD=2; _aiv; echo "${COMPREPLY[@]}"
COMP_WORDS=(aiv keys create -account x -) COMP_CWORD=5; _aiv; echo "${#COMPREPLY[@]} ${COMPREPLY[0]}"
COMP_WORDS=(aiv catalog import '') COMP_CWORD=3; _aiv; echo "${#COMPREPLY[@]}"
`
	cmd := exec.Command("bash", "-c", script)
	cmd.Env = append(os.Environ(), asProgram+"=1", "PROGRAM="+os.Args[0])
	stdin, err := cmd.StdinPipe() // which the program takes for its test's life
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const want = "complete -o default -F _aiv aiv\nrotate\n9 -account\n0\n"
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, stdout, stderr := aiv(t.Context(), "completion", shell); code != 0 || !strings.Contains(stdout, "aiv __complete ") || stderr != "" {
			t.Errorf("%s: exit %d, %q, %q", shell, code, stdout, stderr)
		}
	}
	if code, _, stderr := aiv(t.Context(), "completion", "csh"); code != 2 || !strings.Contains(stderr, `not for "csh"`) {
		t.Errorf("csh: exit %d, %q", code, stderr)
	}
}
