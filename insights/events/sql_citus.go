package events

// citusAddEvents is the statement of Recorded that writes events, on Citus.
const citusAddEvents = `
INSERT INTO events (account_id, id, type, subject_id, data, created_at)
SELECT account_id, id, type, subject_id, data::json, clock_timestamp()
FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::text[]) AS c (account_id, id, type, subject_id, data)
ON CONFLICT DO NOTHING
RETURNING account_id, id, type, created_at`

// citusDeleteEvents is deleteEvents on Citus.
const citusDeleteEvents = oldEvents + `
DELETE FROM events v USING old o WHERE v.account_id = o.account_id AND v.id = o.id`
