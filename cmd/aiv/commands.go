package main

// commands are all there are, in the order in which an operator comes to need them.
var commands = []command{
	{
		name:     "demo",
		summary:  "Serve a private PostgreSQL with sample data: the quickest way to see the API",
		usage:    "[-addr HOST:PORT] [-data-dir FOLDER]",
		examples: []string{"aiv demo", "aiv demo -addr 127.0.0.1:8088"},
		run:      demo,
	},
	{
		name:    "serve",
		summary: "Serve the developer API",
		usage:   "[-addr HOST:PORT] [-admin-addr HOST:PORT] [-migrate] [-tls-cert FILE -tls-key FILE]",
		examples: []string{
			"aiv serve -migrate",
			"DATABASE_URL=postgres://aiv@db.internal/aiv aiv serve -addr :8443 -tls-cert tls.crt -tls-key tls.key",
		},
		run: serve,
	},
	{
		name:     "migrate",
		summary:  "Bring the database's schema up to date",
		usage:    "[-status] [-grant ROLE] [-json]",
		examples: []string{"aiv migrate", "aiv migrate -status", "aiv migrate -grant aiv_serve"},
		run:      migrate,
	},
	{
		name:    "plans",
		summary: "Set and list plans: what an account has bought",
		commands: []command{
			{
				name:    "set",
				summary: "Make a plan, or replace one",
				usage:   "CODE -features api_access[,...] [-rate N] [-json]",
				examples: []string{
					"aiv plans set growth -features api_access -rate 120",
					"aiv plans set trial -features ''",
				},
				run: plansSet,
			},
			{name: "list", summary: "List the plans", usage: "[-json]", examples: []string{"aiv plans list"}, run: plansList},
		},
	},
	{
		name:    "accounts",
		summary: "Create and list accounts, and move them to other plans",
		commands: []command{
			{
				name:     "create",
				summary:  "Make an account on a plan",
				usage:    "-name NAME -plan CODE [-json]",
				examples: []string{"aiv accounts create -name 'Acme' -plan growth"},
				run:      accountsCreate,
			},
			{name: "list", summary: "List the accounts, oldest first", usage: "[-json]", examples: []string{"aiv accounts list"}, run: accountsList},
			{
				name:     "set-plan",
				summary:  "Move an account to another plan, from the next request on",
				usage:    "ID CODE [-json]",
				examples: []string{"aiv accounts set-plan acct_01k3s4x0a1fvt8s9w2y7b6c5d4 growth"},
				run:      accountsSetPlan,
			},
		},
	},
	{
		name:    "keys",
		summary: "Issue, change, rotate and end the credentials of accounts",
		commands: []command{
			{
				name:    "create",
				summary: "Issue a credential, and show its key this once",
				usage:   "-account ID -name NAME -scopes SCOPE[,...] [-rate N] [-expires TIME] [-json]",
				examples: []string{
					"aiv keys create -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -name ci -scopes runs:read,runs:write",
					"aiv keys create -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -name ci -scopes runs:read -json >key.json",
				},
				run: keysCreate,
			},
			{
				name:     "list",
				summary:  "List credentials, oldest first",
				usage:    "[-account ID] [-json]",
				examples: []string{"aiv keys list", "aiv keys list -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -json"},
				run:      keysList,
			},
			{
				name:    "set",
				summary: "Change a credential, from the next request on",
				usage:   "ID [-name NAME] [-scopes SCOPE[,...]] [-rate N] [-expires TIME|never] [-json]",
				examples: []string{
					"aiv keys set cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -rate 600",
					"aiv keys set cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -expires 2031-01-31T00:00:00Z",
				},
				run: keysSet,
			},
			{
				name:     "rotate",
				summary:  "Issue a successor, show its key this once, and end the old key after a grace period",
				usage:    "ID [-grace 24h] [-json]",
				examples: []string{"aiv keys rotate cred_01k3s4x0a1fvt8s9w2y7b6c5d4 -grace 1h"},
				run:      keysRotate,
			},
			{
				name:     "revoke",
				summary:  "End a credential for good, from the next request on",
				usage:    "ID [-json]",
				examples: []string{"aiv keys revoke cred_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				run:      keysRevoke,
			},
			{
				name:     "disable",
				summary:  "Suspend a credential until it is enabled",
				usage:    "ID [-json]",
				examples: []string{"aiv keys disable cred_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				run:      keysDisable,
			},
			{
				name:     "enable",
				summary:  "End the suspension of a credential",
				usage:    "ID [-json]",
				examples: []string{"aiv keys enable cred_01k3s4x0a1fvt8s9w2y7b6c5d4"},
				run:      keysEnable,
			},
		},
	},
	{
		name:    "catalog",
		summary: "Import and export models, questions, providers and methodologies",
		commands: []command{
			{
				name:     "import",
				summary:  "Write a JSON Lines file into the catalog: all of it or, when a line is wrong, nothing",
				usage:    "FILE|- [-json]",
				examples: []string{"aiv catalog import catalog.jsonl", "aiv catalog import - <catalog.jsonl"},
				run:      catalogImport,
			},
			{
				name:     "export",
				summary:  "Write the whole catalog as JSON Lines, as import reads it",
				usage:    "[-o FILE] [-json]",
				examples: []string{"aiv catalog export >catalog.jsonl", "aiv catalog export -o catalog.jsonl"},
				run:      catalogExport,
			},
		},
	},
	{
		name:    "providers",
		summary: "List providers, and record what they depend on as met or not",
		commands: []command{
			{
				name:     "list",
				summary:  "List the providers and what each still lacks",
				usage:    "[-json]",
				examples: []string{"aiv providers list"},
				run:      providersList,
			},
			{
				name:     "met",
				summary:  "Record that something a provider depends on is there",
				usage:    "PROVIDER configuration|secret|contract|legal_approval -note TEXT [-json]",
				examples: []string{"aiv providers met openai contract -note 'signed 2026-03-01, see the legal folder'"},
				run:      providersMet,
			},
			{
				name:     "unmet",
				summary:  "Record that something a provider depends on is no longer there",
				usage:    "PROVIDER configuration|secret|contract|legal_approval -note TEXT [-json]",
				examples: []string{"aiv providers unmet openai secret -note 'rotated, the new one is not in place yet'"},
				run:      providersUnmet,
			},
		},
	},
	{
		name:    "insights",
		summary: "Import recommendations and alerts",
		commands: []command{
			{
				name:     "import",
				summary:  "Write a JSON Lines file of insights: all of it or, when a line is wrong, nothing",
				usage:    "FILE|- [-json]",
				examples: []string{"aiv insights import insights.jsonl", "aiv insights import - <insights.jsonl"},
				run:      insightsImport,
			},
		},
	},
	{
		name:    "usage",
		summary: "Add up runs and jobs by account and month of UTC",
		usage:   "[-from YYYY-MM] [-to YYYY-MM] [-account ID] [-json]",
		examples: []string{
			"aiv usage",
			"aiv usage -from 2026-10 -to 2026-12 -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4",
			"aiv usage -from 2026-11 -to 2026-11 -json >november.json",
		},
		run: usage,
	},
	{
		name:     "status",
		summary:  "Tell whether the database is ready, what providers lack, and how deep the queue is",
		usage:    "[-json]",
		examples: []string{"aiv status", "aiv status -json"},
		run:      showStatus,
	},
	{
		name:    "completion",
		summary: "Write what makes a shell complete aiv's commands and flags",
		usage:   "bash|zsh|fish",
		examples: []string{
			"aiv completion bash >~/.local/share/bash-completion/completions/aiv",
			"aiv completion zsh >~/.zfunc/_aiv",
			"aiv completion fish >~/.config/fish/completions/aiv.fish",
		},
		words: []string{"bash", "zsh", "fish"},
	},
	{
		name:     "version",
		summary:  "Tell which build of aiv this is",
		usage:    "[-json]",
		examples: []string{"aiv version"},
		run:      version,
	},
}
