package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"aiv/cmd/aiv/internal/status"
	"aiv/store/schema"
	"aiv/store/storetest"
)

// TestStatusReportsWhatIsUnmet: the status of a database without runs and providers, with a provider, and with runs.
func TestStatusReportsWhatIsUnmet(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t) // the status of a distributed one has its tables
	url := pool.Config().ConnString()
	prints{"status -json", 0, `^\{"ready":true,"problem":null,` +
		`"database":\{"reachable":true,"version":"[^"]+","name":"[^"]+","servers":\["[^"]+"\],"data_dir":null,"read_only":false\},` +
		`"migrations":\{"applied":\d+,"pending":0,"changed":0,"newer":0,"unknown":0\},` +
		`"roles":\[\],"providers":\[\],"queue":\{"open_runs":0,"queued_jobs":0,"oldest_created_at":null,"oldest_age_seconds":null\},` +
		`"workers_seen":0,"oldest_waiting":null,"webhooks":\{"pending":0,"lag_seconds":0\},` +
		`"brands":\{"active":0,"answers_recounting":0,"oldest_recount_seconds":0\},` +
		`"schedules":\{"active":0,"paused":\{\},"lag_seconds":0,"evaluations_waiting":0,"evaluation_lag_seconds":0\},` +
		`"expiring_keys":\[\]\}\n$`}.expect(t, url)
	prints{"status", 0, `\nproviders\tnone; import a catalog with aiv catalog import\n$`}.expect(t, url)
	account := sampleAccount(t, url)
	prints{"status", 0, `\nproviders\t1, of which 1 HAVE UNMET DEPENDENCIES\n(?s:.*)` +
		`\n  acme\tconfiguration, secret, contract, legal_approval\n$`}.expect(t, url)
	now := time.Now().UTC()
	writeRun(t, pool, account, now.Add(-2*time.Hour).Format(time.RFC3339), 5)
	writeRun(t, pool, account, now.Add(-time.Hour).Format(time.RFC3339), 7)
	storetest.Exec(t, pool, `
UPDATE measurement_runs SET status = 'running', started_at = now(), jobs_returned = 1, jobs_completed = 2, jobs_failed = 1 WHERE total_jobs = 5;
INSERT INTO visibility_backlog (account_id, run_id) SELECT account_id, id FROM measurement_runs WHERE total_jobs = 5;
INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
  SELECT id, id, 1, 'own', 'Kovalt', '{}', '{}', '{}', false, 'active' FROM accounts;
INSERT INTO brand_revisions (account_id, revision, changed_at, pending_since) SELECT id, 1, now(), now() - interval '130 seconds' FROM accounts;`+acmeIsMet)
	prints{"status", 0, `^ready\tyes\ndatabase\tPostgreSQL .*\nmigrations\t\d+ applied\n` +
		`queue\t2 open runs, 8 queued jobs, the oldest for 2h(0m\d+s)?\n` +
		`webhooks\t0 pending deliveries\nbrands\t1 active, 3 answers to recount, changed 2m\d+s ago\nschedules\t0 active\n` +
		`workers\t0 seen in the last 5 minutes\nproviders\t1, all dependencies met\n$`}.expect(t, url)
}

// acmeIsMet records the dependencies of the sample catalog's provider as met.
const acmeIsMet = `
INSERT INTO provider_dependencies SELECT 'acme', d, true, 'n' FROM unnest('{configuration,secret,contract,legal_approval}'::text[]) d`

