package engines

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
)

// A Key is the credential of an engine. Only requests to the engine's address contain it.
type Key struct {
	file string // empty: it does not change
	log  *slog.Logger

	mu     sync.Mutex
	value  string // empty: requests are sent without a key
	failed bool   // the file could not be read when it was last tried
}

// NewKey returns a key that does not change; "" is none.
func NewKey(value string) (*Key, error) {
	value, err := checkKey(value)
	return &Key{value: value}, err
}

// ReadKey returns the key in a file, which is read again for each job: a new key holds without a restart.
func ReadKey(file string, log *slog.Logger) (*Key, error) {
	k := &Key{file: file, log: log}
	var err error
	if k.value, err = readKey(file); err != nil {
		return nil, err
	}
	return k, nil
}

// maxKey is the maximum length of a key, in bytes.
const maxKey = 4096

// readKey reads a file. Its errors name the file and not its content.
func readKey(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	// The limit leaves room for white space around the key.
	content, err := io.ReadAll(io.LimitReader(f, 2*maxKey))
	if err != nil {
		return "", err
	}
	value, err := checkKey(string(content))
	if err == nil && value == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return "", fmt.Errorf("%s does not contain a key: %w", file, err)
	}
	return value, nil
}

// checkKey returns a key without the white space around it. Only visible ASCII characters can be sent in a header as
// they are.
func checkKey(value string) (string, error) {
	value = strings.TrimSpace(value)
	if len(value) > maxKey || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("want 1 to %d visible ASCII characters", maxKey)
	}
	return value, nil
}

// current returns the key for a job. If the file is not valid now, the last key stays, and a warning is logged once.
func (k *Key) current() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == "" {
		return k.value
	}
	value, err := readKey(k.file)
	if err == nil {
		k.value = value
	} else if !k.failed {
		k.log.Warn("cannot read the key again; the last one is used", "error", err)
	}
	k.failed = err != nil
	return k.value
}
