package jobs

const (
	// setLimits sets the limits for which $2 and $4 are true; the others keep their values.
	setLimits = `
INSERT INTO provider_settings AS s (provider_code, per_minute, in_flight) VALUES ($1, $3, $5)
ON CONFLICT (provider_code) DO UPDATE SET per_minute = CASE WHEN $2 THEN excluded.per_minute ELSE s.per_minute END,
  in_flight = CASE WHEN $4 THEN excluded.in_flight ELSE s.in_flight END`

	endThrottle = `DELETE FROM provider_throttles WHERE provider_code = $1`

	// A provider is paused while it has a row.
	endPause = `DELETE FROM provider_pauses WHERE provider_code = $1`

	// setPause replaces a pause by a worker too; then it has no reason.
	setPause = `
INSERT INTO provider_pauses (provider_code, note, paused_by) VALUES ($1, $2, $3)
ON CONFLICT (provider_code) DO UPDATE SET paused_at = excluded.paused_at, note = excluded.note, reason = NULL, paused_by = excluded.paused_by`

	// pauseUnavailable returns the pauses that took effect: one that a provider already has stays as it is.
	pauseUnavailable = `
INSERT INTO provider_pauses (provider_code, reason, note, paused_by) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
ON CONFLICT DO NOTHING
RETURNING provider_code, reason, note, paused_by`
)

// arrivedJobs are the jobs of runs that no dispatcher has queued yet.
const arrivedJobs = `
arrived AS (
  SELECT m.provider_code, r.created_at, count(*) * (r.total_jobs / cardinality(r.model_ids)) AS jobs
  FROM job_arrivals a JOIN measurement_runs r ON r.account_id = a.account_id AND r.id = a.run_id
  CROSS JOIN LATERAL unnest(r.model_ids) AS i (id) JOIN models m ON m.id = i.id
  WHERE NOT a.canceled AND r.status IN ('queued', 'running')
  GROUP BY m.provider_code, r.account_id, r.id
)`

// providerBacklogs includes jobs of canceled runs until a dispatcher removes them: to join each row with its run would
// take several times as long.
const providerBacklogs = `
WITH ` + arrivedJobs + `, waiting AS (
  SELECT provider_code, sum(jobs) AS jobs FROM arrived GROUP BY provider_code
  UNION ALL
  SELECT provider_code, sum(last_ordinal - next_ordinal + 1) FROM job_queue GROUP BY provider_code
  UNION ALL
  SELECT provider_code, sum(last_ordinal - ordinal + 1) FROM job_leases WHERE state <> 'held' GROUP BY provider_code
), leased AS (
  SELECT provider_code, sum(last_ordinal - ordinal + 1) AS jobs FROM job_leases WHERE state = 'held' GROUP BY provider_code
)
SELECT p.code,
  EXISTS (SELECT FROM provider_pauses x WHERE x.provider_code = p.code)
    OR EXISTS (SELECT FROM provider_throttles t WHERE t.provider_code = p.code AND t.until > now()),
  (SELECT reason FROM provider_pauses x WHERE x.provider_code = p.code),
  COALESCE((SELECT jobs FROM leased WHERE leased.provider_code = p.code), 0),
  COALESCE((SELECT sum(jobs) FROM waiting WHERE waiting.provider_code = p.code), 0)
FROM providers p ORDER BY p.code`

// providerStates also counts the jobs of runs that no dispatcher has queued yet. Leases of canceled runs do not
// count. The jobs of the oldest run wait for another try only if all of them do.
const providerStates = `
WITH ` + arrivedJobs + `, waiting AS (
  SELECT provider_code, created_at, jobs, NULL::timestamptz AS retry_at FROM arrived
  UNION ALL
  SELECT q.provider_code, q.run_created_at, q.last_ordinal - q.next_ordinal + 1, NULL
  FROM job_queue q JOIN measurement_runs r ON r.account_id = q.account_id AND r.id = q.run_id WHERE r.status <> 'canceled'
  UNION ALL
  SELECT l.provider_code, l.run_created_at, l.last_ordinal - l.ordinal + 1, CASE WHEN l.state = 'waiting' AND l.until > now() THEN l.until END
  FROM job_leases l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id WHERE r.status <> 'canceled' AND l.state <> 'held'
), oldest AS (
  SELECT DISTINCT ON (provider_code) provider_code, created_at, CASE WHEN count(retry_at) = count(*) THEN min(retry_at) END AS retry_at
  FROM waiting GROUP BY provider_code, created_at ORDER BY provider_code, created_at
), leased AS (
  SELECT l.provider_code, sum(l.last_ordinal - l.ordinal + 1) AS jobs
  FROM job_leases l JOIN measurement_runs r ON r.account_id = l.account_id AND r.id = l.run_id WHERE r.status <> 'canceled' AND l.state = 'held'
  GROUP BY l.provider_code
)
SELECT p.code,
  ARRAY(
    SELECT d.name FROM unnest('{configuration,secret,contract,legal_approval}'::text[]) WITH ORDINALITY AS d (name, no)
    WHERE NOT EXISTS (SELECT FROM provider_dependencies m WHERE m.provider_code = p.code AND m.dependency = d.name AND m.met) ORDER BY d.no),
  s.per_minute, s.in_flight, x.paused_at, x.note, x.reason, x.paused_by,
  (SELECT until FROM provider_throttles t WHERE t.provider_code = p.code AND until > now()),
  COALESCE((SELECT claimed FROM provider_minutes m WHERE m.provider_code = p.code AND minute = date_trunc('minute', now(), 'UTC')), 0),
  COALESCE((SELECT jobs FROM leased WHERE leased.provider_code = p.code), 0),
  COALESCE((SELECT sum(jobs) FROM waiting WHERE waiting.provider_code = p.code), 0),
  (SELECT created_at FROM oldest WHERE oldest.provider_code = p.code),
  (SELECT retry_at FROM oldest WHERE oldest.provider_code = p.code)
FROM providers p LEFT JOIN provider_settings s ON s.provider_code = p.code LEFT JOIN provider_pauses x ON x.provider_code = p.code
ORDER BY p.code`
