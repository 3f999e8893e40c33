package catalog

// Each upsert writes the rows of the temporary table incoming_NAME that differ, and returns a row for each. Rows keep created_at.

const upsertProviders = `
WITH written AS (
INSERT INTO providers (code, name) SELECT code, name FROM incoming_providers ORDER BY code
ON CONFLICT (code) DO UPDATE SET name = excluded.name WHERE providers.name <> excluded.name
RETURNING 1)
SELECT FROM written`

const upsertMethodologies = `
WITH written AS (
INSERT INTO methodologies (version, status, measurement_types, max_repetitions, max_jobs)
SELECT version, status, measurement_types, max_repetitions, max_jobs FROM incoming_methodologies ORDER BY version
ON CONFLICT (version) DO UPDATE SET (status, measurement_types, max_repetitions, max_jobs)
  = (excluded.status, excluded.measurement_types, excluded.max_repetitions, excluded.max_jobs)
WHERE (methodologies.status, methodologies.measurement_types, methodologies.max_repetitions, methodologies.max_jobs)
  IS DISTINCT FROM (excluded.status, excluded.measurement_types, excluded.max_repetitions, excluded.max_jobs)
RETURNING 1)
SELECT FROM written`

const upsertModels = `
WITH written AS (
INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, countries, languages, grounded_search)
SELECT id, name, provider_code, provider_model, status, measurement_types, countries, languages, grounded_search
FROM incoming_models ORDER BY id
ON CONFLICT (id) DO UPDATE SET (name, provider_code, provider_model, status, measurement_types, countries, languages, grounded_search)
  = (excluded.name, excluded.provider_code, excluded.provider_model, excluded.status, excluded.measurement_types, excluded.countries,
     excluded.languages, excluded.grounded_search)
WHERE (models.name, models.provider_code, models.provider_model, models.status, models.measurement_types, models.countries,
     models.languages, models.grounded_search)
  IS DISTINCT FROM (excluded.name, excluded.provider_code, excluded.provider_model, excluded.status, excluded.measurement_types,
     excluded.countries, excluded.languages, excluded.grounded_search)
RETURNING 1)
SELECT FROM written`

// upsertQuestions writes the rows of question_tags in the same statement.
const upsertQuestions = `
WITH written AS (
  INSERT INTO questions (id, account_id, text, language, country, topic, tags, status)
  SELECT id, account_id, text, language, country, topic, tags, status FROM incoming_questions ORDER BY id
  ON CONFLICT (id) DO UPDATE SET (text, language, country, topic, tags, status)
    = (excluded.text, excluded.language, excluded.country, excluded.topic, excluded.tags, excluded.status)
  WHERE (questions.text, questions.language, questions.country, questions.topic, questions.tags, questions.status)
    IS DISTINCT FROM (excluded.text, excluded.language, excluded.country, excluded.topic, excluded.tags, excluded.status)
  RETURNING id, owner, tags
), removed AS (
  DELETE FROM question_tags t USING written w WHERE t.question_id = w.id AND t.tag <> ALL (w.tags)
), added AS (
  INSERT INTO question_tags (owner, tag, question_id) SELECT w.owner, tag, w.id FROM written w, unnest(w.tags) tag
  ON CONFLICT DO NOTHING
)
SELECT FROM written`

// Each of the queries below returns lines that cannot be imported.

const unknownProviders = `
SELECT i.line FROM incoming_models i WHERE NOT EXISTS (SELECT FROM providers p WHERE p.code = i.provider_code) ORDER BY i.line LIMIT 20`

const unknownAccounts = `
SELECT i.line FROM incoming_questions i WHERE i.account_id IS NOT NULL AND NOT EXISTS (SELECT FROM accounts a WHERE a.id = i.account_id)
ORDER BY i.line LIMIT 20`

const erasedAccounts = `
SELECT i.line FROM incoming_questions i WHERE EXISTS (SELECT FROM accounts a WHERE a.id = i.account_id AND a.erased_at IS NOT NULL)
ORDER BY i.line LIMIT 20`

// A question keeps its account, because runs of that account refer to it.
const movedQuestions = `
SELECT i.line FROM incoming_questions i JOIN questions q ON q.id = i.id WHERE q.account_id IS DISTINCT FROM i.account_id ORDER BY i.line LIMIT 20`

// coveredTwice returns the measurement types that more than one active methodology covers.
const coveredTwice = `
SELECT t FROM methodologies, unnest(measurement_types) t WHERE status = 'active' GROUP BY t HAVING count(*) > 1 ORDER BY t`
