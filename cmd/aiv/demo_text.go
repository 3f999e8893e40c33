package main

import (
	"context"
	"log/slog"
	"slices"
	"text/template"

	"aiv/catalog"
)

var demoText = template.Must(template.New("demo").Parse(`
aiv is serving a demonstration. Stop it with Ctrl-C; the data stays for the next time.

  base URL   {{.Base}}
  key        {{.Key}}   (shown only this once)
  reference  {{.Base}}/docs   (with a console: paste the key there)
  admin      {{.Admin}}  /livez /readyz /metrics

Paste these into another terminal:

  export BASE={{.Base}}
  export KEY={{.Key}}

  # who am I?
  curl -s "$BASE?path=/v1/me" -H "Authorization: Bearer $KEY"

  # measure: 1 model × 2 questions × 3 repetitions = 6 jobs
  curl -si "$BASE" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" -H "Idempotency-Key: first-run" \
    -d '{"path":"/v1/runs","method":"POST","body":{"model_ids":["openai/gpt-5-search"],"question_ids":["it-running-shoes","it-espresso-machine"],"repetitions":3,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}}'

  # paste it again: the same run, with Idempotent-Replayed: true

  # what is there already: runs, models, recommendations, alerts (high or worse)
  curl -s "$BASE?path=/v1/runs&status=completed&limit=5" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/catalog/models&grounded_search=true" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/recommendations&status=suggested" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/alerts&severity=high" -H "Authorization: Bearer $KEY"

`))

// demoProvider records what the demonstration pretends of a provider that nobody has recorded anything of.
func demoProvider(ctx context.Context, shelf *catalog.Admin, p *catalog.Provider) error {
	if !slices.Contains(demoReady, p.Code) {
		return nil
	}
	for _, d := range p.Dependencies {
		if d.ChangedAt != nil {
			continue
		}
		if err := shelf.SetDependency(ctx, p.Code, d.Name, true, "pretended by aiv demo; nobody has checked it"); err != nil {
			return err
		}
	}
	return nil
}

// quiet drops the line that every request leaves, so that the text above stays in sight; errors are still told.
type quiet struct{ slog.Handler }

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn && r.Message == "request" {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}
