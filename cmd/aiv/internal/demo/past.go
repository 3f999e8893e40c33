package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/insights"
	"aiv/runs"
	"aiv/store"
)

// sampleInsights are recommendations and alerts as `aiv insights import` reads them, but for {{…}}, which stand for what
// each demonstration has of its own.
//
//go:embed insights.jsonl
var sampleInsights string

// A past is what an account of the demonstration has behind it. All of it follows from the account and the time it
// was made, ids and times alike: whatever is there already is not written again, even where an earlier start was
// interrupted half-way.
type past struct {
	pool    *pgxpool.Pool
	account auth.Account
}

// write writes the runs, moves them to where they have got since, and imports what was learned from them. The last of it
// is the sign that all of it is there.
func (d *past) write(ctx context.Context, credential store.ID) error {
	found, err := insights.Recommendations(ctx, d.pool, d.account.ID, insights.RecommendationFilter{}, store.Page{Limit: 1})
	if err != nil || len(found) > 0 {
		return err
	}
	if err := d.createRuns(ctx, credential); err != nil {
		return fmt.Errorf("the sample runs: %w", err)
	}
	if err := d.moveRuns(ctx); err != nil {
		return fmt.Errorf("the states of the sample runs: %w", err)
	}
	if err := d.importInsights(ctx); err != nil {
		return fmt.Errorf("the sample insights: %w", err)
	}
	return nil
}

func (d *past) createRuns(ctx context.Context, credential store.ID) error {
	var next store.ID
	writer := runs.New(runs.Config{
		Pool: d.pool, Checks: pretended{}, NewID: func() store.ID { return next }, Timeout: 30 * time.Second, MaxWaiting: len(sampleRuns),
	})
	for _, r := range sampleRuns {
		next = d.runID(r)
		if there, err := writer.Get(ctx, d.account.ID, next); err != nil || there != nil {
			if err != nil {
				return err
			}
			continue
		}
		_, err := writer.Create(ctx, &runs.CreateRequest{
			Proposal: &runs.Proposal{
				Credential: &auth.Credential{ID: credential, AccountID: d.account.ID},
				ModelIDs:   r.what.models, QuestionIDs: r.what.questions, Repetitions: r.repetitions, MeasurementType: "grounded",
				Locale: r.what.locale, Country: r.what.country, Language: r.what.language,
			},
			Method: "DEMO", Route: "aiv demo", Key: r.name, // no client's key is of such an operation
			Answer: func(*runs.Run) []byte { return []byte{} },
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pretended admits all: the samples must be there whatever an operator has made of the catalog meanwhile.
type pretended struct{}

func (pretended) Check(context.Context, *runs.Proposal) (string, error) { return "AIVM-1.0", nil }

// moveRuns does what the workers that measure would have done, who are no part of this program.
func (d *past) moveRuns(ctx context.Context) error {
	var moves []move
	for _, r := range sampleRuns {
		id := d.runID(r)
		m := move{
			ID: hex.EncodeToString(id[:]), Status: r.status, CreatedAt: d.ago(r.ago),
			Completed: r.completed, Failed: r.failed, Canceled: r.canceled, Running: r.running,
		}
		ended := d.account.CreatedAt // of what has not ended, the present
		if r.took > 0 {
			ended = m.CreatedAt.Add(r.waited + r.took)
			m.FinishedAt = &ended
		}
		if r.waited > 0 {
			m.StartedAt = new(m.CreatedAt.Add(r.waited))
			m.JobSeconds = ended.Sub(*m.StartedAt).Seconds() / float64(r.completed+r.failed+min(r.running, 1))
		}
		moves = append(moves, m)
	}
	text, err := json.Marshal(moves)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, moveRunsSQL, d.account.ID, text); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, countDemoMonths, d.account.ID)
		return err
	})
}

