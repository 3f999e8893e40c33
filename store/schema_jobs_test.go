package store_test

import (
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
		{"a place before the first", into + job(ourRun, `0, 1, 1`), "measurement_jobs_model_no_check"},
		{"an unknown state", into + all + `; UPDATE measurement_jobs SET status = 'done'`, "measurement_jobs_status_check"},
		{"finished without a time", into + all + `; UPDATE measurement_jobs SET status = 'failed'`, "measurement_jobs_check"},
		{"a time without being finished", into + all + `; UPDATE measurement_jobs SET finished_at = now()`, "measurement_jobs_check"},
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
