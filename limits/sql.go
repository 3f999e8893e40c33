package limits

import "aiv/auth"

// admit is the statement of a trip: how many of the requests of each credential its minute still has room for. It leaves out
// a credential that has expired, and does nothing at all if $6 is given and is not the revision of what all credentials stand
// for; who revokes a key or changes a limit therefore changes what the next request meets.
//
//   - Rows are locked in one order, that of the arrays, so that the statements of two processes can't deadlock.
//   - The window is taken when the row is locked, not when the statement began: a statement that waited for another
//     one's commit beyond the end of a minute counts in the new minute. It never moves backwards, so a clock that steps
//     back neither opens a spent window again nor counts twice.
//   - The row carries the limit that it was last counted against, as ON CONFLICT sees no other column of its source.
//   - A statement that waits reads the newest count (READ COMMITTED), which makes the count exact.
func admit(beside string) string {
	return `
WITH spent AS (
  INSERT INTO api_rate_limit_buckets AS b (account_id, credential_id, window_start, used, granted, rate_limit)
  SELECT account_id, credential_id, date_bin('1 minute', clock_timestamp(), 'epoch'), LEAST(n, rate_limit), LEAST(n, rate_limit), rate_limit
  FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::timestamptz[], $5::integer[]) AS k (account_id, credential_id, rate_limit, expires_at, n)
  WHERE ($6::bigint IS NULL OR ` + auth.RevisionSQL + ` = $6) AND (expires_at IS NULL OR expires_at > clock_timestamp())
  ON CONFLICT (account_id, credential_id) DO UPDATE SET (window_start, used, granted, rate_limit) = (
    SELECT minute, used + granted, granted, excluded.rate_limit
    FROM (
      SELECT minute, used, LEAST(excluded.granted, GREATEST(excluded.rate_limit - used, 0)) AS granted
      FROM (
        SELECT minute, CASE WHEN minute = b.window_start THEN b.used ELSE 0 END AS used
        FROM (SELECT GREATEST(b.window_start, date_bin('1 minute', clock_timestamp(), 'epoch')) AS minute OFFSET 0) m) u) g)
  RETURNING credential_id, window_start, used, granted)
SELECT spent.*, clock_timestamp(), ` + beside + ` FROM spent`
}