// A move is where a run and its jobs have got.
type move struct {
	ID         string     `json:"id"`
	Status     string     `json:"status"`
	CreatedAt  time.Time  `json:"created_at"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	JobSeconds float64    `json:"job_seconds"`
	Completed  int        `json:"completed"`
	Failed     int        `json:"failed"`
	Canceled   int        `json:"canceled"`
	Running    int        `json:"running"`
}

// moveRunsSQL moves the runs that are still as they were written, with all that repeats their times. Their jobs ended
// one after the other, in the order of their repetitions: the completed, then the failed, then the canceled.
const moveRunsSQL = `
WITH move AS (
  SELECT * FROM jsonb_to_recordset($2) AS m (id uuid, status text, created_at timestamptz, started_at timestamptz,
    finished_at timestamptz, job_seconds float8, completed integer, failed integer, canceled integer, running integer)
), run AS (
  UPDATE measurement_runs r SET status = m.status, created_at = m.created_at, started_at = m.started_at, finished_at = m.finished_at,
    jobs_completed = m.completed, jobs_failed = m.failed, jobs_canceled = m.canceled, jobs_running = m.running
  FROM move m WHERE r.account_id = $1 AND r.id = m.id AND r.created_at <> m.created_at
  RETURNING m.*
), model AS (
  UPDATE measurement_run_models o SET created_at = r.created_at FROM run r WHERE o.account_id = $1 AND o.run_id = r.id
), usage AS (
  UPDATE usage_records u SET created_at = r.created_at FROM run r WHERE u.account_id = $1 AND u.run_id = r.id
)
DELETE FROM account_months WHERE account_id = $1`

// countDemoMonths counts the runs in the months in which they now pretend to have been created.
const countDemoMonths = `
INSERT INTO account_months (account_id, month, runs, jobs_ordered, jobs_completed, jobs_failed, jobs_canceled)
SELECT account_id, date_trunc('month', created_at, 'UTC'), count(*), sum(total_jobs), COALESCE(sum(jobs_completed) FILTER (WHERE finished_at IS NOT NULL), 0),
  COALESCE(sum(jobs_failed) FILTER (WHERE finished_at IS NOT NULL), 0), sum(jobs_canceled)
FROM measurement_runs WHERE account_id = $1 GROUP BY 1, 2`

func (d *past) importInsights(ctx context.Context) error {
	byName := make(map[string]sampleRun, len(sampleRuns))
	for _, r := range sampleRuns {
		byName[r.name] = r
	}
	lines, err := template.New("insights.jsonl").Funcs(template.FuncMap{
		"account": func() string { return d.account.ID.Text("acct") },
		"rec":     func(name string) string { return d.id("rec", name, d.account.CreatedAt).Text("rec") },
		"alert":   func(name string) string { return d.id("alert", name, d.account.CreatedAt).Text("alert") },
		"run": func(name string) (string, error) {
			r, ok := byName[name]
			if !ok {
				return "", fmt.Errorf("there is no run %q", name)
			}
			return d.runID(r).Text("run"), nil
		},
		"ago": func(text string) (string, error) {
			long, err := time.ParseDuration(text)
			return d.ago(long).UTC().Format(time.RFC3339Nano), err
		},
	}).Parse(sampleInsights)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	if err := lines.Execute(&file, nil); err != nil {
		return err
	}
	_, err = (&insights.Admin{Pool: d.pool, Actor: actor, NewID: store.NewID}).Import(ctx, &file, nil)
	return err
}

func (d *past) ago(long time.Duration) time.Time { return d.account.CreatedAt.Add(-long) }

func (d *past) runID(r sampleRun) store.ID { return d.id("run", r.name, d.ago(r.ago)) }

// id is an id of the given time that is always the same for the same name in the same account.
func (d *past) id(kind, name string, at time.Time) store.ID {
	hash := sha256.Sum256([]byte(kind + " " + name + " " + d.account.ID.Text("acct")))
	id := store.ID(hash[:16])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0f | 0x70 // UUID version 7
	id[8] = id[8]&0x3f | 0x80 // and its variant
	return id
}
