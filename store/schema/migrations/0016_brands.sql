-- oldest-compatible: 0011
-- The brands that answers are searched for. number identifies a brand in its account in few bits. Texts are as they were sent, domains in
-- the form of match.Domain. The names and domains of an account's active brands are unique in a normal form that SQL does not know:
-- whoever changes brands locks the account's row of brand_revisions first.
CREATE TABLE brands (
  account_id uuid NOT NULL REFERENCES accounts,
  id         uuid NOT NULL,
  number     smallint NOT NULL CHECK (number BETWEEN 1 AND 1000),
  kind       text COLLATE "C" NOT NULL CHECK (kind IN ('own', 'competitor')),
  name       text COLLATE "C" NOT NULL CHECK (length(name) BETWEEN 1 AND 128),
  aliases    text[] NOT NULL CHECK (cardinality(aliases) <= 20),
  domains    text[] NOT NULL CHECK (cardinality(domains) <= 20),
  exclude    text[] NOT NULL CHECK (cardinality(exclude) <= 20),
  match_case boolean NOT NULL,
  status     text COLLATE "C" NOT NULL CHECK (status IN ('active', 'archived')),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id),
  UNIQUE (account_id, number)
);

-- The list and each of its filters.
CREATE INDEX brands_list ON brands (account_id, created_at, id);
CREATE INDEX brands_status ON brands (account_id, status, created_at, id);
CREATE INDEX brands_kind ON brands (account_id, kind, created_at, id);

-- How often the active brands of an account have changed, and when they did last. pending_since is the first change after the last
-- recount of the account's answers that had ended then.
CREATE TABLE brand_revisions (
  account_id    uuid PRIMARY KEY REFERENCES accounts,
  revision      bigint NOT NULL CHECK (revision >= 0),
  changed_at    timestamptz NOT NULL,
  pending_since timestamptz NOT NULL
);

CREATE INDEX brand_revisions_changed ON brand_revisions (changed_at);
