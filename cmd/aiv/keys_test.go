package main

import (
	"errors"
	"strings"
	"testing"

	"aiv/auth"
	"aiv/store/storetest"
)

// TestKeysAreOnRecordByPrefix: nothing but their prefixes is stored of keys. A key that could not be printed is reported.
// What a terminal would obey is not printed of names.
func TestKeysAreOnRecordByPrefix(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	account := s.newAccount(t)
	create := "keys create -account " + account + " -scopes runs:read -name "
	s.name(prints{create + "ci -json", 0, `The key of cred_\w+ is shown only this once`}.expect(t, s.url()))
	s.name(prints{"keys rotate -json " + s.values("{cred1}"), 0, `"rotated_from":"cred_`}.expect(t, s.url()))
	prints{create + "'two\tcells\x1b[2J\u202e' -json", 0, `two\\tcells\\u001b\[2J`}.expect(t, s.url())
	prints{"keys list", 0, `\ttwo�cells�\[2J�\t`}.expect(t, s.url())

	var stderr strings.Builder
	p := testProgram(full{}, &stderr, s.env)
	const unshown = "was created, but its key could not be printed; revoke it: write the output: no space left on device\n"
	if code := p.Run(t.Context(), words(create+"n -json")); code != 1 || !strings.HasSuffix(stderr.String(), unshown) {
		t.Errorf("exit %d, stderr %q; want 1, %q", code, &stderr, unshown)
	}
	pool, keys := connect(t, s.url()), 0
	for i := 0; i < len(s.names); i += 2 {
		key, name := s.names[i], s.names[i+1]
		if !strings.HasPrefix(name, "{key") {
			continue
		}
		keys++
		prefix := key[:len("aiv_live_")+8]
		if storetest.TablesWith(t, pool, prefix) == nil {
			t.Errorf("the search does not find the prefix of %s, so it would not find the rest", name)
		}
		tables := storetest.TablesWith(t, pool, key[len(prefix):])
		if _, err := auth.HashKey(key); tables != nil || err != nil {
			t.Errorf("%s is in the tables %v (%v)", name, tables, err)
		}
	}
	if keys != 2 {
		t.Errorf("%d keys were printed, want 2", keys)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
