package events

const (
	eventColumns = `id, type, created_at, data`

	listEvents = `SELECT ` + eventColumns + ` FROM events`

	// Recorded are common table expressions that write events: cause has the parameters $1 to $5, which Args returns,
	// and added (account_id, id, type, created_at) the events that were written. created_at is not before the changes
	// that caused the event.
	Recorded = `
cause AS (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::text[]) AS c (account_id, id, type, subject_id, data)
), added AS (
  INSERT INTO events (account_id, id, type, subject_id, data, created_at)
  SELECT account_id, id, type, subject_id, data::json, (SELECT clock_timestamp()) FROM cause
  ON CONFLICT DO NOTHING
  RETURNING account_id, id, type, created_at
)`

	addEvent = `
INSERT INTO events (account_id, id, type, subject_id, data) VALUES ($1, $2, $3, $4, $5)
RETURNING ` + eventColumns
)

// SelectSQL selects an event by SQL expressions of its account and its id.
//
// If a table was nearly empty when it was last vacuumed, the planner assumes that it is empty until the next vacuum or
// analyze. Events and deliveries are such tables after a month without runs. A join with keys may then read the whole
// table, and any index that has the columns seems as good as the primary key. This subquery prevents both. PostgreSQL
// does not flatten a subquery with ORDER BY, so it is evaluated for each key. Sorting and sequential scans are disabled
// (package store), so it reads the primary key, the only index in that order. The id is compared as a range, because
// with an equality ORDER BY would be redundant and be dropped.
func SelectSQL(account, id string) string {
	return `SELECT * FROM events v WHERE v.account_id = ` + account + ` AND v.id >= ` + id + ` AND v.id <= ` + id + ` ORDER BY v.account_id, v.id`
}

var getEvent = `SELECT ` + eventColumns + ` FROM (` + SelectSQL("$1", "$2") + `) v`

const (
	// oldEvents returns old events in the order of their keys, in which concurrent purges lock them.
	oldEvents = `
WITH old AS MATERIALIZED (
  SELECT account_id, id FROM (SELECT account_id, id FROM events WHERE created_at < $1 ORDER BY created_at LIMIT $2) o ORDER BY account_id, id)`

	// deleteEvents deletes their deliveries with them. See SelectSQL for the form of the subquery. No event is updated,
	// so that its ctid stays the same.
	deleteEvents = oldEvents + `
DELETE FROM events e USING old o
CROSS JOIN LATERAL (
  SELECT ctid AS tid FROM events v WHERE v.account_id = o.account_id AND v.id >= o.id AND v.id <= o.id ORDER BY v.account_id, v.id) found
WHERE e.ctid = found.tid`
)
