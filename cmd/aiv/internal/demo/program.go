package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// inGoFolder matches the paths of executables that go run starts: below a temporary folder, which is removed when the program ends, or
// in the build cache, from which they are removed after some days.
var inGoFolder = regexp.MustCompile(`/go-build[^/]*/|/[0-9a-f]{64}-d/`)

// Program returns the command that starts the executable again after this process has ended. If that is go run, the command
// works in the present folder, which the second result names.
func Program(executable string) (command, folder string, err error) {
	if inGoFolder.MatchString(filepath.ToSlash(executable)) {
		if folder, err = os.Getwd(); err != nil {
			return "", "", err
		}
		if exists("cmd/aiv/main.go") {
			return "go run ./cmd/aiv", folder, nil
		}
		return "go run aiv/cmd/aiv", folder, nil // in any folder of the module
	}
	if found, err := exec.LookPath("aiv"); err == nil && sameFile(found, executable) {
		return "aiv", "", nil
	}
	return executable, "", nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
