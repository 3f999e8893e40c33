package main

import "aiv/cmd/aiv/internal/cli"

// commands returns the table of commands, in the order in which an operator needs them. The adapters command, reading
// and audited (main.go) declare the flags that several commands have.
func commands() []cli.Command {
	return []cli.Command{
		{
			Name:     "demo",
			Summary:  "Serve a private PostgreSQL with sample data: the quickest way to try the API",
			Usage:    "[-addr HOST:PORT] [-data-dir FOLDER] [-leave CODE]...",
			Examples: []string{"aiv demo", "aiv demo -addr 127.0.0.1:8088", "aiv demo -leave openai"},
			Run:      command(demoCommand),
		},
		{
			Name:    "serve",
			Summary: "Serve the developer API",
			Usage:   "[-addr HOST:PORT] [-admin-addr HOST:PORT] [-migrate] [-read-url URL] [-tls-cert FILE -tls-key FILE]",
			Examples: []string{
				"aiv serve -migrate",
				"DATABASE_URL=postgres://aiv@db.internal/aiv aiv serve -addr :8443 -tls-cert tls.crt -tls-key tls.key",
			},
			Run: command(serve),
		},
		{
			Name:    "dispatch",
			Summary: "Hand out jobs to workers, carry out schedules, and deliver webhooks",
			Usage:   "[-addr HOST:PORT] [-admin-addr HOST:PORT] [-answers-kept 400d] [-tls-cert FILE -tls-key FILE]",
			Examples: []string{
				"aiv dispatch",
				"DATABASE_URL=postgres://aiv_dispatch@db.internal/aiv aiv dispatch -addr 10.0.0.5:8081 -answers-kept 400d",
			},
			Run: command(dispatch),
		},
		{
			Name:    "work",
			Summary: "Claim jobs, ask an engine or start a command for each, and report its answer",
			Usage:   "-url URL -token-file FILE [-provider CODE]... [-parallel N] [-lease 60s] [-drain 30s] {-- COMMAND [ARG...] | -engine NAME [-engine-key-file FILE]}",
			Examples: []string{
				"aiv work -url http://127.0.0.1:8081 -token-file worker.token -- ./answer.sh",
				"aiv work -url https://jobs.internal -token-file worker.token -provider openai -parallel 20 -- python3 ask.py --fast",
				"aiv work -url http://127.0.0.1:8081 -token-file worker.token -engine openai -provider openai -engine-key-file openai.key",
				"aiv work -engine openai -try -model gpt-6-sol -engine-key-file openai.key",
				"aiv work -engine gemini -explain",
			},
			Run: command(workCommand),
		},
		{
			Name:     "migrate",
			Summary:  "Apply missing migrations to the database",
			Usage:    "[-status] [-distribute] [-grant ROLE] [-grant-dispatch ROLE] [-json]",
			Examples: []string{"aiv migrate", "aiv migrate -status", "aiv migrate -grant aiv_serve"},
			Run:      audited(migrate),
		},
		plansGroup(),
		accountsGroup(),
		keysGroup(),
		catalogGroup(),
		providersGroup(),
		workersGroup(),
		webhooksGroup(),
		schedulesGroup(),
		runsGroup(),
		jobsGroup(),
		insightsGroup(),
		brandsGroup(),
		auditGroup(),
		{
			Name:     "purge",
			Summary:  "Delete old final runs with their jobs and results; usage totals are kept",
			Usage:    "-runs-before TIME [-remember DURATION] [-json]",
			Examples: []string{"aiv purge -runs-before 400d", "aiv purge -runs-before 2026-01-01T00:00:00Z"},
			Run:      audited(purge),
		},
		{
			Name:    "usage",
			Summary: "Add up runs and jobs by account and UTC month",
			Usage:   "[-from YYYY-MM] [-to YYYY-MM] [-account ID] [-json]",
			Examples: []string{
				"aiv usage",
				"aiv usage -from 2026-10 -to 2026-12 -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4",
				"aiv usage -from 2026-11 -to 2026-11 -json >november.json",
			},
			Run: reading(usage),
		},
		{
			Name:     "status",
			Summary:  "Report the state of the database, the providers and the queue",
			Usage:    "[-json]",
			Examples: []string{"aiv status", "aiv status -json"},
			Run:      reading(showStatus),
		},
		{
			Name:     "verify",
			Summary:  "Read the whole database and report rows that break an invariant; exit 1 if any do",
			Usage:    "[-json]",
			Examples: []string{"aiv verify", "aiv verify -json"},
			Notes:    listInvariants(),
			Run:      reading(verify),
		},
		{
			Name:    "completion",
			Summary: "Write the completion script for a shell",
			Usage:   "bash|zsh|fish",
			Examples: []string{
				"aiv completion bash >~/.local/share/bash-completion/completions/aiv",
				"aiv completion zsh >~/.zfunc/_aiv",
				"aiv completion fish >~/.config/fish/completions/aiv.fish",
			},
			Arguments: cli.Shells(),
			Run:       cli.Completion,
		},
		{
			Name:     "version",
			Summary:  "Print the version and the build",
			Usage:    "[-json]",
			Examples: []string{"aiv version"},
			Run:      command(version),
		},
	}
}
