-- Insights: recommendations and alerts, each list with an index for the account, the filter's column and the list's order.

CREATE TABLE recommendations (
  account_id   uuid NOT NULL REFERENCES accounts,
  id           uuid NOT NULL,
  type         text NOT NULL CHECK (type <> ''),
  category     text NOT NULL CHECK (category IN ('on_page', 'off_page', 'technical', 'social')),
  title        text NOT NULL CHECK (title <> ''),
  summary      text NOT NULL,
  priority     text NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
  status       text NOT NULL CHECK (status IN ('suggested', 'accepted', 'in_progress', 'done', 'dismissed')),
  model_ids    text[] NOT NULL,
  question_ids text[] NOT NULL,
  run_id       uuid,
  created_at   timestamptz NOT NULL,
  updated_at   timestamptz NOT NULL,
  PRIMARY KEY (account_id, id),
  FOREIGN KEY (account_id, run_id) REFERENCES measurement_runs (account_id, id)
);

CREATE INDEX recommendations_list ON recommendations (account_id, created_at, id);
CREATE INDEX recommendations_status ON recommendations (account_id, status, created_at, id);
CREATE INDEX recommendations_priority ON recommendations (account_id, priority, created_at, id);
CREATE INDEX recommendations_category ON recommendations (account_id, category, created_at, id);
CREATE INDEX recommendations_type ON recommendations (account_id, type, created_at, id);
CREATE INDEX recommendations_run ON recommendations (account_id, run_id, created_at, id);

CREATE TABLE alerts (
  account_id     uuid NOT NULL REFERENCES accounts,
  id             uuid NOT NULL,
  type           text NOT NULL CHECK (type IN ('visibility_drop', 'visibility_gain', 'citation_lost', 'citation_gained', 'competitor_gained', 'sentiment_shift', 'run_failed')),
  severity       text NOT NULL CHECK (severity IN ('critical', 'high', 'medium', 'low')),
  status         text NOT NULL CHECK (status IN ('open', 'acknowledged', 'resolved')),
  title          text NOT NULL CHECK (title <> ''),
  message        text NOT NULL,
  metric         text,
  direction      text NOT NULL CHECK (direction IN ('up', 'down', 'none')),
  current_value  double precision,
  baseline_value double precision,
  model_id       text,
  question_id    text,
  country        text,
  run_id         uuid,
  detected_at    timestamptz NOT NULL,
  resolved_at    timestamptz,
  PRIMARY KEY (account_id, id),
  FOREIGN KEY (account_id, run_id) REFERENCES measurement_runs (account_id, id),
  CHECK ((status = 'resolved') = (resolved_at IS NOT NULL))
);

CREATE INDEX alerts_list ON alerts (account_id, detected_at, id);
CREATE INDEX alerts_status ON alerts (account_id, status, detected_at, id);
CREATE INDEX alerts_severity ON alerts (account_id, severity, detected_at, id);
CREATE INDEX alerts_type ON alerts (account_id, type, detected_at, id);
CREATE INDEX alerts_run ON alerts (account_id, run_id, detected_at, id);
