package limits

import "aiv/auth"

// readState returns the revision of the credentials, the database's time and the catalog's revision.
func readState(catalogRevision string) string {
	return `SELECT ` + auth.RevisionSQL + `, clock_timestamp(), ` + catalogRevision
}

// countRequests counts the requests of each credential in its current minute, and returns how many the minute still
// allowed, the time, the catalog's revision, and where the WAL ends. It leaves out a credential that has expired, and
// counts nothing if $6 is given and is not the revision of the credentials: a revocation or a changed limit applies to
// the next request.
//
//   - The minute is part of the key, so a clock that steps finds the count that each minute had.
//   - Rows are locked in the order of the arrays, so that the statements of two processes cannot deadlock.
//   - A statement that waits for a row reads its newest count (READ COMMITTED), which makes the count exact.
//   - DO UPDATE calls no volatile function, which distributed tables do not allow. granted is what this statement added, as
//     RETURNING cannot read the old count before PostgreSQL 18. rate_limit is the highest limit applied to the minute.
func countRequests(catalogRevision, walPosition string) string {
	return `
WITH counted AS (
  INSERT INTO api_rate_limit_buckets AS b (account_id, credential_id, window_start, used, granted, rate_limit)
  SELECT account_id, credential_id, date_bin('1 minute', clock_timestamp(), 'epoch'), LEAST(n, rate_limit), LEAST(n, rate_limit), rate_limit
  FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::timestamptz[], $5::integer[]) AS k (account_id, credential_id, rate_limit, expires_at, n)
  WHERE ($6::bigint IS NULL OR ` + auth.RevisionSQL + ` = $6) AND (expires_at IS NULL OR expires_at > clock_timestamp())` + addCounts + `)
SELECT counted.*, clock_timestamp(), ` + catalogRevision + `, ` + walPosition + ` FROM counted`
}

const addCounts = `
  ON CONFLICT (account_id, credential_id, window_start) DO UPDATE SET
    used = b.used + LEAST(excluded.granted, GREATEST(excluded.rate_limit - b.used, 0)),
    granted = LEAST(excluded.granted, GREATEST(excluded.rate_limit - b.used, 0)),
    rate_limit = GREATEST(b.rate_limit, excluded.rate_limit)
  RETURNING credential_id, window_start, used, granted`

const oldestWindow = `SELECT min(window_start) FROM api_rate_limit_buckets WHERE window_start < $1`

const deleteWindow = `DELETE FROM api_rate_limit_buckets WHERE window_start = $1`

// eraseCounts deletes the counts of one credential of an account: of a day, a row for each minute.
const eraseCounts = `
DELETE FROM api_rate_limit_buckets WHERE account_id = $1 AND credential_id =
  (SELECT credential_id FROM api_rate_limit_buckets WHERE account_id = $1 ORDER BY account_id, credential_id LIMIT 1)`
