package private_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"aiv/store/private"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) {
	helpIfAsked()
	storetest.Main(tests{m})
}

// tests removes the prototype after the tests.
type tests struct{ *testing.M }

func (m tests) Run() int {
	code := m.M.Run()
	os.RemoveAll(prototypeDir)
	return code
}

// prototypeDir is empty until prototype is called.
var prototypeDir string

// prototype returns the folder of a server that was started and stopped, which tests copy. It is package-level because
// all tests of the process share it.
var prototype = sync.OnceValues(func() (dir string, err error) {
	if prototypeDir, err = storetest.MkdirTemp("aiv-"); err != nil {
		return "", err
	}
	if err := os.Chmod(prototypeDir, 0o755); err != nil {
		return "", err
	}
	archive, err := storetest.Archive()
	if err != nil {
		return "", err
	}
	p, err := private.Start(context.Background(), private.Config{Dir: prototypeDir, Archive: archive, Settings: cheap})
	if err != nil {
		return "", err
	}
	p.Close()
	return prototypeDir, nil
})

// initialized returns the configuration of a server that keeps its data and has a data folder already.
func initialized(t *testing.T) private.Config {
	t.Helper()
	config := lasting(t)
	from, err := prototype()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-Rp", from+"/.", config.Dir).CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("copy the prototype: %w: %s", err, out))
	}
	return config
}
