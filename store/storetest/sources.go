package storetest

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
)

// ReadSources reads the folders of the module. A test that runs a program which it has built calls it, not TestMain: go
// test knows only the packages that a test imports and what it reads, and would return a cached result after a change
// of the program.
func ReadSources(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		return err
	})
}
