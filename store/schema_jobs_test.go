package store_test

import (
	"strings"
	"testing"

	"aiv/store/storetest"
)

// job is a VALUES row of measurement_jobs of the run that setUpSchema writes.
func job(run, place string) string { return `(` + ourAccount + `, ` + run + `, ` + place + `)` }

// TestSchemaJobsAreWholeRuns: a run's jobs come all at once and each once, in one statement, or not at all.
func TestSchemaJobsAreWholeRuns(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	if _, err := pool.Exec(t.Context(), setUpSchema); err != nil {
		t.Fatal(err)
	}
	const into = `INSERT INTO measurement_jobs (account_id, run_id, model_no, question_no, repetition) VALUES `
	all := job(ourRun, `1, 1, 1`) + `, ` + job(ourRun, `1, 1, 2`) + `, ` + job(ourRun, `2, 1, 1`) + `, ` + job(ourRun, `2, 1, 2`)
	const whole = "measurement_jobs_are_whole_runs"
	for _, test := range []struct{ name, sql, constraint string }{
		{"all of them", into + all, ""},
		{"none", `INSERT INTO measurement_jobs SELECT * FROM measurement_jobs`, ""},
		{"one too few", into + job(ourRun, `1, 1, 1`) + `, ` + job(ourRun, `1, 1, 2`) + `, ` + job(ourRun, `2, 1, 1`), whole},
		{"the last one later", into + job(ourRun, `1, 1, 1`) + `, ` + job(ourRun, `1, 1, 2`) + `, ` + job(ourRun, `2, 1, 1`) + `;` +
			into + job(ourRun, `2, 1, 2`), whole},
		{"the same one twice", into + job(ourRun, `1, 1, 1`) + `, ` + all, "measurement_jobs_pkey"},
		{"all of them twice", into + all + `;` + into + all, "measurement_jobs_pkey"},
		{"one too many", into + all + `, ` + job(ourRun, `2, 1, 3`), whole},
		{"one too many, later", into + all + `;` + into + job(ourRun, `2, 1, 3`), whole},
		{"a model that the run does not have", into + job(ourRun, `1, 1, 1`) + `, ` + job(ourRun, `1, 1, 2`) + `, ` + job(ourRun, `2, 1, 1`) +
			`, ` + job(ourRun, `3, 1, 2`), whole},
		{"a question that the run does not have", into + job(ourRun, `1, 1, 1`) + `, ` + job(ourRun, `1, 1, 2`) + `, ` + job(ourRun, `2, 1, 1`) +
			`, ` + job(ourRun, `2, 2, 2`), whole},
		{"of no run", into + job(nobody, `1, 1, 1`), whole},
		{"of another account's run", into + `(` + theirAccount + `, ` + ourRun + `, 1, 1, 1)`, whole},
		{"of a run and of none", into + all + `, ` + job(nobody, `1, 1, 1`), whole},
		{"a model before the first", into + job(ourRun, `0, 1, 1`), "measurement_jobs_place_check"},
		{"a question before the first", into + job(ourRun, `1, 0, 1`), "measurement_jobs_place_check"},
		{"a repetition before the first", into + job(ourRun, `1, 1, 0`), "measurement_jobs_place_check"},
		{"an unknown state", into + all + `; UPDATE measurement_jobs SET status = 'done'`, "measurement_jobs_status_check"},
		{"finished without a time", into + all + `; UPDATE measurement_jobs SET status = 'failed'`, "measurement_jobs_status_check"},
		{"a time without being finished", into + all + `; UPDATE measurement_jobs SET finished_at = now()`, "measurement_jobs_status_check"},
	} {
		constraint := ""
		e := refusal(t, pool, test.sql)
		if e != nil {
			constraint = e.ConstraintName
		}
		if constraint != test.constraint {
			t.Errorf("%s: refused by %q, want %q (%v)", test.name, constraint, test.constraint, e)
		}
	}
}

// TestSchemaJobsOfALargeRun: the same of a run whose jobs take the trigger's shorter way.
func TestSchemaJobsOfALargeRun(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	if _, err := pool.Exec(t.Context(), setUpSchema); err != nil {
		t.Fatal(err)
	}
	const (
		into = `; INSERT INTO measurement_jobs (account_id, run_id, model_no, question_no, repetition) `
		all  = `SELECT ` + ourAccount + `::uuid, ` + freshID + `::uuid, m, q, r FROM generate_series(1, 30) m, generate_series(1, 40) q, generate_series(1, 2) r`
		ours = `SELECT ` + ourAccount + `::uuid, ` + ourRun + `::uuid, m, 1, r FROM generate_series(1, 2) m, generate_series(1, 2) r`

		whole = "measurement_jobs_are_whole_runs"
	)
	large := insertion("measurement_runs", map[string]string{
		"id": freshID, "model_ids": `ARRAY(SELECT 'm' || i FROM generate_series(1, 30) i)`,
		"question_ids": `ARRAY(SELECT 'q' || i FROM generate_series(1, 40) i)`, "repetitions": `2`, "total_jobs": `2400`,
	})
	for _, test := range []struct{ name, sql, constraint string }{
		{"all of them", into + all, ""},
		{"and those of another run after them", into + all + ` UNION ALL ` + ours, ""},
		{"and those of another run before them", into + ours + ` UNION ALL ` + all, ""},
		{"one too few", into + all + ` OFFSET 1`, whole},
		{"one too few, the other one's before them", into + ours + ` UNION ALL (` + all + ` OFFSET 1)`, whole},
		{"one of another run in place of one of them", into + `(` + all + ` OFFSET 1) UNION ALL (` + ours + ` LIMIT 1)`, whole},
		{"another's as many", into + strings.ReplaceAll(all, freshID, nobody), whole},
		{"another account's as many", into + strings.ReplaceAll(all, ourAccount, theirAccount), whole},
		{"more repetitions of fewer questions", into + strings.NewReplacer(`1, 40`, `1, 20`, `1, 2)`, `1, 4)`).Replace(all), whole},
		{"all of them twice", into + all + into + all, "measurement_jobs_pkey"},
	} {
		constraint := ""
		e := refusal(t, pool, large+test.sql)
		if e != nil {
			constraint = e.ConstraintName
		}
		if constraint != test.constraint {
			t.Errorf("%s: refused by %q, want %q (%v)", test.name, constraint, test.constraint, e)
		}
	}
}
