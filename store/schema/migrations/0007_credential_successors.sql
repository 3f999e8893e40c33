-- oldest-compatible: 0006

-- Finds the successor of a rotated credential.
CREATE INDEX credentials_successor ON credentials (rotated_from) WHERE rotated_from IS NOT NULL;
