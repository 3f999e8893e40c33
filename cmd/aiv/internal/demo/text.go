package demo

import (
	"fmt"
	"io"
	"text/template"
)

// A Service is what WriteText describes.
type Service struct {
	Base  string // URL of the public API
	Admin string // URL of the admin listener
	Key   string
	Data  string // the folder of the private PostgreSQL
}

// WriteText writes how to use the running demonstration: addresses, the key, and commands to paste.
func WriteText(w io.Writer, s Service) error {
	if err := text.Execute(w, s); err != nil {
		return fmt.Errorf("write the instructions: %w", err)
	}
	return nil
}

var text = template.Must(template.New("demo").Parse(`
aiv serves sample data. Stop it with Ctrl-C; the data stay for the next start.

  base URL   {{.Base}}
  key        {{.Key}}   (shown only this once; the next start revokes it)
  reference  {{.Base}}/docs   (with a console for requests)
  admin      {{.Admin}}  /livez /readyz /metrics
  data       {{.Data}}   (other commands: aiv … -data-dir {{.Data}})

Paste these into another terminal:

  export BASE={{.Base}}
  export KEY={{.Key}}

  # the account and the scopes of the key
  curl -s "$BASE?path=/v1/me" -H "Authorization: Bearer $KEY"

  # create a run: 1 model × 2 questions × 3 repetitions = 6 jobs
  curl -si "$BASE" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" -H "Idempotency-Key: first-run" \
    -d '{"path":"/v1/runs","method":"POST","body":{"model_ids":["openai/gpt-5-search"],"question_ids":["it-running-shoes","it-espresso-machine"],"repetitions":3,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}}'

  # the same again: returns the same run, with Idempotent-Replayed: true

  # read the sample data: runs, models, recommendations, alerts of severity high
  curl -s "$BASE?path=/v1/runs&status=completed&limit=5" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/catalog/models&grounded_search=true" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/recommendations&status=suggested" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/alerts&severity=high" -H "Authorization: Bearer $KEY"

`))
