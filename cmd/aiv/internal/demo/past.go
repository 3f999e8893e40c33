package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"fmt"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/gateway"
	"aiv/insights"
	"aiv/runs"
	"aiv/store"
)

// sampleInsights is a template in the format of `aiv insights import`; {{…}} stand for ids and times.
//
//go:embed insights.jsonl
var sampleInsights string

// A past is the history of the sample account. Its ids and times follow from the account's id and creation, so that a start
// after an interrupted one writes what is missing and nothing twice.
type past struct {
	pool    *pgxpool.Pool
	account auth.Account
}

// write creates the runs, moves them to their states, and imports the insights. The insights are imported last, in one
// transaction: if they exist, everything does.
func (d *past) write(ctx context.Context, credential store.ID) error {
	found, err := insights.Recommendations(ctx, d.pool, d.account.ID, insights.RecommendationFilter{}, store.Page{Limit: 1})
	if err != nil || len(found) > 0 {
		return err
	}
	if err := d.createRuns(ctx, credential); err != nil {
		return fmt.Errorf("create the sample runs: %w", err)
	}
	if err := d.moveRuns(ctx); err != nil {
		return fmt.Errorf("move the sample runs: %w", err)
	}
	if err := d.importInsights(ctx); err != nil {
		return fmt.Errorf("import the sample insights: %w", err)
	}
	return nil
}

func (d *past) createRuns(ctx context.Context, credential store.ID) error {
	var next store.ID
	writer := runs.New(runs.Config{
		Pool: d.pool, Checks: unchecked{}, NewID: func() store.ID { return next }, Timeout: 30 * time.Second, MaxWaiting: len(sampleRuns),
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
			Method: "DEMO", Route: "aiv demo", Key: r.name, // no route of the API, so no client's key
			Answer: func(*runs.Run) []byte { return []byte{} },
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unchecked accepts every run: the sample runs do not depend on later changes of the catalog.
type unchecked struct{}

func (unchecked) Check(context.Context, *runs.Proposal) (string, error) { return "AIVM-1.0", nil }

// moveRuns gives the runs the states that workers would have given them.
func (d *past) moveRuns(ctx context.Context) error {
	var moved []runs.Past
	for _, r := range sampleRuns {
		p := runs.Past{
			ID: d.runID(r), Status: r.status, CreatedAt: d.ago(r.ago),
			Completed: r.completed, Failed: r.failed, Canceled: r.canceled, Running: r.running,
		}
		if r.waited > 0 {
			p.StartedAt = new(p.CreatedAt.Add(r.waited))
		}
		if r.took > 0 {
			p.FinishedAt = new(p.CreatedAt.Add(r.waited + r.took))
		}
		moved = append(moved, p)
	}
	return runs.Backdate(ctx, d.pool, d.account.ID, moved)
}

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
	_, err = (&insights.Admin{Pool: d.pool, Actor: actor, NewID: store.NewID, Events: gateway.EventData{}}).Import(ctx, &file, nil)
	return err
}

func (d *past) ago(long time.Duration) time.Time { return d.account.CreatedAt.Add(-long) }

func (d *past) runID(r sampleRun) store.ID { return d.id("run", r.name, d.ago(r.ago)) }

// id returns the id of the given time for a name: the same for the same name and account.
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
