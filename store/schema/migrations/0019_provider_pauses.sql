-- Pauses of providers, by operators and by workers that reported them unavailable. They have a table of their own, which is on the
-- coordinator of a cluster: settlements write it, and must not depend on every server.
CREATE TABLE provider_pauses (
  provider_code text COLLATE "C" PRIMARY KEY,
  paused_at     timestamptz NOT NULL DEFAULT now(),
  note          text NOT NULL,
  reason        text COLLATE "C" CHECK (reason IN ('secret', 'contract', 'configuration')), -- NULL: an operator paused it
  paused_by     text NOT NULL -- the actor in the audit log
);

INSERT INTO provider_pauses (provider_code, paused_at, note, paused_by)
SELECT s.provider_code, s.paused_at, s.pause_note, COALESCE((
  SELECT actor FROM audit_log a WHERE a.action = 'providers.pause' AND a.subject = s.provider_code ORDER BY a.id DESC LIMIT 1), '')
FROM provider_settings s WHERE s.paused_at IS NOT NULL;

ALTER TABLE provider_settings DROP COLUMN paused_at, DROP COLUMN pause_note;

ALTER TABLE job_attempts DROP CONSTRAINT job_attempts_outcome_check;
ALTER TABLE job_attempts ADD CONSTRAINT job_attempts_outcome_check CHECK (outcome IN ('retry', 'throttled', 'released', 'unavailable'));
