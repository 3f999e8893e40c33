-- The credentials that end of themselves, soonest first: operators are warned of them.
CREATE INDEX credentials_expiry ON credentials (expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
