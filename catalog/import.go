package catalog

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/jsonl"
)

// Admin carries out what an operator asks for. Every change is written to audit_log in its own transaction.
type Admin struct {
	Pool  *pgxpool.Pool
	Actor string // who asks

	Progress func(lines int) // told of each line that Import has read; may be nil
}

// Imported tells how many lines of each kind an import held.
type Imported struct {
	Providers, Methodologies, Models, Questions int
}

var (
	idPattern       = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}$`)
	providerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	versionPattern  = regexp.MustCompile(`^AIVM-[0-9]+\.[0-9]+$`)
	countryPattern  = regexp.MustCompile(`^[A-Z]{2}$`)
	languagePattern = regexp.MustCompile(`^[a-z]{2,3}(-[A-Z]{2})?$`)
	typePattern     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// Import reads a JSON Lines file of providers, models, questions and methodologies, in any order, and writes all of it
// or, when any line is wrong, nothing. What is there already is changed to what the file says; importing a file twice
// changes nothing the second time.
func (a *Admin) Import(ctx context.Context, file io.Reader) (Imported, error) {
	in, err := read(file, a.Progress)
	if err != nil {
		return Imported{}, err
	}
	n := Imported{in.providers.Len(), in.methodologies.Len(), in.models.Len(), in.questions.Len()}
	err = store.WithoutTimeouts(ctx, a.Pool, func(tx pgx.Tx) error {
		// Two imports at once would each miss what the other adds.
		if _, err := tx.Exec(ctx, `SELECT FROM catalog_revision FOR UPDATE`); err != nil {
			return err
		}
		var changed int64
		for _, step := range []func() (int64, error){
			func() (int64, error) { return in.providers.Merge(ctx, tx, upsertProviders) },
			func() (int64, error) { return in.methodologies.Merge(ctx, tx, upsertMethodologies) },
			func() (int64, error) { return in.models.Merge(ctx, tx, upsertModels) },
			func() (int64, error) { return in.questions.Merge(ctx, tx, upsertQuestions) },
		} {
			n, err := step()
			if err != nil {
				return err
			}
			changed += n
		}
		if err := oneMethodologyEach(ctx, tx); err != nil {
			return err
		}
		if changed == 0 {
			return nil
		}
		return a.changed(ctx, tx, "catalog.import", "catalog", map[string]any{
			"providers": n.Providers, "methodologies": n.Methodologies, "models": n.Models, "questions": n.Questions, "rows_changed": changed,
		})
	})
	if err != nil {
		return Imported{}, err
	}
	return n, nil
}

// changed ends the transaction of every change of the catalog.
func (a *Admin) changed(ctx context.Context, tx pgx.Tx, action, subject string, detail map[string]any) error {
	if _, err := tx.Exec(ctx, nextRevision); err != nil {
		return err
	}
	return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: action, Subject: subject, Detail: detail})
}

func oneMethodologyEach(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, twoActive)
	if err != nil {
		return err
	}
	types, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(types) > 0 {
		err = fmt.Errorf("more than one active methodology would cover %s; retire the others in the same file", strings.Join(types, ", "))
	}
	return err
}

// incoming is a file's rows by kind.
type incoming struct {
	providers, methodologies, models, questions jsonl.Table
}

func read(file io.Reader, progress func(lines int)) (*incoming, error) {
	in := &incoming{
		providers:     jsonl.Table{Name: "providers", Columns: []string{"code", "name"}},
		methodologies: jsonl.Table{Name: "methodologies", Columns: []string{"version", "status", "measurement_types", "max_repetitions", "max_jobs"}},
		models: jsonl.Table{
			Name: "models",
			Columns: []string{"id", "name", "provider_code", "provider_model", "status", "measurement_types", "countries", "languages",
				"grounded_search"},
			Checks: []jsonl.Check{{Query: unknownProviders, Reason: "there is no such provider"}},
		},
		questions: jsonl.Table{
			Name: "questions", Columns: []string{"id", "account_id", "text", "language", "country", "topic", "tags", "status"},
			Checks: []jsonl.Check{
				{Query: unknownOwners, Reason: "there is no such account"},
				{Query: movedQuestions, Reason: "the question is there already and belongs to another account (null: to all); it can't be moved"},
			},
		},
	}
	err := jsonl.Read(file, func(l *jsonl.Line) {
		if progress != nil {
			progress(l.Number)
		}
		switch kind := jsonl.OneOf(l, "kind", "provider", "model", "question", "methodology"); kind {
		case "provider":
			in.providers.Add(l, jsonl.Matching(l, "code", providerPattern), jsonl.Text(l, "name"))
		case "methodology":
			in.methodologies.Add(l, jsonl.Matching(l, "version", versionPattern), jsonl.OneOf(l, "status", "active", "retired"),
				types(l), between(l, "max_repetitions", 1, 32767), between(l, "max_jobs", 1, 1_000_000))
		case "model":
			in.models.Add(l, jsonl.Matching(l, "id", idPattern), jsonl.Text(l, "name"), jsonl.Matching(l, "provider", providerPattern),
				jsonl.Text(l, "provider_model"), jsonl.OneOf(l, "status", "active", "deprecated", "disabled"), types(l),
				jsonl.ListOrNull(l, "countries", countryPattern), jsonl.ListOrNull(l, "languages", languagePattern),
				jsonl.Field[bool](l, "grounded_search"))
		case "question":
			in.questions.Add(l, jsonl.Matching(l, "id", idPattern), jsonl.IDOrNull(l, "account_id", "acct", "an account"),
				jsonl.Text(l, "text"), jsonl.Matching(l, "language", languagePattern), jsonl.Matching(l, "country", countryPattern),
				jsonl.Text(l, "topic"), jsonl.List(l, "tags", nil), jsonl.OneOf(l, "status", "active", "archived"))
		default:
			l.SkipRest()
		}
	})
	return in, err
}

func between(l *jsonl.Line, name string, low, high int) int {
	v := jsonl.Field[int](l, name)
	if l.Has(name) && (v < low || v > high) {
		l.Errorf("%s must be from %d to %d", name, low, high)
	}
	return v
}

func types(l *jsonl.Line) []string {
	v := jsonl.List(l, "measurement_types", typePattern)
	if l.Has("measurement_types") && len(v) == 0 {
		l.Errorf("measurement_types must not be empty")
	}
	return v
}
