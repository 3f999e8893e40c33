package main

import (
	"testing"

	"aiv/store/storetest"
)

func TestAuditList(t *testing.T) {
	t.Parallel()
	s := &story{env: map[string]string{"DATABASE_URL": storetest.URL(t)}}
	s.run(t, []step{
		{line: "audit list", stdout: "There are no changes.\n"},
		{line: "plans set p -features api_access -actor ann", stdout: "Plan p is set: features api_access; 60 (default) requests per minute.\n"},
		{line: "plans set q -features x -rate 5 -actor bob", stdout: "Plan q is set: features x; 5 requests per minute.\nWithout the feature api_access, its accounts can only read their identity.\n"},
		{
			line:   "audit list -json -subject p",
			stdout: `[{"at":"{time}","actor":"ann","action":"plans.set","subject":"p","detail":{"features":["api_access"],"jobs_per_month":null,"max_unfinished_jobs":null,"rate_limit_per_minute":null}}]` + "\n",
		},
		{
			line: "audit list -json -limit 1",
			stdout: `[{"at":"{time}","actor":"bob","action":"plans.set","subject":"q","detail":{"features":["x"],"jobs_per_month":null,"max_unfinished_jobs":null,"rate_limit_per_minute":5}}]` +
				"\n",
		},
		{line: "audit list -by another", stdout: "There are no changes.\n"},
	})
}
