package catalog

import "aiv/store"

// RevisionSQL is an expression for the revision of the catalog, to be embedded in statements of other packages.
const RevisionSQL = `(` + selectRevision + `)`

const selectRevision = `SELECT revision FROM catalog_revision`

// selectModels returns the columns of Model; $1 is Dependencies. A dependency without a row is unmet.
const selectModels = `
SELECT m.id, m.name, m.provider_code, m.provider_model, m.status, m.measurement_types, m.countries, m.languages, m.grounded_search,
  ARRAY(
    SELECT d.name FROM unnest($1::text[]) WITH ORDINALITY AS d (name, position)
    WHERE NOT EXISTS (SELECT FROM provider_dependencies p WHERE p.provider_code = m.provider_code AND p.dependency = d.name AND p.met)
    ORDER BY d.position)
FROM models m ORDER BY m.id`

// selectMethodologies returns the columns of Methodology.
const selectMethodologies = `SELECT version, status, measurement_types, max_repetitions, max_jobs FROM methodologies ORDER BY version`

// selectProviderNames reads what an export contains of providers: dependencies are not exported.
const selectProviderNames = `SELECT code, name FROM providers ORDER BY code`

// nextRevision makes all processes read the catalog again.
const nextRevision = `UPDATE catalog_revision SET revision = ` + store.NextRevision

// lockCatalog makes the changes of operators take turns. They may wait for long: on Citus the wait for a row would end
// after a second, because it takes place on another server, where WithoutTimeouts has no effect.
const lockCatalog = `SELECT pg_advisory_xact_lock(hashtext('aiv catalog'))`

// setDependency fails with a foreign key violation if the provider does not exist.
const setDependency = `
INSERT INTO provider_dependencies (provider_code, dependency, met, note) VALUES ($1, $2, $3, $4)
ON CONFLICT (provider_code, dependency) DO UPDATE SET met = excluded.met, note = excluded.note, changed_at = excluded.changed_at`

// selectProviders returns one row for each provider and dependency; $1 is Dependencies.
const selectProviders = `
SELECT p.code, p.name, d.name, COALESCE(s.met, false), COALESCE(s.note, ''), s.changed_at
FROM providers p
CROSS JOIN unnest($1::text[]) WITH ORDINALITY AS d (name, position)
LEFT JOIN provider_dependencies s ON s.provider_code = p.code AND s.dependency = d.name
ORDER BY p.code, d.position`
