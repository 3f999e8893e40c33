package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompletionInBash runs the completion script in a real bash.
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
	cmd.Env = append(os.Environ(), "PROGRAM="+binary)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := runCommand(cmd); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	const want = "complete -o default -F _aiv aiv\nrotate\n9 -account\n0\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
