package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Page selects part of a list.
type Page struct {
	After *Position // of the last row of the previous page; nil: the first page
	Limit int       // the maximum number of rows
}

// A Position is the sort key of a row: its time and its id, or only its id where that is a text.
type Position struct {
	Time time.Time
	ID   ID
	Text string
}

// A KeysetQuery reads a page of a list. It finds the first row of the page by its sort key instead of counting the rows
// before it. All pages therefore cost the same, and rows that are inserted or deleted before the page do not shift it.
//
// Each list has an index for each of its filters: the account, the filter's column, the sort key. The filter that is
// read through its index is written as a row comparison together with the sort key, and the rows are ordered
// by it, because only that index yields rows in this order. With an equality instead, the planner could read the whole
// list in its order and drop the rows that do not match. Statistics of a column with one common value make that plan
// look cheap, but it reads millions of rows when the filter has another value.
type KeysetQuery struct {
	Select   string     // SELECT … FROM …
	Order    []string   // the columns of the sort key, together unique
	Named    []string   // their names in the result, if these differ
	Oldest   bool       // ascending order
	From, To *time.Time // bounds of the first column of the sort key; To is exclusive
	Page     Page
	First    bool // read through the first filter, for queries whose other filters have no index in this order

	where   []condition
	filters []filter
	rarest  bool     // Rare has put a filter first
	through []string // the column of the first filter, if there is one
	bound   []string // where, with the numbers of the arguments
	args    []any
}

// Where adds a condition. Each ? in it stands for an argument.
func (q *KeysetQuery) Where(text string, args ...any) {
	q.where = append(q.where, condition{text, args})
}

// A condition has as many ? as arguments.
type condition struct {
	text string
	args []any
}

// A filter is the condition that a column has one of the values. There is at least one value.
type filter struct {
	column string
	values []string
}

// Filter adds the condition that the column has one of the values. Without values, or with an empty one, it adds
// nothing. The page is read through the index of one filter: the rarest (see Rare), or else the first, so callers
// add the most selective filter first.
func (q *KeysetQuery) Filter(column string, values ...string) {
	if len(values) > 0 && values[0] != "" {
		q.filters = append(q.filters, filter{column, values})
	}
}

// Among adds the condition of Filter. The page is never read through an index with the column.
func (q *KeysetQuery) Among(column string, values ...string) {
	if len(values) > 0 && values[0] != "" {
		q.Where(column+" = ANY (?)", values)
	}
}

// bind adds an argument and returns its placeholder.
func (q *KeysetQuery) bind(arg any) string {
	q.args = append(q.args, arg)
	return "$" + strconv.Itoa(len(q.args))
}

// SQL returns the query and its arguments. It selects one row more than the limit, so that the caller knows whether
// there is a next page.
func (q KeysetQuery) SQL() (string, []any) {
	q.where, q.args = slices.Clip(q.where), slices.Clip(q.args) // appending copies them
	if len(q.filters) > 0 {
		q.through = []string{q.filters[0].column}
		for _, f := range q.filters[1:] {
			q.Where(f.column+" = ANY (?)", f.values)
		}
	}
	for _, c := range q.where {
		for _, a := range c.args {
			c.text = strings.Replace(c.text, "?", q.bind(a), 1)
		}
		q.bound = append(q.bound, c.text)
	}
	if len(q.filters) == 0 {
		return q.branch(), q.args
	}
	values := q.filters[0].values
	branches := make([]string, len(values))
	// Each value of the filter has a branch, as the index yields the rows of one value in order. All branches are
	// then merged.
	for i, v := range values {
		branches[i] = q.branch(v)
	}
	if len(branches) == 1 {
		return branches[0], q.args
	}
	return q.merge(branches), q.args
}

// merge returns a query for the first rows of several branches.
func (q *KeysetQuery) merge(branches []string) string {
	names := q.Named
	if names == nil {
		for _, c := range q.Order { // outside the branches, columns have no table
			names = append(names, c[strings.IndexByte(c, '.')+1:])
		}
	}
	return "(" + strings.Join(branches, ") UNION ALL (") + ") ORDER BY " + strings.Join(names, q.direction()+", ") + q.direction() + q.limit()
}

// direction returns what follows each column of ORDER BY.
func (q *KeysetQuery) direction() string {
	if q.Oldest {
		return ""
	}
	return " DESC"
}

// limit is not a parameter of the statement: a generic plan would expect to return a tenth of all rows.
func (q *KeysetQuery) limit() string { return " LIMIT " + strconv.Itoa(q.Page.Limit+1) }

