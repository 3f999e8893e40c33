package main

import "aiv/cmd/aiv/internal/cli"

// commands returns the table of commands, in the order in which an operator needs them.
func commands() []cli.Command {
	return []cli.Command{
		{
			Name:     "demo",
			Summary:  "Serve a private PostgreSQL with sample data: the quickest way to try the API",
			Usage:    "[-addr HOST:PORT] [-data-dir FOLDER]",
			Examples: []string{"aiv demo", "aiv demo -addr 127.0.0.1:8088"},
			Run:      command(demoCommand),
		},
		{
			Name:    "serve",
			Summary: "Serve the developer API",
			Usage:   "[-addr HOST:PORT] [-admin-addr HOST:PORT] [-migrate] [-tls-cert FILE -tls-key FILE]",
			Examples: []string{
				"aiv serve -migrate",
				"DATABASE_URL=postgres://aiv@db.internal/aiv aiv serve -addr :8443 -tls-cert tls.crt -tls-key tls.key",
			},
			Run: command(serve),
		},
		{
			Name:    "dispatch",
			Summary: "Hand out jobs to workers, and deliver webhooks",
			Usage:   "[-addr HOST:PORT] [-admin-addr HOST:PORT] [-answers-kept 400d] [-tls-cert FILE -tls-key FILE]",
			Examples: []string{
				"aiv dispatch",
				"DATABASE_URL=postgres://aiv_dispatch@db.internal/aiv aiv dispatch -addr 10.0.0.5:8081 -answers-kept 400d",
			},
			Run: command(dispatch),
		},
		{
			Name:    "work",
			Summary: "Claim jobs, start a command for each, and report its answer",
			Usage:   "-url URL -token-file FILE [-provider CODE]... [-parallel N] [-lease 60s] [-drain 30s] -- COMMAND [ARG...]",
			Examples: []string{
				"aiv work -url http://127.0.0.1:8081 -token-file worker.token -- ./answer.sh",
				"aiv work -url https://jobs.internal -token-file worker.token -provider openai -parallel 20 -- python3 ask.py --fast",
			},
			Run: command(workCommand),
		},
		{
			Name:     "migrate",
			Summary:  "Apply missing migrations to the database",
			Usage:    "[-status] [-distribute] [-grant ROLE] [-grant-dispatch ROLE] [-json]",
			Examples: []string{"aiv migrate", "aiv migrate -status", "aiv migrate -grant aiv_serve"},
			Run:      command(migrate),
		},
		{
			Name:    "plans",
			Summary: "Set and list plans",
			Commands: []cli.Command{
				{
					Name:    "set",
					Summary: "Create or replace a plan: settings that are not given are reset",
					Usage:   "CODE -features api_access[,...] [-rate N] [-jobs-per-month N] [-unfinished-jobs N] [-json]",
					Examples: []string{
						"aiv plans set growth -features api_access -rate 120",
						"aiv plans set trial -features ''",
					},
					Run: command(plansSet),
				},
				{Name: "list", Summary: "List the plans", Usage: "[-json]", Examples: []string{"aiv plans list"}, Run: command(plansList)},
			},
		},
		{
			Name:    "accounts",
			Summary: "Create, list and erase accounts, and change their plans and quotas",
			Commands: []cli.Command{
				{
					Name:     "create",
					Summary:  "Create an account on a plan",
					Usage:    "-name NAME -plan CODE [-json]",
					Examples: []string{"aiv accounts create -name 'Acme' -plan growth"},
					Run:      command(accountsCreate),
				},
				{Name: "list", Summary: "List the accounts, oldest first", Usage: "[-json]", Examples: []string{"aiv accounts list"}, Run: command(accountsList)},
				{
					Name:     "set-plan",
					Summary:  "Change the plan of an account, from the next request on",
					Usage:    "ID CODE [-json]",
					Examples: []string{"aiv accounts set-plan acct_01k3s4x0a1fvt8s9w2y7b6c5d4 growth"},
					Run:      command(accountsSetPlan),
				},
				{
					Name:    "set-quota",
					Summary: "Set how many jobs an account may create in a month, from the next request on",
					Usage:   "ID -jobs-per-month N|none|plan [-json]",
					Examples: []string{
						"aiv accounts set-quota acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -jobs-per-month 1000",
						"aiv accounts set-quota acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -jobs-per-month plan",
					},
					Run: command(accountsSetQuota),
				},
				{
					Name:     "erase",
					Summary:  "Delete all data of an account permanently; its totals of usage stay",
					Usage:    "ID -confirm NAME [-json]",
					Examples: []string{"aiv accounts erase acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -confirm 'Acme'"},
					Run:      command(accountsErase),
				},
			},
		},
		{
			Name:    "keys",
			Summary: "Create, change, rotate and revoke credentials",
			Commands: []cli.Command{
				{
					Name:    "create",
					Summary: "Create a credential, and show its key this once",
					Usage:   "-account ID -name NAME -scopes SCOPE[,...] [-rate N] [-expires TIME] [-json]",
					Examples: []string{
						"aiv keys create -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -name ci -scopes runs:read,runs:write",
						"aiv keys create -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -name ci -scopes runs:read -json >key.json",
					},
					Run: command(keysCreate),
				},
				{
					Name:     "list",
					Summary:  "List credentials, oldest first",
					Usage:    "[-account ID] [-json]",
					Examples: []string{"aiv keys list", "aiv keys list -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -json"},
					Run:      command(keysList),
				},
				{
					Name:    "set",
					Summary: "Change a credential, from the next request on",
					Usage:   "ID [-name NAME] [-scopes SCOPE[,...]] [-rate N] [-expires TIME|never] [-json]",
					Examples: []string{
						"aiv keys set cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -rate 600",
						"aiv keys set cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -expires 2031-01-31T00:00:00Z",
					},
					Run: command(keysSet),
				},
				{
					Name:     "rotate",
					Summary:  "Create a successor, show its key this once, and expire the old key after a grace period",
					Usage:    "ID [-grace 24h] [-json]",
					Examples: []string{"aiv keys rotate cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -grace 1h"},
					Run:      command(keysRotate),
				},
				{
					Name:     "revoke",
					Summary:  "Revoke a credential permanently, from the next request on",
					Usage:    "ID [-json]",
					Examples: []string{"aiv keys revoke cred_01k3s4x0a1fvt8s9w2y7b6c5d4"},
					Run:      command(keysRevoke),
				},
				{
					Name:     "disable",
					Summary:  "Suspend a credential until it is enabled",
					Usage:    "ID [-json]",
					Examples: []string{"aiv keys disable cred_01k3s4x0a1fvt8s9w2y7b6c5d4"},
					Run:      command(keysDisable),
				},
				{
					Name:     "enable",
					Summary:  "End the suspension of a credential",
					Usage:    "ID [-json]",
					Examples: []string{"aiv keys enable cred_01k3s4x0a1fvt8s9w2y7b6c5d4"},
					Run:      command(keysEnable),
				},
			},
		},
		{
			Name:    "catalog",
			Summary: "Import and export models, questions, providers and methodologies",
			Commands: []cli.Command{
				{
					Name:     "import",
					Summary:  "Import a JSON Lines file into the catalog, completely or not at all",
					Usage:    "FILE|- [-json]",
					Examples: []string{"aiv catalog import catalog.jsonl", "aiv catalog import - <catalog.jsonl"},
					Run:      command(catalogImport),
				},
				{
					Name:     "export",
					Summary:  "Write the catalog as JSON Lines, in the format of import",
					Usage:    "[-o FILE] [-json]",
					Examples: []string{"aiv catalog export >catalog.jsonl", "aiv catalog export -o catalog.jsonl"},
					Run:      command(catalogExport),
				},
			},
		},
		{
			Name:    "providers",
			Summary: "List, limit and pause providers, and record their dependencies as met or unmet",
			Commands: []cli.Command{
				{
					Name:     "list",
					Summary:  "List the providers and their dependencies",
					Usage:    "[-json]",
					Examples: []string{"aiv providers list"},
					Run:      command(providersList),
				},
				{
					Name:     "met",
					Summary:  "Record a dependency of a provider as met",
					Usage:    "PROVIDER configuration|secret|contract|legal_approval -note TEXT [-json]",
					Examples: []string{"aiv providers met openai contract -note 'signed 2026-03-01, legal folder 17'"},
					Run:      command(providersMet),
				},
				{
					Name:     "unmet",
					Summary:  "Record a dependency of a provider as unmet",
					Usage:    "PROVIDER configuration|secret|contract|legal_approval -note TEXT [-json]",
					Examples: []string{"aiv providers unmet openai secret -note 'rotated, the new one is not installed yet'"},
					Run:      command(providersUnmet),
				},
				{
					Name:    "set",
					Summary: "Limit how many jobs of a provider are handed out, from the next claim on",
					Usage:   "CODE [-per-minute N|none] [-in-flight N|none] [-json]",
					Examples: []string{
						"aiv providers set openai -per-minute 600 -in-flight 50",
						"aiv providers set openai -per-minute none",
					},
					Run: command(providersSet),
				},
				{
					Name:     "pause",
					Summary:  "Hand out no jobs of a provider, from the next claim on",
					Usage:    "CODE -note TEXT [-json]",
					Examples: []string{"aiv providers pause openai -note 'incident 12'"},
					Run:      command(providersPause),
				},
				{
					Name:     "resume",
					Summary:  "End the pause of a provider",
					Usage:    "CODE -note TEXT [-json]",
					Examples: []string{"aiv providers resume openai -note 'incident 12 is over'"},
					Run:      command(providersResume),
				},
			},
		},
		{
			Name:    "workers",
			Summary: "Create, list and revoke workers",
			Commands: []cli.Command{
				{
					Name:    "create",
					Summary: "Create a worker, and show its token this once",
					Usage:   "-name NAME [-providers CODE[,...]] [-json]",
					Examples: []string{
						"aiv workers create -name eu-1 -providers openai,mistral",
						"aiv workers create -name eu-1 -json >worker.json",
					},
					Run: command(workersCreate),
				},
				{Name: "list", Summary: "List the workers, oldest first", Usage: "[-json]", Examples: []string{"aiv workers list"}, Run: command(workersList)},
				{
					Name:     "revoke",
					Summary:  "Revoke a worker's token permanently, from the next request on",
					Usage:    "ID [-json]",
					Examples: []string{"aiv workers revoke wrk_01k3s4x0a1fvt8s9w2y7b6c5d4"},
					Run:      command(workersRevoke),
				},
			},
		},
		{
			Name:    "webhooks",
			Summary: "List, disable and enable webhooks, and receive their deliveries",
			Commands: []cli.Command{
				{
					Name:     "list",
					Summary:  "List the webhooks by account, oldest first",
					Usage:    "[-account ID] [-json]",
					Examples: []string{"aiv webhooks list", "aiv webhooks list -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -json"},
					Run:      command(webhooksList),
				},
				{
					Name:     "disable",
					Summary:  "Disable a webhook, so that only an operator can enable it again",
					Usage:    "ID [-json]",
					Examples: []string{"aiv webhooks disable wh_01k3s4x0a1fvt8s9w2y7b6c5d4"},
					Run:      command(webhooksDisable),
				},
				{
					Name:     "enable",
					Summary:  "Enable a webhook, whatever the reason that it was disabled",
					Usage:    "ID [-json]",
					Examples: []string{"aiv webhooks enable wh_01k3s4x0a1fvt8s9w2y7b6c5d4"},
					Run:      command(webhooksEnable),
				},
				{
					Name:     "listen",
					Summary:  "Receive deliveries, and print those whose signature is valid",
					Usage:    "-secret SECRET [-addr HOST:PORT]",
					Examples: []string{"aiv webhooks listen -addr 127.0.0.1:8090 -secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="},
					Run:      command(webhooksListen),
				},
			},
		},
		{
			Name:    "runs",
			Summary: "List, show and cancel runs",
			Commands: []cli.Command{
				{
					Name:     "list",
					Summary:  "List runs, newest first",
					Usage:    "[-account ID] [-status STATUS[,...]] [-limit N] [-json]",
					Examples: []string{"aiv runs list", "aiv runs list -status queued,running -limit 200"},
					Run:      command(runsList),
				},
				{
					Name:     "show",
					Summary:  "Show a run",
					Usage:    "ID [-json]",
					Examples: []string{"aiv runs show run_01k3s4x0a1fvt8s9w2y7b6c5d4"},
					Run:      command(runsShow),
				},
				{
					Name:     "cancel",
					Summary:  "Cancel a run that is not final; completed jobs stay",
					Usage:    "ID [-json]",
					Examples: []string{"aiv runs cancel run_01k3s4x0a1fvt8s9w2y7b6c5d4"},
					Run:      command(runsCancel),
				},
			},
		},
		{
			Name:    "jobs",
			Summary: "List jobs",
			Commands: []cli.Command{
				{
					Name:    "list",
					Summary: "List the jobs of a run, or of the runs that are not final",
					Usage:   "[-state STATE[,...]] [-provider CODE] [-run ID] [-limit N] [-json]",
					Examples: []string{
						"aiv jobs list -state running -provider openai",
						"aiv jobs list -run run_01k3s4x0a1fvt8s9w2y7b6c5d4 -state failed",
					},
					Run: command(jobsList),
				},
			},
		},
		{
			Name:    "insights",
			Summary: "Import recommendations and alerts",
			Commands: []cli.Command{
				{
					Name:     "import",
					Summary:  "Import a JSON Lines file of insights, completely or not at all",
					Usage:    "FILE|- [-json]",
					Examples: []string{"aiv insights import insights.jsonl", "aiv insights import - <insights.jsonl"},
					Run:      command(insightsImport),
				},
			},
		},
		{
			Name:    "audit",
			Summary: "List the changes that operators made",
			Commands: []cli.Command{
				{
					Name:     "list",
					Summary:  "List changes, newest first",
					Usage:    "[-subject ID] [-by ACTOR] [-limit N] [-json]",
					Examples: []string{"aiv audit list", "aiv audit list -subject cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -json"},
					Run:      command(auditList),
				},
			},
		},
		{
			Name:     "purge",
			Summary:  "Delete old final runs with their jobs and results; totals of usage stay",
			Usage:    "-runs-before TIME [-remember DURATION] [-json]",
			Examples: []string{"aiv purge -runs-before 400d", "aiv purge -runs-before 2026-01-01T00:00:00Z"},
			Run:      command(purge),
		},
		{
			Name:    "usage",
			Summary: "Add up runs and jobs by account and month of UTC",
			Usage:   "[-from YYYY-MM] [-to YYYY-MM] [-account ID] [-json]",
			Examples: []string{
				"aiv usage",
				"aiv usage -from 2026-10 -to 2026-12 -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4",
				"aiv usage -from 2026-11 -to 2026-11 -json >november.json",
			},
			Run: command(usage),
		},
		{
			Name:     "status",
			Summary:  "Report the state of the database, the providers and the queue",
			Usage:    "[-json]",
			Examples: []string{"aiv status", "aiv status -json"},
			Run:      command(showStatus),
		},
		{
			Name:     "verify",
			Summary:  "Read the whole database and report every broken invariant; exit 1 if there is one",
			Usage:    "[-json]",
			Examples: []string{"aiv verify", "aiv verify -json"},
			Run:      command(verify),
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
