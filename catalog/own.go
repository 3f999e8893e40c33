package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// MaxOwnQuestions bounds the own questions of an account, archived ones included. Imports may exceed it.
const MaxOwnQuestions = 10_000

// Errors of OwnQuestions.
var (
	ErrQuestionNotFound = errors.New("the account has no such question")
	ErrTooManyQuestions = errors.New("the account has the maximum number of own questions")
)

// A QuestionExistsError reports an own question that asks the same: in the same language and country, and with the same
// normal form.
type QuestionExistsError struct {
	ID string // of the question
}

func (e *QuestionExistsError) Error() string { return "the account has this question as " + e.ID }

// OwnConfig contains what OwnQuestions depends on.
type OwnConfig struct {
	Pool  *pgxpool.Pool
	NewID func() store.ID

	// NormalForm returns the normal form of a text (AIVM-1.0, M4). Questions whose texts have the same one ask the
	// same.
	NormalForm func(text string) string
}

// OwnQuestions adds and changes the own questions of accounts.
type OwnQuestions struct{ cfg OwnConfig }

// NewOwnQuestions returns the own questions of accounts in a database.
func NewOwnQuestions(cfg OwnConfig) *OwnQuestions { return &OwnQuestions{cfg} }

// Create adds an active question with the text, language, country, topic and tags of q, which the caller has checked.
// It returns a QuestionExistsError or ErrTooManyQuestions. Both are exact: transactions that add questions of an
// account wait for each other.
func (o *OwnQuestions) Create(ctx context.Context, account store.ID, q Question) (created *Question, err error) {
	hash, id := o.formHash(q.Text, q.Language, q.Country), o.cfg.NewID().Text("q")
	var refused error // does not roll back the hashes that are written before
	err = pgx.BeginFunc(ctx, o.cfg.Pool, func(tx pgx.Tx) error {
		// From here on no other transaction adds a question of the account.
		before, err := o.prepare(ctx, tx, account)
		if err != nil {
			return err
		}
		var same string
		switch err := tx.QueryRow(ctx, findForm, account, hash).Scan(&same); {
		case err == nil:
			refused = &QuestionExistsError{same}
			return nil
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		// A question that exists is reported even if the account has too many.
		case before >= MaxOwnQuestions:
			refused = ErrTooManyQuestions
			return nil
		}
		created, err = store.ReadOne[Question](ctx, tx, nil, insertOwn, account, id, q.Text, q.Language, q.Country, q.Topic, q.Tags, hash)
		if err != nil {
			return err
		}
		return writeOwnTags(ctx, tx, account, []string{id})
	})
	if err = cmp.Or(err, refused); err != nil {
		return nil, err
	}
	return created, nil
}

// prepare locks the account for Create and returns how many own questions it has. It writes the missing hashes, unless
// there are so many questions, from imports, that no further one can be added.
func (o *OwnQuestions) prepare(ctx context.Context, tx pgx.Tx, account store.ID) (questions int, err error) {
	var b pgx.Batch
	b.Queue(lockOwn, account)
	b.Queue(countOwn, account).QueryRow(func(row pgx.Row) error { return row.Scan(&questions) })
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return 0, err
	}
	if questions > MaxOwnQuestions {
		return questions, nil
	}
	// Questions that were imported have no hash until this transaction writes it.
	rows, err := tx.Query(ctx, readUnhashed, account)
	if err != nil {
		return 0, err
	}
	var ids []string
	var hashes [][]byte
	var id, text, language, country string
	if _, err := pgx.ForEachRow(rows, []any{&id, &text, &language, &country}, func() error {
		ids, hashes = append(ids, id), append(hashes, o.formHash(text, language, country))
		return nil
	}); err != nil || ids == nil {
		return questions, err
	}
	_, err = tx.Exec(ctx, setHashes, account, ids, hashes)
	return questions, err
}

// formHash returns what own questions that ask the same have in common. A text may be longer than a key of an index.
func (o *OwnQuestions) formHash(text, language, country string) []byte {
	form := strings.Trim(o.cfg.NormalForm(text), " ")
	sum := sha256.Sum256([]byte(language + "\x00" + country + "\x00" + form))
	return sum[:]
}

// A QuestionChange has the members of a question that change; nil: unchanged.
type QuestionChange struct {
	Topic  *string
	Tags   []string // empty: all are removed
	Status *string
}

// Change changes an own question. The caller has checked the values. It returns ErrQuestionNotFound for any other
// question.
func (o *OwnQuestions) Change(ctx context.Context, account store.ID, id string, c QuestionChange) (changed *Question, err error) {
	err = pgx.BeginFunc(ctx, o.cfg.Pool, func(tx pgx.Tx) error {
		// The statements that write the tags see the tags that transactions wrote which changed the question before
		// this one.
		q, err := store.ReadOne[Question](ctx, tx, ErrQuestionNotFound, lockQuestion, account, id)
		if err != nil {
			return err
		}
		if c.Topic != nil {
			q.Topic = *c.Topic
		}
		if c.Tags != nil {
			q.Tags = c.Tags
		}
		if c.Status != nil {
			q.Status = *c.Status
		}
		if changed, err = store.ReadOne[Question](ctx, tx, nil, updateOwn, account, id, q.Topic, q.Tags, q.Status); err != nil {
			return err
		}
		return writeOwnTags(ctx, tx, account, []string{id})
	})
	return changed, err
}

// writeOwnTags makes the rows of own_question_tags equal to the tags of the questions. The questions are locked.
func writeOwnTags(ctx context.Context, tx pgx.Tx, account store.ID, ids []string) error {
	var b pgx.Batch
	b.Queue(removeOwnTags, account, ids)
	b.Queue(addOwnTags, account, ids)
	return tx.SendBatch(ctx, &b).Close()
}
