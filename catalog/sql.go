package catalog

const (
	// selectModels fits the fields of Model. A dependency without a row is unmet.
	selectModels = `
SELECT m.id, m.name, m.provider_code, m.provider_model, m.status, m.measurement_types, m.countries, m.languages, m.grounded_search,
  ARRAY(
    SELECT d.name FROM unnest('{configuration,secret,contract,legal_approval}'::text[]) WITH ORDINALITY AS d (name, place)
    WHERE NOT EXISTS (SELECT FROM provider_dependencies p WHERE p.provider_code = m.provider_code AND p.dependency = d.name AND p.met)
    ORDER BY d.place)
FROM models m ORDER BY m.id`

	selectMethodologies = `SELECT version, status, measurement_types, max_repetitions, max_jobs FROM methodologies ORDER BY version`

	selectQuestions = `SELECT id, account_id, text, language, country, topic, tags, status, created_at FROM questions ORDER BY id`

	questionStates = `SELECT owner, id, status FROM questions WHERE id = ANY ($1) AND owner IN ($2, $3)`

	// nextRevision follows the clock, so that a database that was restored to an earlier state and changed again does not
	// come back to a revision that some process still holds.
	nextRevision = `
UPDATE catalog_revision SET revision = GREATEST(revision + 1, floor(extract(epoch FROM clock_timestamp()) * 1e6)::bigint)`

	// Each import statement writes the rows of a temporary table of the same columns, and only those that differ. A row
	// keeps its created_at.
	upsertProviders = `
INSERT INTO providers (code, name) SELECT code, name FROM incoming_providers ORDER BY code
ON CONFLICT (code) DO UPDATE SET name = excluded.name WHERE providers.name <> excluded.name`

	upsertMethodologies = `
INSERT INTO methodologies (version, status, measurement_types, max_repetitions, max_jobs)
SELECT version, status, measurement_types, max_repetitions, max_jobs FROM incoming_methodologies ORDER BY version
ON CONFLICT (version) DO UPDATE SET (status, measurement_types, max_repetitions, max_jobs)
  = (excluded.status, excluded.measurement_types, excluded.max_repetitions, excluded.max_jobs)
WHERE (methodologies.status, methodologies.measurement_types, methodologies.max_repetitions, methodologies.max_jobs)
  IS DISTINCT FROM (excluded.status, excluded.measurement_types, excluded.max_repetitions, excluded.max_jobs)`

	upsertModels = `
INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, countries, languages, grounded_search)
SELECT id, name, provider_code, provider_model, status, measurement_types, countries, languages, grounded_search
FROM incoming_models ORDER BY id
ON CONFLICT (id) DO UPDATE SET (name, provider_code, provider_model, status, measurement_types, countries, languages, grounded_search)
  = (excluded.name, excluded.provider_code, excluded.provider_model, excluded.status, excluded.measurement_types, excluded.countries,
     excluded.languages, excluded.grounded_search)
WHERE (models.name, models.provider_code, models.provider_model, models.status, models.measurement_types, models.countries,
     models.languages, models.grounded_search)
  IS DISTINCT FROM (excluded.name, excluded.provider_code, excluded.provider_model, excluded.status, excluded.measurement_types,
     excluded.countries, excluded.languages, excluded.grounded_search)`

	// A question never changes its owner: runs of the old one name it.
	movedQuestions = `
SELECT i.line FROM incoming_questions i JOIN questions q ON q.id = i.id WHERE q.account_id IS DISTINCT FROM i.account_id ORDER BY i.line LIMIT 20`

	upsertQuestions = `
INSERT INTO questions (id, account_id, text, language, country, topic, tags, status)
SELECT id, account_id, text, language, country, topic, tags, status FROM incoming_questions ORDER BY id
ON CONFLICT (id) DO UPDATE SET (text, language, country, topic, tags, status)
  = (excluded.text, excluded.language, excluded.country, excluded.topic, excluded.tags, excluded.status)
WHERE (questions.text, questions.language, questions.country, questions.topic, questions.tags, questions.status)
  IS DISTINCT FROM (excluded.text, excluded.language, excluded.country, excluded.topic, excluded.tags, excluded.status)`

	// twoActive lists measurement types that more than one active methodology covers.
	twoActive = `
SELECT t FROM methodologies, unnest(measurement_types) t WHERE status = 'active' GROUP BY t HAVING count(*) > 1 ORDER BY t`

	unknownProviders = `
SELECT i.line FROM incoming_models i WHERE NOT EXISTS (SELECT FROM providers p WHERE p.code = i.provider_code) ORDER BY i.line LIMIT 20`

	unknownOwners = `
SELECT i.line FROM incoming_questions i WHERE i.account_id IS NOT NULL AND NOT EXISTS (SELECT FROM accounts a WHERE a.id = i.account_id)
ORDER BY i.line LIMIT 20`

	setDependency = `
INSERT INTO provider_dependencies (provider_code, dependency, met, note) VALUES ($1, $2, $3, $4)
ON CONFLICT (provider_code, dependency) DO UPDATE SET met = excluded.met, note = excluded.note, changed_at = now()`

	// listProviders has one row for each provider and dependency, in order.
	listProviders = `
SELECT p.code, p.name, d.name, COALESCE(s.met, false), COALESCE(s.note, ''), s.changed_at
FROM providers p
CROSS JOIN unnest('{configuration,secret,contract,legal_approval}'::text[]) WITH ORDINALITY AS d (name, place)
LEFT JOIN provider_dependencies s ON s.provider_code = p.code AND s.dependency = d.name
ORDER BY p.code, d.place`
)