// branch returns the query for one value of the first filter, if there is one.
func (q *KeysetQuery) branch(values ...string) string {
	fixed := make([]string, len(values))
	for i, v := range values {
		fixed[i] = q.bind(v)
	}
	// The first and the last row as row comparisons of the filter's column and the bounded columns of the sort key.
	first, last := "<=", ">="
	if q.Oldest {
		first, last = ">=", "<="
	}
	conditions := slices.Clone(q.bound)
	compare := func(sign string, order []string, bounds ...any) {
		columns, placeholders := slices.Concat(q.through, order), slices.Clone(fixed)
		for _, b := range bounds {
			placeholders = append(placeholders, q.bind(b))
		}
		if len(columns) > 0 {
			conditions = append(conditions, "("+strings.Join(columns, ", ")+") "+sign+" ("+strings.Join(placeholders, ", ")+")")
		}
	}
	switch after := q.Page.After; {
	// The sort key is a text alone. first[:1] is the sign without =, so the row of the cursor is left out.
	case after != nil && len(q.Order) == 1:
		compare(first[:1], q.Order, after.Text)
	case after != nil: // a cursor is only valid with the filters it was made with, so it lies before To
		compare(first[:1], q.Order, after.Time, after.ID)
	case q.To != nil:
		compare("<", q.Order[:1], *q.To)
	default:
		// Without a bound there is still the filter's column to compare, if there is one.
		compare(first, nil)
	}
	if q.From != nil {
		compare(">=", q.Order[:1], *q.From)
	} else {
		compare(last, nil)
	}
	query := q.Select
	if len(conditions) > 0 {
		query += " WHERE " + strings.Join(conditions, " AND ")
	}
	order := strings.Join(slices.Concat(q.through, q.Order), q.direction()+", ")
	return query + " ORDER BY " + order + q.direction() + q.limit()
}

// rare is the number of rows that are read through a filter's index without regard to the other filters.
const rare = 1000

// Rare makes the query read through the filter that the fewest rows match, if these are at most 1,000 from the start of
// the page on, and reports whether there is one. Otherwise two filters that each match many rows, but hardly any in
// common, would make the page read the whole list. Each filter's rows are counted through its index, up to 1,001.
func (q *KeysetQuery) Rare(ctx context.Context, db Querier) (bool, error) {
	if len(q.filters) == 0 {
		return false, nil
	}
	// The counts are made with a copy, so that they leave the filters and arguments of q alone.
	one := *q
	one.Page.Limit = rare
	var counts []string
	for _, f := range q.filters {
		one.filters = []filter{f}
		var sql string
		sql, one.args = one.SQL() // whose arguments follow the arguments of the counts before
		counts = append(counts, "(SELECT count(*) FROM ("+sql+") AS "+pgx.Identifier{f.column}.Sanitize()+")")
	}
	var rows []int64
	if err := db.QueryRow(ctx, "SELECT ARRAY["+strings.Join(counts, ", ")+"]", one.args...).Scan(&rows); err != nil {
		return false, err
	}
	// Of filters that are equally rare, the first is taken.
	least := slices.Index(rows, slices.Min(rows))
	// No filter is rare. The query reads through the first one.
	if rows[least] > rare {
		return false, nil
	}
	q.filters[0], q.filters[least] = q.filters[least], q.filters[0]
	q.rarest = true
	return true, nil
}

// ReadPage runs a query. T has one field for each column, in order. With several filters it looks for a rare one first.
func ReadPage[T any](ctx context.Context, db Querier, q *KeysetQuery) ([]T, error) {
	return ReadPageFunc(ctx, db, q, pgx.RowToStructByPos[T])
}

// ReadPageFunc is ReadPage with a function that reads a row.
func ReadPageFunc[T any](ctx context.Context, db Querier, q *KeysetQuery, row pgx.RowToFunc[T]) ([]T, error) {
	if err := q.readThroughRare(ctx, db); err != nil {
		return nil, err
	}
	sql, args := q.SQL()
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows(make([]T, 0, q.Page.Limit+1), rows, row)
}

// IsSingle reports whether the page takes one statement, without another one that looks for a rare filter.
func (q *KeysetQuery) IsSingle() bool { return len(q.filters) <= 1 || q.First || q.rarest }

// QueuePage adds a query to a batch; page is set when the result is read. The query must take one statement (IsSingle).
func QueuePage[T any](b *pgx.Batch, q *KeysetQuery, row pgx.RowToFunc[T], page *[]T) {
	sql, args := q.SQL()
	b.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		*page, err = pgx.AppendRows(make([]T, 0, q.Page.Limit+1), rows, row)
		return err
	})
}

// ReadMerged is ReadPage for a list whose rows are in several tables. It runs a query for each as one statement, and
// merges their rows by the sort key, whose names, order and page they have in common.
func ReadMerged[T any](ctx context.Context, db Querier, queries ...*KeysetQuery) ([]T, error) {
	branches := make([]string, len(queries))
	var args []any
	for i, q := range queries {
		if err := q.readThroughRare(ctx, db); err != nil {
			return nil, err
		}
		one := *q
		one.args = args // the arguments of this query follow the arguments of the queries before
		branches[i], args = one.SQL()
	}
	rows, err := db.Query(ctx, queries[0].merge(branches), args...)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows(make([]T, 0, queries[0].Page.Limit+1), rows, pgx.RowToStructByPos[T])
}

// readThroughRare calls Rare if there are several filters to choose from.
func (q *KeysetQuery) readThroughRare(ctx context.Context, db Querier) error {
	if q.IsSingle() {
		return nil
	}
	_, err := q.Rare(ctx, db)
	return err
}
