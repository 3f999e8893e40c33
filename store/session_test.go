package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
)

// dropParameters starts a proxy for the database at databaseURL that removes startup parameters, as connection poolers
// do, and returns the URL to connect through it.
func dropParameters(t *testing.T, databaseURL string, names ...string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	socket := filepath.Join(query.Get("host"), ".s.PGSQL."+query.Get("port"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { listener.Close() })
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer client.Close()
				if err := relay(client, socket, names); err != nil {
					t.Error(err)
				}
			})
		}
	})
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	query.Set("host", host)
	query.Set("port", port)
	u.RawQuery = query.Encode()
	return u.String()
}

func relay(client net.Conn, socket string, drop []string) error {
	first, err := pgproto3.NewBackend(client, client).ReceiveStartupMessage()
	if err != nil {
		return err
	}
	start, ok := first.(*pgproto3.StartupMessage)
	if !ok {
		return fmt.Errorf("got %T", first)
	}
	for _, name := range drop {
		delete(start.Parameters, name)
	}
	text, err := start.Encode(nil)
	if err != nil {
		return err
	}
	server, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer server.Close()
	if _, err := server.Write(text); err != nil {
		return err
	}
	go func() {
		io.Copy(server, client)
		server.Close()
	}()
	io.Copy(client, server)
	return nil
}

