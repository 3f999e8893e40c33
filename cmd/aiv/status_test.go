package main

import (
	"strings"
	"testing"

	"aiv/store/storetest"
)

// TestStatus: the status of a database without runs and providers, with a provider that lacks its dependencies, and with
// runs. It says why the oldest job waits.
func TestStatus(t *testing.T) {
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
	s := &story{env: map[string]string{"DATABASE_URL": url}}
	s.importSample(t)
	account := s.newAccount(t)
	prints{"status", 0, `\nproviders\t1, of which 1 HAVE UNMET DEPENDENCIES\n(?s:.*)` +
		`\n  acme\tconfiguration, secret, contract, legal_approval\n$`}.expect(t, url)
	writeRun(t, pool, account, "2025-03-01T00:00:00Z", 5)
	writeRun(t, pool, account, "2025-03-02T00:00:00Z", 7)
	storetest.Exec(t, pool, `
UPDATE measurement_runs SET status = 'running', started_at = now(), jobs_returned = 1, jobs_completed = 2, jobs_failed = 1 WHERE total_jobs = 5;
INSERT INTO visibility_backlog (account_id, run_id) SELECT account_id, id FROM measurement_runs WHERE total_jobs = 5;
INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
  SELECT id, id, 1, 'own', 'Kovalt', '{}', '{}', '{}', false, 'active' FROM accounts;
INSERT INTO brand_revisions (account_id, revision, changed_at, pending_since) SELECT id, 1, now(), now() - interval '130 seconds' FROM accounts`)
	for _, test := range []struct{ sql, want string }{
		{`INSERT INTO job_queue (account_id, run_id, model_no, provider_code, run_created_at, next_ordinal, last_ordinal)
		  SELECT account_id, id, 1, 'acme', created_at, 1, 3 FROM measurement_runs`, "the provider lacks configuration, secret, contract, legal_approval"},
		{`INSERT INTO provider_dependencies SELECT 'acme', d, true, 'n' FROM unnest('{configuration,secret,contract,legal_approval}'::text[]) d`,
			"no worker for its provider was seen in the last 5 minutes"},
		{`INSERT INTO workers (id, name, providers, token_hash, last_seen_at) VALUES (gen_random_uuid(), 'w', '{other}', sha256('w'), now())`,
			"no worker for its provider was seen in the last 5 minutes"},
		{`UPDATE workers SET providers = NULL`, "it waits for a worker or for its turn"},
		{`INSERT INTO job_leases (account_id, run_id, ordinal, last_ordinal, provider_code, run_created_at, state, attempt, tries, until, started_at, worker_id)
		  SELECT account_id, run_id, n, n, provider_code, run_created_at, 'waiting', 1, 1, timestamptz '2126-03-01 00:00:00Z' + n * interval '1 s', now(), gen_random_uuid()
		  FROM job_queue, generate_series(1, 2) n WHERE run_created_at < '2025-03-02'`, "it waits for a worker or for its turn"},
		{`DELETE FROM job_queue WHERE run_created_at < '2025-03-02'`, "it waits for another try until 2126-03-01T00:00:01.000000Z"},
		{`UPDATE job_leases SET until = now() WHERE ordinal = 1`, "it waits for a worker or for its turn"},
	} {
		storetest.Exec(t, pool, test.sql)
		prints{"status", 0, `\noldest job\tof acme, in a run of 2025-03-01T00:00:00\.000000Z: ` + test.want + `\n`}.expect(t, url)
	}
	prints{"status", 0, `^ready\tyes\ndatabase\tPostgreSQL .*\nmigrations\t\d+ applied\nqueue\t2 open runs, 8 queued jobs, the oldest for \d+h\S*\n` +
		`webhooks\t0 pending deliveries\nbrands\t1 active, 3 answers to recount, changed \d+m\d+s ago\nschedules\t0 active\n` +
		`workers\t1 seen in the last 5 minutes\noldest job.*\n  acme\t5 waiting, 0 leased; not paused\nproviders\t1, all dependencies met\n$`}.expect(t, url)
}

