package store_test

import (
	"strings"
	"testing"

	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/google/go-cmp/cmp"
)

// Some of what may refer to a run, and their rows as those of one statement.
const (
	itsJobs    = `INSERT INTO measurement_jobs (account_id, run_id, model_no, question_no, repetition) SELECT ` + ourAccount + `, ` + ourRun + `, m, 1, r FROM generate_series(1, 2) m, generate_series(1, 2) r; `
	secondRun  = `INSERT INTO measurement_runs SELECT (jsonb_populate_record(r, jsonb_build_object('id', ` + freshID + `))).* FROM measurement_runs r; `
	twoUsages  = `INSERT INTO usage_records SELECT account_id, unnest(ARRAY[id, %]::uuid[]), credential_id, 4, 'grounded', 'AIVM-1.0' FROM measurement_runs WHERE id = ` + ourRun + `; `
	twoKeys    = `INSERT INTO idempotency_records SELECT account_id, 'POST', '/', unnest(ARRAY['a', 'b']), sha256(''), unnest(ARRAY[id, %]::uuid[]), '' FROM measurement_runs WHERE id = ` + ourRun + `; `
	deleteRuns = `DELETE FROM measurement_runs; `
)

// TestSchemaReferences: what the triggers refuse in place of foreign keys, in both directions.
func TestSchemaReferences(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	if _, err := pool.Exec(t.Context(), setUpSchema); err != nil {
		t.Fatal(err)
	}
	const referredTo, never = "23503 measurement_runs measurement_runs_are_referred_to", "23001 "
	for _, test := range []struct{ name, sql, refused string }{
		{"two runs, one of another account's credential", secondRun + strings.ReplaceAll(`INSERT INTO measurement_runs
			SELECT (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid(), 'credential_id', CASE WHEN id = % THEN credential_id ELSE `+
			theirCredential+` END))).* FROM measurement_runs r`, `%`, ourRun), "23503 measurement_runs measurement_runs_belong"},
		{"a run of their account and credential", insertion("measurement_runs", map[string]string{"account_id": theirAccount, "credential_id": theirCredential}), ""},
		{"a credential that is disabled", `UPDATE credentials SET disabled_at = now(); ` + insertion("measurement_runs", nil), ""},
		{"usage of two runs", secondRun + strings.Replace(twoUsages, "%", freshID, 1), ""},
		{"usage of a run and of none", strings.Replace(twoUsages, "%", nobody, 1), "23503 usage_records usage_records_belong"},
		{"usage of a run and of one before all", strings.Replace(twoUsages, "%", `'00000000-0000-0000-0000-000000000000'`, 1), "23503 usage_records usage_records_belong"},
		{"keys of two runs", secondRun + strings.Replace(twoKeys, "%", freshID, 1), ""},
		{"keys of a run and of none", strings.Replace(twoKeys, "%", nobody, 1), "23503 idempotency_records idempotency_records_belong"},

		{"a run that nothing refers to is deleted", deleteRuns, ""},
		{"a run with jobs is deleted", itsJobs + deleteRuns, referredTo},
		{"a run with usage is deleted", insertion("usage_records", nil) + `; ` + deleteRuns, referredTo},
		{"a run with a key is deleted", insertion("idempotency_records", nil) + `; ` + deleteRuns, referredTo},
		{"two runs are deleted, one of them with a key", secondRun + insertion("idempotency_records", nil) + `; ` + deleteRuns, referredTo},
		{"the one without is deleted", secondRun + insertion("idempotency_records", nil) + `; DELETE FROM measurement_runs WHERE id = ` + freshID, ""},
		{"a run is deleted when nothing refers to it any more", insertion("idempotency_records", nil) + `; DELETE FROM idempotency_records; ` + deleteRuns, ""},
		{"runs are truncated", `TRUNCATE measurement_runs CASCADE`, never + "measurement_runs"},
		{"a run's id is changed", `UPDATE measurement_runs SET id = ` + freshID, never + "measurement_runs"},
		{"a run's account is changed", `UPDATE measurement_runs SET account_id = ` + theirAccount, never + "measurement_runs"},
		{"a run's status is changed", `UPDATE measurement_runs SET status = 'running', started_at = now()`, ""},
		{"a run's credential is changed", `UPDATE measurement_runs SET credential_id = ` + theirCredential, never + "measurement_runs"},
		{"a run's methodology is changed", `UPDATE measurement_runs SET methodology_version = 'none'`, never + "measurement_runs"},
		{"a run's models are changed", `UPDATE measurement_runs SET model_ids = '{x,y}'`, never + "measurement_runs"},
		{"a job moves to another run", itsJobs + `UPDATE measurement_jobs SET run_id = ` + freshID, never + "measurement_jobs"},
		{"a job becomes another", itsJobs + `UPDATE measurement_jobs SET repetition = repetition + 1`, never + "measurement_jobs"},
		{"a job's status is changed", itsJobs + `UPDATE measurement_jobs SET status = 'running'`, ""},
		{"usage is changed", insertion("usage_records", nil) + `; UPDATE usage_records SET jobs = 1`, never + "usage_records"},
		{"usage moves to another run", insertion("usage_records", nil) + `; UPDATE usage_records SET run_id = ` + freshID, never + "usage_records"},
		{"a key comes to stand for another run", insertion("idempotency_records", nil) + `; UPDATE idempotency_records SET run_id = ` + freshID, never + "idempotency_records"},
		{"a key's answer is changed", insertion("idempotency_records", nil) + `; UPDATE idempotency_records SET answer = ''`, never + "idempotency_records"},
		{"a credential is deleted", `DELETE FROM credentials WHERE id = ` + theirCredential, never + "credentials"},
		{"credentials are truncated", `TRUNCATE credentials CASCADE`, never + "credentials"},
		{"a credential's id is changed", `UPDATE credentials SET id = ` + freshID + ` WHERE id = ` + theirCredential, never + "credentials"},
		{"a credential's account is changed", `UPDATE credentials SET account_id = ` + ourAccount, never + "credentials"},
		{"a credential's name is changed", `UPDATE credentials SET name = 'other'`, ""},
		{"a methodology is deleted", `DELETE FROM methodologies`, never + "methodologies"},
		{"methodologies are truncated", `TRUNCATE methodologies`, never + "methodologies"},
		{"a methodology's version is changed", `UPDATE methodologies SET version = 'AIVM-3.0'`, never + "methodologies"},
		{"a methodology is retired", `UPDATE methodologies SET status = 'retired'`, ""},
	} {
		refused := ""
		e := refusal(t, pool, test.sql)
		if e != nil {
			refused = strings.TrimSpace(e.Code + " " + e.TableName + " " + e.ConstraintName)
		}
		if refused != test.refused {
			t.Errorf("%s: refused by %q, want %q (%v)", test.name, refused, test.refused, e)
		}
	}
}