// TestMigrateCommand: a database from its creation to its use by a newer binary.
func TestMigrateCommand(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	pool := connect(t, url)
	status, err := schema.ReadStatus(t.Context(), pool)
	must(t, err)
	config := pool.Config().ConnConfig
	in := fmt.Sprintf("database %s at %s:%d: ", config.Database, config.Host, config.Port)
	lacks := status.Err().Error()
	if !strings.Contains(lacks, "run `aiv migrate`") {
		t.Fatalf("%s doesn't say what to do", lacks)
	}
	var applied string
	var rows []string
	pending := "VERSION\tNAME\tSTATE\tAPPLIED\n"
	for _, m := range status.Pending {
		applied += "Applied " + m.String() + ".\n"
		rows = append(rows, fmt.Sprintf(`{"version":%d,"name":%q,"state":"applied","applied_at":"{time}"}`, m.Version, m.Name))
		pending += fmt.Sprintf("%d\t%s\tpending\tno\n", m.Version, m.Name)
	}
	prints{"status -json", 1, `^\{"ready":false,"problem":` + regexp.QuoteMeta(strconv.Quote(in+lacks)) +
		fmt.Sprintf(`,"database":\{"reachable":true,.*"migrations":\{"applied":0,"pending":%d,"changed":0,"newer":0,"unknown":0\},`+
			`"roles":null,"providers":null,"queue":null,"workers_seen":null,"oldest_waiting":null,"webhooks":null,`+
			`"brands":null,"schedules":null,"expiring_keys":null\}\n`, len(rows))}.expect(t, url)
	s := &story{env: map[string]string{"DATABASE_URL": url}}
	// On plain PostgreSQL -distribute reports what is missing and applies no migration.
	s.prints(t, "migrate -distribute", failure("the extension citus is missing in this database; "+
		"run CREATE EXTENSION citus on a server that has it, or leave the database as it is: nothing was changed"))
	s.prints(t, "plans list", failure(in+lacks))
	s.prints(t, "migrate -status | cat", pending+"\nNot usable by this binary: "+lacks+".\n")
	s.prints(t, "migrate", applied)
	s.prints(t, "migrate", "The database is up to date.\n")
	s.prints(t, "migrate -status -json", "["+strings.Join(rows, ",")+"]\n")
	s.prints(t, "plans list", "There are no plans; create one with aiv plans set.\n")
	storetest.Exec(t, pool, `INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'future', '')`)
	const later = "the database is newer than this binary: it has migration 9999_future; use the newer binary"
	rows = append(rows, `{"version":9999,"name":"future","state":"unknown","applied_at":"{time}"}`)
	s.prints(t, "accounts list", failure(in+later))
	s.prints(t, "migrate", failure(later))
	s.prints(t, "migrate -status -json", "["+strings.Join(rows, ",")+"]\n")
}

func TestStatusOfADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	const url = "postgres://me:sesame@127.0.0.1:1/db"
	prints{"status", 1, `^ready\tNO\ndatabase\tunreachable; database db at 127\.0\.0\.1:1\n` +
		`aiv: not ready: cannot connect to the database: `}.expect(t, url)
	stdout := prints{"status -json", 1, `^\{"ready":false,"problem":"[^"]+","database":\{"reachable":false,`}.expect(t, url)
	if strings.Contains(stdout, "sesame") {
		t.Errorf("the password is printed: %s", stdout)
	}
}

