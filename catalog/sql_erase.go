package catalog

const (
	questionsOfAccount = `SELECT id FROM questions WHERE owner = $1 ORDER BY owner, id LIMIT $2`

	deleteQuestionTags = `DELETE FROM question_tags WHERE owner = $1 AND question_id = ANY ($2)`

	deleteQuestions = `DELETE FROM questions WHERE owner = $1 AND id = ANY ($2)`
)