// TestSchemaFollows: the tables that indexes of several values need have what they index.
func TestSchemaFollows(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	if _, err := pool.Exec(t.Context(), setUpSchema); err != nil {
		t.Fatal(err)
	}
	run := func(id, models string) string {
		return insertion("measurement_runs", map[string]string{"id": id, "model_ids": models, "question_ids": `'{q}'`, "repetitions": `1`,
			"total_jobs": `cardinality((` + models + `)::text[])`, "jobs_running": `0`, "jobs_completed": `0`, "jobs_failed": `0`, "jobs_canceled": `0`}) + `; `
	}
	question := func(id, account, tags string) string {
		return insertion("questions", map[string]string{"id": id, "account_id": account, "tags": tags}) + `; `
	}
	const (
		models = `SELECT model_id || ' of ' || right(run_id::text, 1) || CASE WHEN o.created_at = r.created_at THEN '' ELSE ' at another time' END
			FROM measurement_run_models o JOIN measurement_runs r ON (r.account_id, r.id) = (o.account_id, o.run_id) ORDER BY 1`
		tags    = `SELECT tag || ' on ' || question_id || ' of ' || right(owner::text, 1) FROM question_tags ORDER BY 1`
		replica = `SET LOCAL session_replication_role = replica; `
	)
	for _, test := range []struct {
		name, sql, query string
		want             []string
	}{
		{"the run that is there", ``, models, []string{"a of 3", "b of 3"}},
		{"a run is added", run(freshID, `'{c,a}'`), models, []string{"a of 3", "a of 4", "b of 3", "c of 4"}},
		{"runs are added by one statement", secondRun, models, []string{"a of 3", "a of 4", "b of 3", "b of 4"}},
		{"a run comes by replication", replica + run(freshID, `'{c}'`), models, []string{"a of 3", "b of 3", "c of 4"}},
		{"a run changes its state", `UPDATE measurement_runs SET status = 'running', started_at = now()`, models, []string{"a of 3", "b of 3"}},

		{"everybody's question", question(`'q'`, `NULL`, `'{x,y,x}'`), tags, []string{"x on q of 0", "y on q of 0"}},
		{"a question of one's own", question(`'q'`, ourAccount, `'{x}'`), tags, []string{"x on q of 1"}},
		{"a question without tags", question(`'q'`, `NULL`, `'{}'`), tags, nil},
		{"tags change", question(`'q'`, ourAccount, `'{x,y}'`) + question(`'r'`, `NULL`, `'{x}'`) + `UPDATE questions SET tags = '{y,z}' WHERE id = 'q'`,
			tags, []string{"x on r of 0", "y on q of 1", "z on q of 1"}},
		{"tags go", question(`'q'`, `NULL`, `'{x}'`) + `UPDATE questions SET tags = '{}'`, tags, nil},
		{"another column changes", question(`'q'`, `NULL`, `'{x}'`) + `UPDATE questions SET status = 'archived'`, tags, []string{"x on q of 0"}},
		{"a question is merged", question(`'q'`, `NULL`, `'{x}'`) + strings.TrimSuffix(question(`'q'`, `NULL`, `'{y}'`), "; ") +
			` ON CONFLICT (id) DO UPDATE SET tags = excluded.tags`, tags, []string{"y on q of 0"}},
		{"a question is deleted", question(`'q'`, `NULL`, `'{x}'`) + `DELETE FROM questions`, tags, nil},
	} {
		if diff := cmp.Diff(test.want, after(t, pool, test.sql, test.query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// after tells what a query finds after some statements, which are undone.
func after(t *testing.T, pool *pgxpool.Pool, sql, query string) (found []string) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	rows, err := tx.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	if found, err = pgx.AppendRows(found, rows, pgx.RowTo[string]); err != nil {
		t.Fatal(err)
	}
	return found
}
