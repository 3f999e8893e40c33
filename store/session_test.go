package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// behindPooler returns another pool like this one, for which a connection pooler drops startup parameters: its new
// sessions have the values that the statements set.
func behindPooler(t *testing.T, pool *pgxpool.Pool, statements string) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	config.ConnConfig.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		return conn.Exec(ctx, statements).Close()
	}
	behind, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(behind.Close)
	return behind
}

// TestVerifySession: the error names each setting that a pooler dropped.
func TestVerifySession(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	must(t, store.VerifySession(t.Context(), openHot(t, url)))
	must(t, store.VerifySession(t.Context(), openHot(t, url+"&lock_timeout=7000ms&search_path=pg_temp&options=-c%20statement_timeout%3D9s")))

	hot := openHot(t, url+"&idle_in_transaction_session_timeout=10s")
	err := store.VerifySession(t.Context(), behindPooler(t, hot, `SET search_path = "$user", public; SET DateStyle = 'German';
		SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET enable_sort = on`))
	equal(t, `a new database session has search_path = "\"$user\", public" instead of "public, pg_temp", `+
		`DateStyle = "German, DMY" instead of "ISO, MDY", lock_timeout = "0" instead of "5s", `+
		`idle_in_transaction_session_timeout = "0" instead of "10s", enable_sort = "on" instead of "off": `+
		"a connection pooler between aiv and the database drops startup parameters; use one that passes them on", err.Error(), "a pooler")
}

// TestSettingsOfTheRole: whatever the role has set, plain sessions have the planner's defaults, hot ones do not, and
// values that PostgreSQL returns as text can be read.
func TestSettingsOfTheRole(t *testing.T) {
	t.Parallel()
	url := urlOfRole(t, open(t, storetest.Empty(t)), "_odd", "enable_seqscan = off",
		"plan_cache_mode = force_generic_plan", "client_encoding = LATIN1", "DateStyle = German", "bytea_output = escape")
	const settings = `SELECT concat_ws(' ', current_setting('plan_cache_mode'), current_setting('enable_seqscan'),
		current_setting('enable_bitmapscan'), current_setting('enable_sort'), current_setting('enable_incremental_sort'))`
	hot := openHot(t, url)
	equal(t, "force_generic_plan off off off off", storetest.Value[string](t, hot, settings), "hot")
	const keepalives = `SELECT string_agg(reset_val, ' ' ORDER BY name) FROM pg_settings WHERE name LIKE 'tcp_keepalives_i%'`
	equal(t, "5 5", storetest.Value[string](t, hot, keepalives), "keepalives, for which current_setting is 0 over a Unix socket")
	another, err := store.OpenPlain(t.Context(), hot, 1)
	must(t, err)
	defer another.Close()
	for _, plain := range []*pgxpool.Pool{another, open(t, url)} {
		equal(t, "auto on on on on", storetest.Value[string](t, plain, settings), "plain")
		must(t, store.VerifySession(t.Context(), plain))
	}
	at := storetest.Value[time.Time](t, hot, `SELECT '2026-11-28 08:26:32+00'::timestamptz`, pgx.QueryExecModeExec)
	equal(t, time.Date(2026, 11, 28, 8, 26, 32, 0, time.UTC), at.UTC(), "a time")
	equal(t, []byte("\x00\xff"), storetest.Value[[]byte](t, hot, `SELECT '\x00ff'::bytea`, pgx.QueryExecModeExec), "bytes")
	equal(t, "è €", storetest.Value[string](t, hot, `SELECT U&'\00E8 \20AC'`), "a text")
}

// TestTextsAreUTF8: texts are UTF-8 whatever the URL says. A session with another encoding, by its role behind
// a pooler or by its database, is refused, also by migrations, which connect by themselves.
func TestTextsAreUTF8(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	for _, query := range []string{"&CLIENT_ENCODING=LATIN1", "&options=-c%20client_encoding%3DLATIN1"} {
		equal(t, "è €", storetest.Value[string](t, open(t, url+query), `SELECT U&'\00E8 \20AC'`), query)
	}

	admin := open(t, url)
	database := admin.Config().ConnConfig.Database
	latin1 := database + "_latin1"
	storetest.Exec(t, admin, "CREATE DATABASE "+latin1+" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() { admin.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+latin1+" WITH (FORCE)") })
	for _, test := range []struct {
		pool *pgxpool.Pool
		want string
	}{
		{behindPooler(t, admin, `SET client_encoding = 'LATIN1'`), `client_encoding = "LATIN1" instead of "UTF8"`},
		{open(t, strings.Replace(url, "/"+database, "/"+latin1, 1)), `the encoding of database "` + latin1 + `" is LATIN1`},
	} {
		_, migrating := schema.Migrate(t.Context(), test.pool)
		for name, err := range map[string]error{"a session": test.pool.Ping(t.Context()), "a migration": migrating} {
			if refused, ok := errors.AsType[*store.EncodingError](err); !ok || !strings.Contains(refused.Error(), test.want) {
				t.Errorf("%s: got %v, want %s", name, err, test.want)
			}
		}
	}
}

// TestReadHealth: any role reads the age of a snapshot of another role, while others commit.
func TestReadHealth(t *testing.T) {
	t.Parallel()
	owner := open(t, storetest.Empty(t))
	pool := open(t, urlOfRole(t, owner, "_health"))
	storetest.Begin(t, owner, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1`, pgx.QueryExecModeSimpleProtocol)
	const committed = 30
	for range committed {
		storetest.Exec(t, owner, `SELECT pg_current_xact_id()`)
	}
	h, err := store.ReadHealth(t.Context(), pool)
	must(t, err)
	if h.Sessions < committed || h.TransactionIDs < committed || h.ReplicationSlots != 0 || h.PreparedTransactions != 0 {
		t.Errorf("got %+v, want ages of %d at least, and no slots or prepared transactions", h, committed)
	}
}

func TestIsLocal(t *testing.T) {
	for hosts, want := range map[string]bool{
		"/run/postgresql": true, "localhost": true, "127.0.0.2": true, "::1": true, "127.0.0.1,localhost": true,
		"127.0.0.1,192.0.2.1": false, "192.0.2.1,127.0.0.1": false, "db.internal": false, "localhost.example": false,
	} {
		equal(t, want, store.IsLocal(open(t, "dbname=aiv host="+hosts)), hosts)
	}
}

func TestOpenKeepsThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://aiv:s3cret/s3cret@host/aiv",
		"postgres://aiv:s3cret%zz@host/aiv",
		"postgres://aiv@host/aiv?sslpassword=s3cret&target_session_attrs=s3cret",
		"password = s3cret' host",
		"postgres://aiv:s3cret@a,b:1,c:2,d:3:4/aiv",
		"postgres://aiv:s3cret@host/aiv?default_query_exec_mode=exec", "postgres://aiv:s3cret@host/aiv?statement_cache_capacity=-1",
	} {
		if _, err := store.Open(t.Context(), url, 1); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want an error without the password", url, err)
		}
	}
}
