package catalog

const (
	// lockOwn makes the transactions that add own questions of an account wait for each other. The row is locked before
	// the next statement takes its snapshot.
	lockOwn = `
INSERT INTO own_question_accounts AS a (account_id) VALUES ($1)
ON CONFLICT (account_id) DO UPDATE SET additions = a.additions + 1`

	// countOwn counts archived questions too.
	countOwn = `SELECT count(*) FROM own_questions WHERE account_id = $1`

	// readUnhashed reads the questions that were imported or moved here by a migration.
	readUnhashed = `
SELECT id, text, language, country FROM own_questions WHERE account_id = $1 AND form_hash IS NULL`

	setHashes = `
UPDATE own_questions q SET form_hash = k.form_hash FROM unnest($2::text[], $3::bytea[]) AS k (id, form_hash)
WHERE q.account_id = $1 AND q.id = k.id`

	// findForm finds an own question that asks the same, archived ones included.
	findForm = `SELECT id FROM own_questions WHERE account_id = $1 AND form_hash = $2 ORDER BY id LIMIT 1`

	insertOwn = `
INSERT INTO own_questions AS q (account_id, id, text, language, country, topic, tags, status, form_hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'active', $8)
RETURNING ` + questionColumns

	// lockQuestion does not block the foreign keys of tags to the row.
	lockQuestion = selectOwn + ` WHERE q.account_id = $1 AND q.id = $2 FOR NO KEY UPDATE`

	updateOwn = `
UPDATE own_questions q SET topic = $3, tags = $4, status = $5 WHERE q.account_id = $1 AND q.id = $2
RETURNING ` + questionColumns

	// removeOwnTags and addOwnTags write the rows of own_question_tags as the questions $2 have the tags.
	removeOwnTags = `
DELETE FROM own_question_tags t USING own_questions q
WHERE t.account_id = $1 AND t.question_id = ANY ($2) AND q.account_id = t.account_id AND q.id = t.question_id AND t.tag <> ALL (q.tags)`

	addOwnTags = `
INSERT INTO own_question_tags (account_id, tag, question_id)
SELECT q.account_id, k.tag, q.id FROM own_questions q CROSS JOIN unnest(q.tags) AS k (tag) WHERE q.account_id = $1 AND q.id = ANY ($2)
ON CONFLICT DO NOTHING`
)
