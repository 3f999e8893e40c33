-- oldest-compatible: 0011

-- See 0014_known_values.
ALTER TABLE events DROP CONSTRAINT events_type_check;
