package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"text/template"
	"time"

	"aiv/gateway"
	"aiv/insights"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
)

// sampleInsights is a template in the format of `aiv insights import`; {{…}} stand for ids, times, and rates of runs.
//
//go:embed insights.jsonl
var sampleInsights string

// importInsights fills the template, so that the insights refer to the runs and rates that this database has, and
// imports it.
func (d *past) importInsights(ctx context.Context) error {
	lines, err := template.New("insights.jsonl").Funcs(template.FuncMap{
		"account": func() string { return d.account.ID.Text("acct") },
		"rec":     func(name string) string { return d.id("rec", name, d.account.CreatedAt).Text("rec") },
		"alert":   func(name string) string { return d.id("alert", name, d.account.CreatedAt).Text("alert") },
		"run":     func(name string) string { return d.runID(runNamed(name)).Text("run") },
		// A time after the end of a run.
		"after": func(name, text string) (string, error) {
			long, err := time.ParseDuration(text)
			r := runNamed(name)
			return d.at(&r).Add(r.waited + r.took + long).UTC().Format(time.RFC3339Nano), err
		},
		"row": func(brand, run, model string) (visibility.Row, error) { return d.row(ctx, brand, run, model) },
	}).Parse(sampleInsights)
	if err != nil {
		return err
	}
	var file bytes.Buffer
	if err := lines.Execute(&file, nil); err != nil {
		return err
	}
	admin := &insights.Admin{Pool: d.pool, Actor: actor, Events: gateway.EventData{}, Record: webhooks.RecordMany}
	_, err = admin.Import(ctx, &file, nil)
	return err
}

// row returns what GET /v1/metrics gives for a brand, a run and a model, or all models if it is empty.
func (d *past) row(ctx context.Context, brand, run, model string) (visibility.Row, error) {
	query := &visibility.Query{Zone: time.UTC, Brand: new(d.brandID(brand))}
	query.Run, query.Model = new(d.runID(runNamed(run))), model
	m, err := visibility.ReadMetrics(ctx, d.pool, d.account.ID, query)
	if err != nil {
		return visibility.Row{}, err
	}
	if len(m.Rows) != 1 {
		return visibility.Row{}, fmt.Errorf("the brand %s has %d rows", brand, len(m.Rows))
	}
	return m.Rows[0], nil
}

// runNamed returns a sample run. There must be one of the name.
func runNamed(name string) sampleRun {
	for _, r := range sampleRuns {
		if r.name == name {
			return r
		}
	}
	panic("there is no sample run " + name)
}
