package catalog

import "aiv/store"

// Invariants returns what always holds for the tables of this package.
func Invariants() []store.Invariant {
	return []store.Invariant{
		{
			Name: "question_tags",
			Doc:  "question_tags has one row for each different tag of each shared question.",
			Query: `
SELECT format('question %s, tag %s', COALESCE(q.id, t.question_id), COALESCE(q.tag, t.tag))
FROM (SELECT DISTINCT id, unnest(tags) AS tag FROM questions) q
FULL JOIN question_tags t ON (t.question_id, t.tag) = (q.id, q.tag)
WHERE q.id IS NULL OR t.question_id IS NULL`,
		},
		{
			Name: "own_question_tags",
			Doc:  "own_question_tags has one row for each different tag of each own question.",
			Query: `
SELECT format('account %s, question %s, tag %s', q.account_id, q.id, k.tag)
FROM own_questions q CROSS JOIN unnest(q.tags) AS k (tag)
LEFT JOIN own_question_tags t ON t.account_id = q.account_id AND t.question_id = q.id AND t.tag = k.tag
WHERE t.account_id IS NULL
UNION ALL
SELECT format('account %s, question %s, tag %s', t.account_id, t.question_id, t.tag)
FROM own_question_tags t LEFT JOIN own_questions q ON q.account_id = t.account_id AND q.id = t.question_id AND t.tag = ANY (q.tags)
WHERE q.account_id IS NULL`,
		},
		{
			Name:  "question_ids",
			Doc:   "No own question has the id of a shared one.",
			Query: `SELECT format('account %s, question %s', o.account_id, o.id) FROM own_questions o JOIN questions q ON q.id = o.id`,
		},
		{
			Name: "one_methodology",
			Doc:  "At most one active methodology covers a measurement type.",
			Query: `
SELECT format('measurement type %s: %s', t, string_agg(version, ', ' ORDER BY version))
FROM methodologies, unnest(measurement_types) t WHERE status = 'active' GROUP BY t HAVING count(*) > 1`,
		},
		{
			Name: "catalog_of_runs",
			Doc:  "The models and questions of runs are never deleted, except own questions with their account.",
			Query: `
SELECT format('run %s of account %s, model %s', m.run_id, m.account_id, m.model_id) FROM measurement_run_models m
WHERE NOT EXISTS (SELECT FROM models c WHERE c.id = m.model_id)
UNION ALL
SELECT format('run %s of account %s, question %s', r.id, r.account_id, r.question_id)
FROM (SELECT account_id, id, unnest(question_ids) AS question_id FROM measurement_runs) r
JOIN accounts a ON a.id = r.account_id AND a.erased_at IS NULL
LEFT JOIN own_questions o ON (o.account_id, o.id) = (r.account_id, r.question_id)
WHERE o.id IS NULL AND NOT EXISTS (SELECT FROM questions c WHERE c.id = r.question_id)`,
		},
		{
			Name:  "catalog_revision",
			Doc:   "catalog_revision has its row, without which the catalog cannot be read.",
			Query: `SELECT 'catalog_revision has no row' WHERE NOT EXISTS (SELECT FROM catalog_revision)`,
		},
	}
}
