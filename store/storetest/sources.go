package storetest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ReadSources reads the folders of the module at root, so that go test runs a test that builds a program again after
// any change of the module, instead of returning a cached result. It has no effect in TestMain: go test records what is
// read while the tests run.
func ReadSources(root string) error {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed during the walk
		}
		return err
	})
}
