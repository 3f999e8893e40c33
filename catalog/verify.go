package catalog

import "aiv/store"

// Invariants returns what always holds for the tables of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{
		{
			Name: "question_tags",
			Doc:  "question_tags has one row for each different tag of each question.",
			Query: `
SELECT format('question %s, tag %s', COALESCE(q.id, t.question_id), COALESCE(q.tag, t.tag))
FROM (SELECT DISTINCT owner, id, unnest(tags) AS tag FROM questions) q
FULL JOIN question_tags t ON (t.owner, t.question_id, t.tag) = (q.owner, q.id, q.tag)
WHERE q.id IS NULL OR t.question_id IS NULL`,
		},
		{
			Name: "one_methodology",
			Doc:  "At most one active methodology covers a measurement type.",
			Query: `
SELECT format('measurement type %s: %s', t, string_agg(version, ', ' ORDER BY version))
FROM methodologies, unnest(measurement_types) t WHERE status = 'active' GROUP BY t HAVING count(*) > 1`,
		},
		{
			Name:  "catalog_revision",
			Doc:   "catalog_revision has its row, without which the catalog cannot be read.",
			Query: `SELECT 'catalog_revision has no row' WHERE NOT EXISTS (SELECT FROM catalog_revision)`,
		},
	}
}
