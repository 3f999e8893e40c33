package catalog

// Each of the following selects the columns of Question, of shared questions or of own ones.
const (
	sharedColumns = `SELECT q.id, NULL::uuid AS account_id, q.text, q.language, q.country, q.topic, q.tags, q.status, q.created_at`

	questionColumns = `q.id, q.account_id, q.text, q.language, q.country, q.topic, q.tags, q.status, q.created_at`

	ownColumns = `SELECT ` + questionColumns

	selectShared = sharedColumns + ` FROM questions q`

	selectOwn = ownColumns + ` FROM own_questions q`

	// selectSharedTagged and selectOwnTagged start from the rows of one tag, which have the order of the list too.
	selectSharedTagged = sharedColumns + ` FROM question_tags t JOIN questions q ON q.id = t.question_id`

	selectOwnTagged = ownColumns + ` FROM own_question_tags t JOIN own_questions q ON q.account_id = t.account_id AND q.id = t.question_id`
)

// selectAllShared and selectAllOwn read what an export contains.
const (
	selectAllShared = selectShared + ` ORDER BY q.id`

	selectAllOwn = selectOwn + ` ORDER BY q.id, q.account_id`
)

// selectByID finds questions that an account can use. Both tables have the ids of different questions.
const selectByID = selectShared + ` WHERE q.id = ANY ($2)
UNION ALL
` + selectOwn + ` WHERE q.account_id = $1 AND q.id = ANY ($2)`

// selectTexts is selectByID for the texts only.
const selectTexts = `
SELECT id, text FROM questions WHERE id = ANY ($2)
UNION ALL
SELECT id, text FROM own_questions WHERE account_id = $1 AND id = ANY ($2)`

// selectStatuses is selectByID for the statuses, and which of the questions are shared.
const selectStatuses = `
SELECT id, status, true FROM questions WHERE id = ANY ($2)
UNION ALL
SELECT id, status, false FROM own_questions WHERE account_id = $1 AND id = ANY ($2)`
