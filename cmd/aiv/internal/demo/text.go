package demo

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// A Service is what WriteText describes.
type Service struct {
	Base  string // URL of the public API
	Admin string // URL of the admin listener
	Secrets
	Workers string // URL of the worker interface
	Program string // the command that starts aiv
	Folder  string // where Program works; empty: everywhere
	Data    string // the folder of the private PostgreSQL

	Leave []string // providers whose jobs the sample worker leaves

	// set by WriteText
	Model    string // of the run that the text creates
	Answered bool   // by the sample worker
}

// sampleModels are models for the run that the text creates: the first one whose jobs the sample worker answers.
var sampleModels = []string{
	"openai/gpt-5-search", "anthropic/claude-sonnet-5-5", "google/gemini-2.5-pro", "perplexity/sonar-pro", "xai/grok-4.7",
}

// engineModels are models that the engines of aiv work can ask, by provider.
var engineModels = map[string]string{
	"openai": "openai/gpt-6-sol", "anthropic": "anthropic/claude-sonnet-5-5", "google": "google/gemini-3.8-flash",
	"perplexity": "perplexity/sonar", "xai": "xai/grok-4.7",
}

// sampleModel returns the model of sampleModels if the sample worker leaves some providers, and whether it answers. If
// it leaves all providers, an engine answers the jobs of the model.
func sampleModel(leave []string) (model string, answered bool) {
	for _, model := range sampleModels {
		if provider, _, _ := strings.Cut(model, "/"); !slices.Contains(leave, provider) {
			return model, true
		}
	}
	return engineModels["openai"], false
}

// WriteText writes how to use the running demonstration: addresses, the key, and commands to paste.
func WriteText(w io.Writer, s Service) error {
	s.Model, s.Answered = sampleModel(s.Leave)
	if err := text.Execute(w, s); err != nil {
		return fmt.Errorf("write the instructions: %w", err)
	}
	return nil
}

