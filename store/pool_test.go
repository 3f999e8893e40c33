package store_test

import (
	"strings"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

func TestOpenSetsTheSession(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"", []string{"aiv", "UTC", "off", "force_generic_plan", "read committed", "5s", "30s", "1min"}},
		{"&application_name=golden&timezone=Asia%2FTokyo", []string{"golden", "Asia/Tokyo", "off", "force_generic_plan", "read committed", "5s", "30s", "1min"}},
		{"&options=-c%20lock_timeout%3D7s", []string{"aiv", "UTC", "off", "force_generic_plan", "read committed", "7s", "30s", "1min"}},
		{"&options=--lock-timeout%3D8s%20-cJIT%3Don", []string{"aiv", "UTC", "on", "force_generic_plan", "read committed", "8s", "30s", "1min"}},
		{"&options=-c%20deadlock_timeout%3D2s", []string{"aiv", "UTC", "off", "force_generic_plan", "read committed", "5s", "30s", "1min"}},
	} {
		pool, err := store.OpenHot(t.Context(), url+test.query, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		var got []string
		err = pool.QueryRow(t.Context(), `
			SELECT array_agg(current_setting(name) ORDER BY at)
			FROM unnest(array['application_name', 'TimeZone', 'jit', 'plan_cache_mode', 'default_transaction_isolation', 'lock_timeout',
				'statement_timeout', 'idle_in_transaction_session_timeout']) WITH ORDINALITY AS s(name, at)`).Scan(&got)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", test.query, diff)
		}
	}
}

func TestSessionsCommitDurably(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	for setting, want := range map[string]bool{"on": true, "local": true, "off": false} {
		pool, err := store.Open(t.Context(), url+"&synchronous_commit="+setting, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		var fsync bool
		if err := pool.QueryRow(t.Context(), `SELECT current_setting('fsync') = 'on'`).Scan(&fsync); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Durable(t.Context(), pool); err != nil || got != (want && fsync) {
			t.Errorf("synchronous_commit %s, fsync %v: got %v, %v", setting, fsync, got, err)
		}
	}
}

func TestOpenIsLazy(t *testing.T) {
	const url = "postgres://aiv@192.0.2.1:5432,192.0.2.2:5433/aiv?target_session_attrs=read-write"
	pool, err := store.Open(t.Context(), url, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	config := pool.Config()
	if got, want := config.ConnConfig.ConnectTimeout, 5*time.Second; got != want {
		t.Errorf("connect timeout: got %v, want %v", got, want)
	}
	if got, want := config.MaxConns, int32(3); got != want {
		t.Errorf("connections: got %d, want %d", got, want)
	}
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
		pool, err := store.Open(t.Context(), url, 1)
		if err == nil {
			pool.Close()
			t.Errorf("%s: no error", url)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
