package catalog

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Admin carries out what an operator asks for. Every change is written to audit_log in its own transaction.
type Admin struct {
	Pool  *pgxpool.Pool
	Actor string // who asks
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
	in, err := read(file)
	if err != nil {
		return Imported{}, err
	}
	n := Imported{len(in.providers.rows), len(in.methodologies.rows), len(in.models.rows), len(in.questions.rows)}
	err = pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		// Two imports at once would each miss what the other adds.
		if _, err := tx.Exec(ctx, `SELECT FROM catalog_revision FOR UPDATE`); err != nil {
			return err
		}
		var changed int64
		for _, step := range []func() (int64, error){
			func() (int64, error) { return in.providers.write(ctx, tx, upsertProviders) },
			func() (int64, error) { return in.methodologies.write(ctx, tx, upsertMethodologies) },
			func() (int64, error) { return in.models.write(ctx, tx, upsertModels) },
			func() (int64, error) { return in.questions.write(ctx, tx, upsertQuestions) },
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
	providers, methodologies, models, questions table
}

func read(file io.Reader) (*incoming, error) {
	in := &incoming{
		providers:     table{name: "providers", columns: []string{"code", "name"}},
		methodologies: table{name: "methodologies", columns: []string{"version", "status", "measurement_types", "max_repetitions", "max_jobs"}},
		models: table{
			name: "models",
			columns: []string{"id", "name", "provider_code", "provider_model", "status", "measurement_types", "countries", "languages",
				"grounded_search"},
			refusals: []refusal{{unknownProviders, "there is no such provider"}},
		},
		questions: table{
			name: "questions", columns: []string{"id", "account_id", "text", "language", "country", "topic", "tags", "status"},
			refusals: []refusal{
				{unknownOwners, "there is no such account"},
				{movedQuestions, "the question is there already and belongs to another account (null: to all); it can't be moved"},
			},
		},
	}
	err := store.ReadLines(file, func(l *store.Line) {
		switch kind := store.Word(l, "kind", "provider", "model", "question", "methodology"); kind {
		case "provider":
			in.providers.add(l, matching(l, "code", providerPattern), store.Text(l, "name"))
		case "methodology":
			in.methodologies.add(l, matching(l, "version", versionPattern), store.Word(l, "status", "active", "retired"),
				types(l), between(l, "max_repetitions", 1, 32767), between(l, "max_jobs", 1, 1_000_000))
		case "model":
			in.models.add(l, matching(l, "id", idPattern), store.Text(l, "name"), matching(l, "provider", providerPattern),
				store.Text(l, "provider_model"), store.Word(l, "status", "active", "deprecated", "disabled"), types(l),
				nullableList(l, "countries", countryPattern), nullableList(l, "languages", languagePattern),
				store.Field[bool](l, "grounded_search"))
		case "question":
			in.questions.add(l, matching(l, "id", idPattern), owner(l), store.Text(l, "text"), matching(l, "language", languagePattern),
				matching(l, "country", countryPattern), store.Text(l, "topic"), list(l, "tags", nil), store.Word(l, "status", "active", "archived"))
		default:
			l.SkipRest()
		}
	})
	return in, err
}

func matching(l *store.Line, name string, pattern *regexp.Regexp) string {
	v := store.Field[string](l, name)
	if v != "" && !pattern.MatchString(v) || v == "" && l.Has(name) {
		l.Fault("%s must match %s", name, pattern)
	}
	return v
}

func between(l *store.Line, name string, low, high int) int {
	v := store.Field[int](l, name)
	if l.Has(name) && (v < low || v > high) {
		l.Fault("%s must be from %d to %d", name, low, high)
	}
	return v
}

func types(l *store.Line) []string {
	v := list(l, "measurement_types", typePattern)
	if l.Has("measurement_types") && len(v) == 0 {
		l.Fault("measurement_types must not be empty")
	}
	return v
}

func list(l *store.Line, name string, pattern *regexp.Regexp) []string {
	v := store.Field[[]string](l, name)
	checkList(l, name, v, pattern)
	return v
}

func nullableList(l *store.Line, name string, pattern *regexp.Regexp) []string {
	v := store.Field[store.Null[[]string]](l, name)
	checkList(l, name, v.V, pattern)
	return v.V
}

func checkList(l *store.Line, name string, list []string, pattern *regexp.Regexp) {
	for i, v := range list {
		switch {
		case pattern != nil && !pattern.MatchString(v):
			l.Fault("%s must hold what matches %s", name, pattern)
			return
		case v == "":
			l.Fault("%s must not hold an empty string", name)
			return
		case slices.Contains(list[:i], v):
			l.Fault("%s must not hold %q twice", name, v)
			return
		}
	}
}

func owner(l *store.Line) *store.ID {
	text := store.Field[store.Null[string]](l, "account_id").Ptr()
	if text == nil {
		return nil
	}
	id, err := store.ParseID("acct", *text)
	if err != nil {
		l.Fault("account_id must be an account's id or null")
	}
	return &id
}
