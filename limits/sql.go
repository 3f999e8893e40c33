package limits

import "aiv/auth"

// admit is the statement of a trip: which of the keys are valid, and how many of each one's requests its minute still
// has room for.
//
//   - Rows are locked in one order, so that the statements of two processes can't deadlock.
//   - The window is taken when the row is locked, not when the statement began: a statement that waited for another
//     one's commit beyond the end of a minute counts in the new minute. It never moves backwards, so a clock that steps
//     back neither opens a spent window again nor counts twice.
//   - The row carries the limit that it was last counted against, as ON CONFLICT sees no other column of its source.
//   - A statement that waits reads the newest count (READ COMMITTED), which makes the count exact.
func admit(beside string) string {
	return `WITH` + auth.Known + `,
spent AS (
  INSERT INTO api_rate_limit_buckets AS b (account_id, credential_id, window_start, used, granted, rate_limit)
  SELECT account_id, id, date_bin('1 minute', clock_timestamp(), 'epoch'), LEAST(n, rate_limit), LEAST(n, rate_limit), rate_limit
  FROM known ORDER BY account_id, id
  ON CONFLICT (account_id, credential_id) DO UPDATE SET (window_start, used, granted, rate_limit) = (
    SELECT minute, used + granted, granted, excluded.rate_limit
    FROM (
      SELECT minute, used, LEAST(excluded.granted, GREATEST(excluded.rate_limit - used, 0)) AS granted
      FROM (
        SELECT minute, CASE WHEN minute = b.window_start THEN b.used ELSE 0 END AS used
        FROM (SELECT GREATEST(b.window_start, date_bin('1 minute', clock_timestamp(), 'epoch')) AS minute OFFSET 0) m) u) g)
  RETURNING credential_id, window_start, used, granted)
SELECT known.key_no, known.credential_version, known.account_version, known.plan_version, known.rate_limit,
  spent.window_start, spent.used, spent.granted, clock_timestamp(), ` + beside + `
FROM known JOIN spent ON spent.credential_id = known.id`
}
