-- oldest-compatible: 0011

-- A new scope, type of alerts or type of events shall need no migration that blocks requests. Programs still reject unknown values, and
-- aiv verify reports them. No transaction of aiv uses several of these tables in another order. Events are in the next migration, because
-- a transaction may use them before or after endpoints, and would be in a deadlock with this one.
ALTER TABLE credentials DROP CONSTRAINT credentials_scopes_check;

ALTER TABLE alerts DROP CONSTRAINT alerts_type_check;

ALTER TABLE webhook_endpoints DROP CONSTRAINT webhook_endpoints_events_check;
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_events_check CHECK (cardinality(events) >= 1);