// text is what WriteText writes. Its shell comments have no apostrophe, lone quotation mark or semicolon: an interactive
// zsh reads comments as commands.
var text = template.Must(template.New("demo").Funcs(template.FuncMap{
	"model": func(provider string) string { return engineModels[provider] },
}).Parse(`
aiv serves sample data. Stop it with Ctrl-C; the data is kept for the next start.

  report     {{.Base}}/report   (enter the key: how visible the brands of the sample account are)
  base URL   {{.Base}}
  key        {{.Key}}   (shown only this once; the next start revokes it)
  reference  {{.Base}}/docs   (with a console for requests)
  workers    {{.Workers}}   (a sample worker answers the jobs of all providers but mistral{{range .Leave}}, {{.}}{{end}})
  admin      {{.Admin}}  /livez /readyz /metrics
  data       {{.Data}}   (other commands: {{.Program}} … -data-dir {{.Data}})

Paste these into another terminal{{with .Folder}}, in {{.}}{{end}}:

  export BASE={{.Base}}
  export KEY={{.Key}}
  # Fernmark, the own brand of the account
  export BRAND={{.Brand}}

  # how often answers about running shoes mention it, by model, which sites they cite, and what an alias changes: the name of its shoe
  curl -s "$BASE?path=/v1/metrics&tag=shoes&group_by=model&brand_id=$BRAND" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/sources&tag=shoes&limit=5" -H "Authorization: Bearer $KEY"
  curl -s -X PATCH "$BASE/v1/brands/$BRAND" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" -d '{"aliases":["FMK","Aeolo"]}'; sleep 3; \
    curl -s "$BASE?path=/v1/metrics&tag=shoes&group_by=model&brand_id=$BRAND" -H "Authorization: Bearer $KEY"

  # the schedules of the account, and what was derived from their runs
  curl -s "$BASE?path=/v1/schedules" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/alerts&status=open&limit=2" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/recommendations&type=citation_gap&limit=2" -H "Authorization: Bearer $KEY"

  # the same as tools of an assistant, here Claude Code:
  # claude mcp add --transport http aiv {{.Base}}/mcp --header "Authorization: Bearer $KEY"

  # the account and the scopes of the key
  curl -s "$BASE?path=/v1/me" -H "Authorization: Bearer $KEY"

  # create a run: 1 model × 2 questions × 3 repetitions = 6 jobs. NEW makes its idempotency key new at each start
  NEW=$(date +%s)
  ask() { curl -si "$BASE" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" -H "Idempotency-Key: $1" \
    -d '{"path":"/v1/runs","method":"POST","body":{"model_ids":["'$2'"],"question_ids":["it-running-shoes","it-espresso-machine"],"repetitions":3,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}}'; }
  RUN=$(ask first-$NEW {{.Model}} | tee /dev/stderr | grep -o 'run_[0-9a-z]\{26\}' | head -n 1)

{{if .Answered}}  # five seconds later: the run is completed, and its results are sample answers
{{else}}  # the run waits for the workers that you start below
{{end}}  sleep 5
  curl -s "$BASE?path=/v1/runs/$RUN" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/runs/$RUN/results&limit=2" -H "Authorization: Bearer $KEY"

  # the same request again: returns the same run, with Idempotent-Replayed: true
  ask first-$NEW {{.Model}}

  # read the sample data: runs, models, recommendations, alerts of severity high or worse
  curl -s "$BASE?path=/v1/runs&status=completed&limit=5" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/catalog/models&grounded_search=true" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/recommendations&status=suggested" -H "Authorization: Bearer $KEY"
  curl -s "$BASE?path=/v1/alerts&severity=high" -H "Authorization: Bearer $KEY"

Start a worker for the provider mistral in a third terminal{{with .Folder}}, in {{.}}{{end}}. It runs a command for each job, which reads the job from stdin and
prints an answer.

cat >answer.sh <<'END'
#!/bin/sh
id=$(sed 's/.*"question":{"id":"\([^"]*\)".*/\1/') at=$(date -u +%FT%TZ)
printf '{"text":"A sample answer to %s by a shell script. It recommends **Alderway** and *Fernmark*.","citations":[{"url":"https://example.org/%s","title":null}],"search_queries":[],"model_version":null,"answered_at":"%s"}' $id $id $at
END
echo {{.Token}} >worker.token
{{.Program}} work -url {{.Workers}} -token-file worker.token -provider mistral -parallel 4 -- sh answer.sh

It answers the waiting jobs of mistral. Create another run in the second terminal: ask second-$NEW mistral/le-chat

{{with .Leave}}The sample worker leaves the jobs of these providers. Ask real models, with the engine's key in the environment; that costs money:

echo {{$.Token}} >worker.token
{{range .}}{{$.Program}} work -engine {{if eq . "google"}}gemini{{else}}{{.}}{{end}} -provider {{.}} -url {{$.Workers}} -token-file worker.token
{{end}}
Create runs for them in the second terminal:

{{range .}}ask {{.}}-$NEW {{model .}}
{{end}}{{else}}Two lines ask real models in place of the sample worker, with the key in OPENAI_API_KEY. That costs money. The first replaces this
program, and prints another token for worker.token.

{{.Program}} demo -leave openai
{{.Program}} work -engine openai -provider openai -url {{.Workers}} -token-file worker.token
{{end}}
Receive webhooks in the second terminal: register a URL, start a receiver with its secret, create a run.

curl -s "$BASE/v1/webhooks" -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
  -d '{"url":"http://127.0.0.1:8090/'$(date +%s)'","events":["*"]}' | grep -o 'whsec_[^"]*' >webhook.secret
{{.Program}} webhooks listen -addr 127.0.0.1:8090 -secret-file webhook.secret &
ask hooked-$NEW {{.Model}}

The receiver prints the event run.completed when the run is completed. Stop it with: kill %%

`))

// inGoFolder matches the paths of executables that go run starts: below a temporary folder, which is removed when the
// program ends, or in the build cache, from which they are removed after some days.
var inGoFolder = regexp.MustCompile(`/go-build[^/]*/|/[0-9a-f]{64}-d/`)

// Program returns the command that starts the executable again after this process has ended. If that is go run, the
// command works in the present folder, which the second result names.
func Program(executable string) (command, folder string, err error) {
	if inGoFolder.MatchString(filepath.ToSlash(executable)) {
		if folder, err = os.Getwd(); err != nil {
			return "", "", err
		}
		// In the root of the repository, the short form of the README works.
		if _, err := os.Stat("cmd/aiv/main.go"); err == nil {
			return "go run ./cmd/aiv", folder, nil
		}
		return "go run aiv/cmd/aiv", folder, nil // in any folder of the module
	}
	if found, err := exec.LookPath("aiv"); err == nil && sameFile(found, executable) {
		return "aiv", "", nil
	}
	return executable, "", nil
}

// sameFile reports whether two paths lead to one file, through links too.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