// TestStatusOfRoles: the roles of the services are listed with what they lack, and a service that could not serve is
// not ready. A role whose privileges were all revoked is not listed. Each grant is in the audit log, and one that is
// refused is not.
func TestStatusOfRoles(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	pool := connect(t, url)
	serve, _ := storetest.NewRole(t, pool, "_serve")
	dispatch, _ := storetest.NewRole(t, pool, "_dispatch")
	check := func(code int, problem string, want []status.Role) {
		t.Helper()
		got, stdout, stderr := aiv(t.Context(), "status", "-json", "-database-url", url)
		var s status.Status
		if err := json.Unmarshal([]byte(stdout), &s); err != nil || got != code || !strings.Contains(stderr, problem) || s.Queue == nil {
			t.Errorf("exit %d, %s%s; want %d, %s", got, stdout, stderr, code, problem)
		}
		equal(t, want, s.Roles, "roles")
	}
	s := &story{env: map[string]string{"DATABASE_URL": url}}
	s.prints(t, "migrate -json -actor ann -grant "+serve+" -grant-dispatch "+dispatch,
		`{"applied":[],"granted":"`+serve+`","granted_dispatch":"`+dispatch+`"}`+"\n")
	s.prints(t, "migrate -grant aiv", failure("\"aiv\" is a superuser, which has all privileges; choose another role"))
	s.prints(t, "audit list -json", `[{"at":"{time}","actor":"ann","action":"migrate.grant-dispatch","subject":"`+dispatch+`","detail":{}},`+
		`{"at":"{time}","actor":"ann","action":"migrate.grant","subject":"`+serve+`","detail":{}}]`+"\n")
	dispatchRole := status.Role{Name: dispatch, Service: "dispatch", Missing: []string{}}
	check(0, "", []status.Role{dispatchRole, {Name: serve, Service: "serve", Missing: []string{}}})
	storetest.Exec(t, pool, "REVOKE SELECT ON schema_migrations FROM "+serve)
	check(1, "the role \""+serve+"\" lacks privileges that aiv serve needs: SELECT ON schema_migrations; run `aiv migrate -grant "+serve+"` as the owner of the tables\n",
		[]status.Role{dispatchRole, {Name: serve, Service: "serve", Missing: []string{"SELECT ON schema_migrations"}}})
	prints{"status", 1, "\nrole\t" + serve + " for aiv serve, LACKS 1 PRIVILEGE\n"}.expect(t, url)
	storetest.Exec(t, pool, "DROP OWNED BY "+serve)
	check(0, "", []status.Role{dispatchRole})
}

// TestWhyJobsWait: aiv status says why the oldest job waits.
func TestWhyJobsWait(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	pool := connect(t, url)
	account := sampleAccount(t, url)
	writeRun(t, pool, account, "2026-03-01T00:00:00Z", 3)
	writeRun(t, pool, account, "2026-03-02T00:00:00Z", 3)
	for _, test := range []struct{ sql, want string }{
		{`INSERT INTO job_queue (account_id, run_id, model_no, provider_code, run_created_at, next_ordinal, last_ordinal)
		  SELECT account_id, id, 1, 'acme', created_at, 1, 3 FROM measurement_runs`, "the provider lacks configuration, secret, contract, legal_approval"},
		{acmeIsMet, "no worker for its provider was seen in the last 5 minutes"},
		{`INSERT INTO workers (id, name, providers, token_hash, last_seen_at) VALUES (gen_random_uuid(), 'w', '{other}', sha256('w'), now())`,
			"no worker for its provider was seen in the last 5 minutes"},
		{`UPDATE workers SET providers = NULL`, "it waits for a worker or for its turn"},
		{`INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until, started_at, worker_id)
		  SELECT account_id, run_id, n, n, provider_code, run_created_at, 'waiting', 1, 1, timestamptz '2126-03-01 00:00:00Z' + n * interval '1 s', now(), gen_random_uuid()
		  FROM job_queue, generate_series(1, 2) n WHERE run_created_at < '2026-03-02'`, "it waits for a worker or for its turn"},
		{`DELETE FROM job_queue WHERE run_created_at < '2026-03-02'`, "it waits for another try until 2126-03-01T00:00:01.000000Z"},
		{`UPDATE job_leases SET until = now() WHERE ordinal = 1`, "it waits for a worker or for its turn"},
	} {
		storetest.Exec(t, pool, test.sql)
		var got status.Status
		if _, err := got.Read(t.Context(), pool); err != nil || got.Oldest == nil {
			t.Fatalf("%v, %+v", err, got)
		}
		want := status.WaitingJob{Provider: "acme", RunCreatedAt: "2026-03-01T00:00:00.000000Z", Why: test.want}
		equal(t, want, *got.Oldest, "oldest job after "+test.sql)
	}
}
