package store_test

import (
	"strings"
	"testing"

	"aiv/store"
	"aiv/store/storetest"
)

// TestSettingsOfTheURL: the settings of the URL have precedence, in any of their forms.
func TestSettingsOfTheURL(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	const settings = `
		SELECT string_agg(current_setting(name), ', ' ORDER BY at)
		FROM unnest(array['application_name', 'TimeZone', 'jit', 'plan_cache_mode', 'default_transaction_isolation',
			'lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout']) WITH ORDINALITY AS s (name, at)`
	for query, want := range map[string]string{
		"": "aiv, UTC, off, force_generic_plan, read committed, 5s, 30s, 1min",
		"&application_name=me&timezone=Asia%2FAden": "me, Asia/Aden, off, force_generic_plan, read committed, 5s, 30s, 1min",
		"&options=--lock-timeout%3D8s%20-cJIT%3Don": "aiv, UTC, on, force_generic_plan, read committed, 8s, 30s, 1min",
	} {
		equal(t, want, read[string](t, openHot(t, url+query), settings), "settings with ", query)
	}
}

func TestOpenKeepsThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://aiv:s3cret/s3cret@host/aiv",
		"postgres://aiv:s3cret%zz@host/aiv",
		"postgres://aiv@host/aiv?sslpassword=s3cret&target_session_attrs=s3cret",
		"password = s3cret' host",
		"postgres://aiv:s3cret@a,b:1,c:2,d:3:4/aiv",
	} {
		if _, err := store.Open(t.Context(), url, 1); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want an error without the password", url, err)
		}
	}
}
