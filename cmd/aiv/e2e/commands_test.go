package e2e

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"aiv/store/storetest"
)

// TestCompletionInBash runs the completion script in a real bash.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("bash", "-c", `
aiv() { "$PROGRAM" "$@"; }
source <(aiv completion bash)
complete -p aiv
COMP_WORDS=(aiv keys ro) COMP_CWORD=2; _aiv; echo "${COMPREPLY[@]}"
COMP_WORDS=(aiv keys create -account x -) COMP_CWORD=5; _aiv; echo "${#COMPREPLY[@]} ${COMPREPLY[0]}"
COMP_WORDS=(aiv catalog import '') COMP_CWORD=3; _aiv; echo "${#COMPREPLY[@]}"
`)
	cmd.Env = append(os.Environ(), "PROGRAM="+binary)
	out, err := combinedOutput(cmd)
	must(t, err)
	storetest.Equal(t, "complete -o default -F _aiv aiv\nrotate\n9 -account\n0\n", out, "completions")
}

// TestTLS: with a certificate aiv serves TLS only.
func TestTLS(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(nil) // whose certificate aiv serves
	t.Cleanup(other.Close)
	pair := other.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(t, err)
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"crt": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		must(t, os.WriteFile(dir+"/"+name, pem.EncodeToMemory(block), 0o600))
	}
	p := startServe(t, storetest.URL(t), "-tls-cert", dir+"/crt", "-tls-key", dir+"/key")
	for scheme, want := range map[string]int{"https": http.StatusOK, "http": http.StatusBadRequest} {
		w, err := other.Client().Get(scheme + strings.TrimPrefix(p.base, "http") + "/openapi.json")
		must(t, err)
		if w.Body.Close(); w.StatusCode != want {
			t.Errorf("%s: got %d, want %d", scheme, w.StatusCode, want)
		}
	}
	other.Client().CloseIdleConnections()
	stops(t, p)
}
