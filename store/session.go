package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A setting is sent when a connection starts, so that it costs no round trip. A setting in the URL has precedence,
// except for the encoding.
type setting struct {
	name, value string
	required    bool // VerifySession checks it
}

// sessionSettings are the settings of all sessions.
var sessionSettings = []setting{
	// Every text is UTF-8. With another encoding, such as one of the role's, PostgreSQL would convert texts without an
	// error.
	{clientEncoding, utf8, true},
	// Identifies the connections in pg_stat_activity.
	{"application_name", "aiv", false},
	// No schema that another role may create is searched. Temporary tables come last: a function of the owner's must
	// not write to a table that its caller made.
	{"search_path", "public, pg_temp", true},
	// Months of usage begin at midnight UTC, whatever the server's time zone is.
	{"TimeZone", "UTC", true},
	// Statements that are not prepared return values as text, of which pgx reads these forms.
	{"DateStyle", "ISO, MDY", true},
	{"bytea_output", "hex", true},
	// The rows of set-returning functions are overestimated, so the planner would compile (JIT) even short statements.
	{"jit", "off", true},
	// A statement that waited for a row continues with the row's new version. Exact counts and idempotency keys depend
	// on it.
	{"default_transaction_isolation", "read committed", true},
	// Bounds how long requests queue behind a forgotten transaction or a migration.
	{"lock_timeout", "5s", true},
	// Longer than the deadline of any request: ends statements whose client has given up.
	{"statement_timeout", "30s", true},
	// Ends the transactions of a process that hangs.
	{"idle_in_transaction_session_timeout", "60s", true},
	// End the sessions of a machine that has gone: tcp_user_timeout those with unacknowledged data, the probes idle ones.
	// They have no effect on Unix sockets.
	{"tcp_user_timeout", "30s", false},
	{"tcp_keepalives_idle", "5s", false},
	{"tcp_keepalives_interval", "5s", false},
}

// plannerSettings are the settings of the planner in hot and in plain sessions; see the package's documentation. Plain
// sessions request PostgreSQL's defaults by name, in case the role has others.
var plannerSettings = []struct{ name, hot, plain string }{
	// Statements are prepared once per connection. A plan for each execution would cost more than it saves.
	{planCacheMode, "force_generic_plan", "auto"},
	// A plan that sorts or scans looks cheap by the statistics of a new table or of an average account, and would be
	// kept. Each hot statement can read its rows through an index that yields them in the required order.
	{"enable_seqscan", "off", "on"},
	{"enable_bitmapscan", "off", "on"},
	{"enable_sort", "off", "on"},
	{"enable_incremental_sort", "off", "on"},
}

// A kind is hot or plain.
type kind int

const (
	plain kind = iota
	hot
)

// settings returns the settings of sessions of a kind.
func (k kind) settings() []setting {
	all := slices.Clone(sessionSettings)
	for _, s := range plannerSettings {
		all = append(all, setting{s.name, [...]string{plain: s.plain, hot: s.hot}[k], true})
	}
	return all
}

// SetPlain changes the configuration of a connection to the configuration of a plain session.
func SetPlain(config *pgx.ConnConfig) {
	for _, s := range plannerSettings {
		config.RuntimeParams[s.name] = s.plain
	}
}

const (
	planCacheMode  = "plan_cache_mode" // which type planner changes on Citus
	clientEncoding = "client_encoding"
	utf8           = "UTF8" // as PostgreSQL calls it
)

// setParameters adds the settings of sessions of a kind to the parameters of a URL.
func setParameters(params map[string]string, k kind) {
	// As a parameter by name it has precedence over options.
	maps.DeleteFunc(params, func(name, _ string) bool { return strings.EqualFold(name, clientEncoding) })
	params[clientEncoding] = utf8
	for _, setting := range k.settings() {
		// What an operator has set in the URL stays.
		if !isSet(params, setting.name) {
			params[setting.name] = setting.value
		}
	}
}

// isSet reports whether the URL sets a parameter, by name in any case or in options, as -c name=value or --name=value.
// A parameter by name would have precedence over options.
func isSet(params map[string]string, name string) bool {
	for key, value := range params {
		if strings.EqualFold(key, name) {
			return true
		}
		if key != "options" {
			continue
		}
		for option := range strings.FieldsSeq(value) {
			// In options a name may be written with hyphens.
			option, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(option, "--"), "-c"), "=")
			if strings.EqualFold(strings.ReplaceAll(option, "-", "_"), name) {
				return true
			}
		}
	}
	return false
}

// An EncodingError reports a database that cannot store every text, or a session that does not get texts as they are
// stored.
type EncodingError struct{ Database, Server, Client string }

func (e *EncodingError) Error() string {
	if e.Server != utf8 {
		return fmt.Sprintf("the encoding of database %q is %s, and aiv requires UTF8; create another database with "+
			"CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and name that one", e.Database, e.Server)
	}
	return fmt.Sprintf("a new database session has %s = %q instead of %q: a connection pooler between aiv and the database drops startup "+
		"parameters; use one that passes them on, or set this for the role with ALTER ROLE … SET", clientEncoding, e.Client, utf8)
}

// CheckEncoding returns an [*EncodingError] if texts are not UTF-8 in the session or in its database. A server reports
// both encodings when a connection starts, so that the check of each connection costs no round trip.
func CheckEncoding(conn *pgx.Conn) error {
	server, client := conn.PgConn().ParameterStatus("server_encoding"), conn.PgConn().ParameterStatus(clientEncoding)
	if server == utf8 && client == utf8 {
		return nil
	}
	return &EncodingError{conn.Config().Database, server, client}
}

// VerifySession returns an error if the settings of the pool's sessions are not those that Open requests. Connection
// poolers may drop them without an error, and then nothing bounds how long a request waits for a lock.
func VerifySession(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("verify the session: %w", err)
	}
	defer conn.Release()
	config := conn.Conn().Config()
	var names, values []string
	for _, s := range hot.settings() { // plain sessions have other values by the same names
		requested, byName := config.RuntimeParams[s.name]
		// If not by name, the URL sets it by its options.
		if s.required && byName && !(IsCitus(conn.Conn()) && s.name == planCacheMode) {
			names, values = append(names, s.name), append(values, requested)
		}
	}
	rows, err := conn.Query(ctx, verifySettings, unprepared, names, values)
	if err != nil {
		return fmt.Errorf("verify the session: %w", err)
	}
	var wrong []string
	var name, got, want string
	if _, err := pgx.ForEachRow(rows, []any{&name, &got, &want}, func() error {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s = %q instead of %q", name, got, want))
		}
		return nil
	}); err != nil {
		return fmt.Errorf("verify the session: %w", err)
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("a new database session has %s: a connection pooler between aiv and the database drops startup parameters; "+
		"use one that passes them on", strings.Join(wrong, ", "))
}

// verifySettings returns each setting in $1 with its present value and the one in $2 as the server writes it, such as
// 1min for 60s. The changes last until the end of the statement.
const verifySettings = `
SELECT name, got, set_config(name, value, true)
FROM (SELECT name, value, current_setting(name) AS got FROM unnest($1::text[], $2::text[]) AS s (name, value) OFFSET 0) s`
