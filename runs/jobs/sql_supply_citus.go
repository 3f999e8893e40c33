package jobs

import "aiv/store"

// citusSupply and citusClaimable are readSupply and claimable on Citus. They first read the rows of the distributed
// tables that they may need, of the accounts in the last parameter, in common table expressions named like the tables.
var (
	citusSupply = `
WITH ` + ofReachable("$3") + `,
job_queue AS MATERIALIZED (
  SELECT * FROM (
    SELECT *, row_number() OVER (PARTITION BY account_id, provider_code ORDER BY run_created_at, run_id, model_no) AS no
    FROM job_queue WHERE ` + store.AmongAccounts("account_id", "$3") + `) q
  WHERE no <= 8 + $2::integer
),` + openProviders(heldOnCitus) + supplyOfOpen

	citusClaimable = `
WITH ` + ofReachable("$2") + `,` + openProviders(heldOnCitus) + claimableOfOpen + `))`
)

// heldOnCitus counts held leases in job_holds, which is on the coordinator: a transaction may be committed there but not
// yet on the servers of its accounts, where its leases are invisible until then.
const heldOnCitus = `
      SELECT COALESCE(sum(jobs), 0) FROM job_holds h WHERE h.provider_code = p.code`

// ofReachable returns the expressions for the distributed tables that supplyOfOpen and claimableOfOpen read, with the
// rows of the accounts in a parameter, such as $3.
func ofReachable(accounts string) string {
	return `
job_arrivals AS MATERIALIZED (SELECT run_id FROM job_arrivals WHERE ` + store.AmongAccounts("account_id", accounts) + ` LIMIT 1),
job_turns AS MATERIALIZED (
  SELECT account_id, provider_code, turn FROM job_turns WHERE ` + store.AmongAccounts("account_id", accounts) + `),
job_leases AS MATERIALIZED (
  SELECT * FROM job_leases WHERE ` + store.AmongAccounts("account_id", accounts) + `
    AND (state = 'ready' OR state = 'waiting' AND until <= now())
)`
}
