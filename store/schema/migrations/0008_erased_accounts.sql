-- oldest-compatible: 0006

-- When the erasure of an account began. From then on it gets neither keys nor data.
ALTER TABLE accounts ADD COLUMN erased_at timestamptz;
