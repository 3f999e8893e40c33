package catalog

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Export writes the whole catalog in the format that Import reads: methodologies, providers, models, shared questions,
// own questions. w may be slow, such as a pager.
func Export(ctx context.Context, pool *pgxpool.Pool, w io.Writer) error {
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	err := store.ReadWithoutTimeouts(ctx, pool, func(tx pgx.Tx) error {
		// Everything is read in one snapshot.
		if err := export(ctx, tx, func(m Methodology) error {
			return lines.Encode(methodologyLine{"methodology", m.Version, m.Status, m.MeasurementTypes, m.MaxRepetitions, m.MaxJobs})
		}, selectMethodologies); err != nil {
			return err
		}
		if err := export(ctx, tx, func(p struct{ Code, Name string }) error {
			return lines.Encode(providerLine{"provider", p.Code, p.Name})
		}, selectProviderNames); err != nil {
			return err
		}
		if err := export(ctx, tx, func(m Model) error {
			return lines.Encode(modelLine{"model", m.ID, m.Name, m.Provider, m.ProviderModel, m.Status, m.MeasurementTypes, m.Countries,
				m.Languages, m.GroundedSearch})
		}, selectModels, Dependencies); err != nil {
			return err
		}
		question := func(q Question) error {
			return lines.Encode(questionLine{"question", q.ID, accountText(q.AccountID), q.Text, q.Language, q.Country, q.Topic, q.Tags, q.Status})
		}
		if err := export(ctx, tx, question, selectAllShared); err != nil {
			return err
		}
		return export(ctx, tx, question, selectAllOwn)
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// export calls each for every row of a query as it arrives: a catalog may have more questions than fit in memory.
func export[T any](ctx context.Context, tx pgx.Tx, each func(T) error, sql string, args ...any) error {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		// T has the columns of the query, in order.
		v, err := pgx.RowToStructByPos[T](rows)
		if err != nil {
			return err
		}
		if err := each(v); err != nil {
			return err
		}
	}
	return rows.Err()
}

// accountText returns an account's id, or nil for a shared question.
func accountText(id *store.ID) *string {
	if id == nil {
		return nil
	}
	return new(id.Text("acct"))
}

// The line types of a catalog file.
type (
	methodologyLine struct {
		Kind             string   `json:"kind"`
		Version          string   `json:"version"`
		Status           string   `json:"status"`
		MeasurementTypes []string `json:"measurement_types"`
		MaxRepetitions   int      `json:"max_repetitions"`
		MaxJobs          int      `json:"max_jobs"`
	}
	// The dependencies of a provider are not part of the file.
	providerLine struct {
		Kind string `json:"kind"`
		Code string `json:"code"`
		Name string `json:"name"`
	}
	modelLine struct {
		Kind             string   `json:"kind"`
		ID               string   `json:"id"`
		Name             string   `json:"name"`
		Provider         string   `json:"provider"`
		ProviderModel    string   `json:"provider_model"`
		Status           string   `json:"status"`
		MeasurementTypes []string `json:"measurement_types"`
		Countries        []string `json:"countries"`
		Languages        []string `json:"languages"`
		GroundedSearch   bool     `json:"grounded_search"`
	}
	questionLine struct {
		Kind      string   `json:"kind"`
		ID        string   `json:"id"`
		AccountID *string  `json:"account_id"`
		Text      string   `json:"text"`
		Language  string   `json:"language"`
		Country   string   `json:"country"`
		Topic     string   `json:"topic"`
		Tags      []string `json:"tags"`
		Status    string   `json:"status"`
	}
)