func TestVerifySession(t *testing.T) {
	t.Parallel()
	direct := storetest.Empty(t)
	for _, test := range []struct{ name, url, want string }{
		{"direct", direct, "<nil>"},
		{"values of the URL", direct + "&lock_timeout=7000ms&search_path=pg_temp&options=-c%20statement_timeout%3D9s", "<nil>"},
		{"pooler", dropParameters(t, direct), "<nil>"},
		{"without lock_timeout", dropParameters(t, direct, "lock_timeout"), `lock_timeout = "0" instead of "5s"`},
		{"without statement_timeout", dropParameters(t, direct, "statement_timeout"), `statement_timeout = "0" instead of "30s"`},
		{"without search_path", dropParameters(t, direct, "search_path"), `search_path = "\"$user\", public" instead of "public, pg_temp"`},
		{"without the URL's value", dropParameters(t, direct+"&idle_in_transaction_session_timeout=10s", "idle_in_transaction_session_timeout"),
			`idle_in_transaction_session_timeout = "0" instead of "10s"`},
		{"without enable_sort", dropParameters(t, direct, "enable_sort"), `enable_sort = "on" instead of "off"`},
	} {
		pool, err := store.OpenHot(t.Context(), test.url, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if got := fmt.Sprint(store.VerifySession(t.Context(), pool)); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

// TestPlannerSettings: plain sessions have the planner's defaults, even if the role has the settings of hot sessions.
func TestPlannerSettings(t *testing.T) {
	t.Parallel()
	admin, err := store.Open(t.Context(), storetest.Empty(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	role, quoted := storetest.NewRole(t, admin, "_forced")
	storetest.Exec(t, admin, "ALTER ROLE "+quoted+" SET enable_seqscan = off", "ALTER ROLE "+quoted+" SET plan_cache_mode = force_generic_plan")
	url := strings.Replace(admin.Config().ConnString(), "user=aiv", "user="+role, 1)
	hot, err := store.OpenHot(t.Context(), url, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer hot.Close()
	plain, err := store.Open(t.Context(), url, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	another, err := store.OpenPlain(t.Context(), hot, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	const forced, defaults = "force_generic_plan off off off off", "auto on on on on"
	read := func(q store.Querier) (settings string, err error) {
		err = q.QueryRow(t.Context(), `SELECT concat_ws(' ', current_setting('plan_cache_mode'), current_setting('enable_seqscan'),
			current_setting('enable_bitmapscan'), current_setting('enable_sort'), current_setting('enable_incremental_sort'))`).Scan(&settings)
		return settings, err
	}
	for _, test := range []struct {
		name string
		pool *pgxpool.Pool
		want string
	}{{"Open", plain, defaults}, {"OpenPlain", another, defaults}, {"OpenHot", hot, forced}} {
		if got, err := read(test.pool); got != test.want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", test.name, got, err, test.want)
		}
		if err := store.VerifySession(t.Context(), test.pool); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestTextsAreUTF8: texts are UTF-8 whatever the role, the URL and a pooler say, or the connection is refused.
func TestTextsAreUTF8(t *testing.T) {
	t.Parallel()
	direct := storetest.URL(t)
	open := func(url string) *pgxpool.Pool {
		t.Helper()
		pool, err := store.Open(t.Context(), url, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	admin := open(direct)
	role, quoted := storetest.NewRole(t, admin, "_latin1")
	latin1 := role // its database
	storetest.Exec(t, admin, "ALTER ROLE "+quoted+" SET client_encoding = 'LATIN1'",
		"CREATE DATABASE "+quoted+" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() { admin.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+quoted+" WITH (FORCE)") })
	as := strings.Replace(direct, "user=aiv", "user="+role, 1)
	const stored = "è €"
	for _, test := range []struct{ name, url, want string }{
		{"role", as, stored},
		{"URL", as + "&client_encoding=LATIN1", stored},
		{"URL in capitals", as + "&CLIENT_ENCODING=LATIN1", stored},
		{"options", as + "&options=-c%20client_encoding%3DLATIN1", stored},
		{"pooler without the parameter", dropParameters(t, direct, "client_encoding"), stored},
		{"pooler without the parameter, role", dropParameters(t, as, "client_encoding"), `client_encoding = "LATIN1" instead of "UTF8"`},
		{"database", strings.Replace(direct, "/"+admin.Config().ConnConfig.Database, "/"+latin1, 1), `the encoding of database "` + latin1 + `" is LATIN1`},
	} {
		pool := open(test.url)
		var got string
		if err := pool.QueryRow(t.Context(), `SELECT U&'\00E8 \20AC'`).Scan(&got); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
		// Migrate connects by itself.
		_, err := schema.Migrate(t.Context(), open(test.url))
		if refused, _ := errors.AsType[*store.EncodingError](err); (refused != nil) != (test.want != stored) {
			t.Errorf("%s: migrate: got %v", test.name, err)
		}
	}
}

// TestTextFormsOfTheRole: values that PostgreSQL returns as text can be read whatever form the role has for them.
func TestTextFormsOfTheRole(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	admin, err := store.Open(t.Context(), url, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	role, quoted := storetest.NewRole(t, admin, "_german")
	storetest.Exec(t, admin, "ALTER ROLE "+quoted+" SET DateStyle = 'German'", "ALTER ROLE "+quoted+" SET bytea_output = 'escape'")
	pool, err := store.Open(t.Context(), strings.Replace(url, "user=aiv", "user="+role, 1), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	var at time.Time
	var bytes []byte
	err = pool.QueryRow(t.Context(), `SELECT '2026-11-28 08:26:32+00'::timestamptz, '\x00ff'::bytea`, pgx.QueryExecModeExec).Scan(&at, &bytes)
	if want := time.Date(2026, 11, 28, 8, 26, 32, 0, time.UTC); err != nil || !at.Equal(want) || string(bytes) != "\x00\xff" {
		t.Errorf("got %v, %x, %v", at, bytes, err)
	}
}

// A function in a schema named like the owner's role, and a temporary table, are not found before the program's tables.
func TestSearchPath(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	storetest.Exec(t, pool, `CREATE SCHEMA aiv`, `CREATE TABLE aiv.models ()`)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `CREATE TEMPORARY TABLE models ()`); err != nil {
		t.Fatal(err)
	}
	var schema string
	err = conn.QueryRow(t.Context(), `SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'models'::regclass`).Scan(&schema)
	if err != nil || schema != "public" {
		t.Errorf("models is found in schema %q, %v, want public", schema, err)
	}
}

func TestReadHealth(t *testing.T) {
	t.Parallel()
	owner := storetest.New(t)
	role, quoted := storetest.NewRole(t, owner, "_health")
	storetest.Exec(t, owner, "ALTER ROLE "+quoted+" LOGIN")
	config := owner.Config()
	config.ConnConfig.User = role
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	// A transaction of another role that keeps its snapshot, while others commit.
	holder, err := owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(t.Context())
	if _, err := holder.Exec(t.Context(), `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`); err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `SELECT 1`); err != nil {
		t.Fatal(err)
	}
	const committed = 30
	for range committed {
		storetest.Exec(t, owner, `SELECT pg_current_xact_id()`)
	}
	h, err := store.ReadHealth(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if h.Sessions < committed {
		t.Errorf("oldest snapshot: got an age of %d transactions, want at least %d", h.Sessions, committed)
	}
	if h.TransactionIDs < committed || h.ReplicationSlots != 0 || h.PreparedTransactions != 0 {
		t.Errorf("got %+v, want an age of transaction ids, and no slots or prepared transactions", h)
	}
}