// TestMigrateCommand: a database from its creation to its use by a newer binary.
func TestMigrateCommand(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	const lacks, later = "run `aiv migrate`", "the database is newer than this binary: it has migration 9999_future; use the newer binary"
	expect(t, url,
		prints{"status -json", 1, `^\{"ready":false,"problem":"database \w+ at \S+:\d+: [^"]*` + lacks + `[^"]*","database":\{"reachable":true,.*` +
			`"migrations":\{"applied":0,"pending":\d\d,"changed":0,"newer":0,"unknown":0\},"roles":null,"providers":null,"queue":null,` +
			`"workers_seen":null,"oldest_waiting":null,"webhooks":null,"brands":null,"schedules":null,"expiring_keys":null\}\n`},
		// On plain PostgreSQL -distribute reports what is missing and applies no migration.
		prints{"migrate -distribute", 1, "^aiv: the extension citus is missing in this database; .* nothing was changed\n$"},
		prints{"plans list", 1, `^aiv: database \w+ at \S+:\d+: .*` + lacks},
		prints{"migrate -status", 0, `^VERSION\tNAME\tSTATE\tAPPLIED\n(\d+\t\w+\tpending\tno\n){20,}\nNot usable by this binary: .*` + lacks},
		prints{"migrate", 0, `^(Applied \d{4}_\w+\.\n){20,}$`},
		prints{"migrate", 0, `^The database is up to date\.\n$`},
		prints{"migrate -status -json", 0, `^\[(\{"version":\d+,"name":"\w+","state":"applied","applied_at":"20[^"]+Z"\},?){20,}\]\n$`},
		prints{"plans list", 0, `^There are no plans; create one with aiv plans set\.\n$`})
	storetest.Exec(t, connect(t, url), `INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'future', '')`)
	expect(t, url, prints{"accounts list", 1, `^aiv: database .*: ` + later + `\n$`}, prints{"migrate", 1, `^aiv: ` + later + `\n$`},
		prints{"migrate -status -json", 0, `\{"version":9999,"name":"future","state":"unknown","applied_at":"20[^"]+Z"\}\]\n$`})
}

func TestStatusOfADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	const url = "postgres://me:sesame@127.0.0.1:1/db"
	prints{"status", 1, `^ready\tNO\ndatabase\tunreachable; database db at 127\.0\.0\.1:1\n` +
		`aiv: not ready: cannot connect to the database: `}.expect(t, url)
	stdout := prints{"status -json", 1, `^\{"ready":false,"problem":"[^"]+","database":\{"reachable":false,`}.expect(t, url)
	equal(t, false, strings.Contains(stdout, "sesame"), "the password is printed: ", stdout)
}

// TestStatusOfRoles: the roles of the services are listed with what they lack, and a service that could not serve is
// not ready. A role whose privileges were all revoked is not listed. Each grant is in the audit log, and one that is
// refused is not.
func TestStatusOfRoles(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	pool := connect(t, s.url())
	serve, _ := storetest.NewRole(t, pool, "_serve")
	dispatch, _ := storetest.NewRole(t, pool, "_dispatch")
	s.prints(t, "migrate -json -actor ann -grant "+serve+" -grant-dispatch "+dispatch,
		`{"applied":[],"granted":"`+serve+`","granted_dispatch":"`+dispatch+`"}`+"\n")
	s.prints(t, "migrate -grant aiv", failure("\"aiv\" is a superuser, which has all privileges; choose another role"))
	s.prints(t, "audit list -json", `[{"at":"{time}","actor":"ann","action":"migrate.grant-dispatch","subject":"`+dispatch+`","detail":{}},`+
		`{"at":"{time}","actor":"ann","action":"migrate.grant","subject":"`+serve+`","detail":{}}]`+"\n")
	ofDispatch := `"roles":\[\{"name":"` + dispatch + `","service":"dispatch","missing":\[\]\}`
	prints{"status -json", 0, ofDispatch + `,\{"name":"` + serve + `","service":"serve","missing":\[\]\}\],`}.expect(t, s.url())
	storetest.Exec(t, pool, "REVOKE SELECT ON schema_migrations FROM "+serve)
	prints{"status -json", 1, ofDispatch + `,\{"name":"` + serve + `","service":"serve","missing":\["SELECT ON schema_migrations"\]\}\],`}.expect(t, s.url())
	prints{"status", 1, `\nrole\t` + serve + ` for aiv serve, LACKS 1 PRIVILEGE\n(?s:.*)the role "` + serve + `" lacks privileges that aiv serve needs: ` +
		"SELECT ON schema_migrations; run `aiv migrate -grant " + serve + "` as the owner of the tables\n"}.expect(t, s.url())
	storetest.Exec(t, pool, "DROP OWNED BY "+serve)
	prints{"status -json", 0, ofDispatch + `\],`}.expect(t, s.url())
}
