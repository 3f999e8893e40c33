package events

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
