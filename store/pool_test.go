package store_test

import (
	"strings"
	"testing"
	"time"

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
		"&options=-c%20lock_timeout%3D7s":           "aiv, UTC, off, force_generic_plan, read committed, 7s, 30s, 1min",
		"&options=--lock-timeout%3D8s%20-cJIT%3Don": "aiv, UTC, on, force_generic_plan, read committed, 8s, 30s, 1min",
		"&options=-c%20deadlock_timeout%3D2s":       "aiv, UTC, off, force_generic_plan, read committed, 5s, 30s, 1min",
	} {
		equal(t, want, read[string](t, openHot(t, url+query), settings), "settings with ", query)
	}
}

// TestOpenIsLazy: a pool is opened although no server can be reached.
func TestOpenIsLazy(t *testing.T) {
	const url = "postgres://aiv@192.0.2.1:5432,192.0.2.2:5433/aiv?target_session_attrs=read-write"
	pool, err := store.Open(t.Context(), url, 3)
	must(t, err)
	defer pool.Close()
	config := pool.Config()
	equal(t, 5*time.Second, config.ConnConfig.ConnectTimeout, "connect timeout")
	equal(t, int32(3), config.MaxConns, "connections")
	if len(config.ConnConfig.Fallbacks) == 0 || config.ConnConfig.ValidateConnect == nil {
		t.Error("the second host or target_session_attrs is lost")
	}
}

func TestOpenKeepsThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://aiv:s3cret@host:port/aiv",
		"postgres://aiv:s3cret/s3cret@host/aiv",
		"postgres://aiv:s3cret%zz@host/aiv",
		"postgres://aiv@host/aiv?password=s3cret&connect_timeout=soon",
		"postgres://aiv@host/aiv?sslpassword=s3cret&target_session_attrs=s3cret",
		"host=a password=s3cret port=x",
		"password = s3cret' host",
		"s3cret",
		"postgres://aiv:s3cret@a,b:1,c:2,d:3:4/aiv",
	} {
		if _, err := store.Open(t.Context(), url, 1); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want an error without the password", url, err)
		}
	}
}
