package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Page says which part of a list is wanted.
type Page struct {
	After *Position // where the page before ended; nil: the first page
	Limit int       // how many rows at most
}

// A Position is a row's place in a list: its time and its id, or its id alone where the id is a text.
type Position struct {
	Time time.Time
	ID   ID
	Text string
}

// A Seek is a query for a page of a list. It finds the beginning of the page by its key instead of counting the rows
// before it, so that a page costs the same wherever it stands, and rows that are added in front of it, or taken away,
// shift nothing.
//
// Each list has an index for each of its filters: the account, the filter's column, the list's order. A filter that is
// given through that index (Through) is not written as an equality but as a range from its value to its value, in one row
// comparison with the order, and the rows are ordered by it. Only that index yields them so. An equality would leave the
// planner free to read the whole list in its order and drop what does not match, which looks as good to it where a column
// has held one value so far, and is a walk through millions of rows where the filter asks for another.
type Seek struct {
	Select   string     // SELECT … FROM …
	Order    []string   // the columns of the order, together unique
	Named    []string   // what the result calls them, where not by their own names
	Oldest   bool       // whether the order is ascending
	From, To *time.Time // bounds of the order's first column; From is included, To is not
	Page     Page

	where    []string
	filtered bool
	through  []string   // columns
	values   [][]string // of the columns, one list for each branch; the branches are merged
	args     []any
}

// Where adds a condition, in which each ? is an argument.
func (s *Seek) Where(condition string, args ...any) {
	for _, a := range args {
		condition = strings.Replace(condition, "?", s.bind(a), 1)
	}
	s.where = append(s.where, condition)
}

// Filter adds a filter: the column has one of the values. Without values, or with an empty one, it chooses nothing. Of
// several filters the page is read through the index of the first; the more selective ones go before.
func (s *Seek) Filter(column string, values ...string) {
	switch {
	case len(values) == 0 || values[0] == "":
	case s.filtered:
		s.Where(column+" = ANY (?)", values)
	default:
		s.Through(column, values...)
		s.filtered = true
	}
}

// Through adds a filter by whose index the page is read, besides that of Filter.
func (s *Seek) Through(column string, values ...string) {
	if s.values == nil {
		s.values = [][]string{nil}
	}
	var branches [][]string
	for _, b := range s.values {
		for _, v := range values {
			branches = append(branches, append(slices.Clip(b), v))
		}
	}
	s.through, s.values = append(s.through, column), branches
}

func (s *Seek) bind(arg any) string {
	s.args = append(s.args, arg)
	return "$" + strconv.Itoa(len(s.args))
}

// SQL returns the query, which asks for one row more than the page has: its presence tells that there is more.
func (s *Seek) SQL() (string, []any) {
	direction := " DESC"
	if s.Oldest {
		direction = ""
	}
	// The limit is written out: a plan made for any limit expects a tenth of all rows to be wanted.
	end := " LIMIT " + strconv.Itoa(s.Page.Limit+1)
	if len(s.values) <= 1 {
		var values []string
		if len(s.values) == 1 {
			values = s.values[0]
		}
		return s.branch(values, direction) + end, s.args
	}
	var b strings.Builder
	for i, values := range s.values {
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		b.WriteString("(" + s.branch(values, direction) + end + ")")
	}
	names := s.Named
	if names == nil {
		for _, c := range s.Order { // outside, a column has no table
			names = append(names, c[strings.IndexByte(c, '.')+1:])
		}
	}
	b.WriteString(" ORDER BY " + strings.Join(names, direction+", ") + direction)
	return b.String() + end, s.args
}

// branch is the query for one value of each column that the page is read through.
func (s *Seek) branch(values []string, direction string) string {
	fixed := make([]string, len(values))
	for i, v := range values {
		fixed[i] = s.bind(v)
	}
	// What comes first and what comes last, as row comparisons: of the columns and the order as far as it is bounded.
	first, last := "<=", ">="
	if s.Oldest {
		first, last = ">=", "<="
	}
	conditions := slices.Clone(s.where)
	compare := func(sign string, order []string, bounds ...any) {
		columns, placeholders := slices.Concat(s.through, order), slices.Clone(fixed)
		for _, b := range bounds {
			placeholders = append(placeholders, s.bind(b))
		}
		if len(columns) > 0 {
			conditions = append(conditions, "("+strings.Join(columns, ", ")+") "+sign+" ("+strings.Join(placeholders, ", ")+")")
		}
	}
	switch after := s.Page.After; {
	case after != nil && len(s.Order) == 1:
		compare(first[:1], s.Order, after.Text)
	case after != nil: // a cursor holds for its filters, so it lies before To
		compare(first[:1], s.Order, after.Time, after.ID)
	case s.To != nil:
		compare("<", s.Order[:1], *s.To)
	default:
		compare(first, nil)
	}
	if s.From != nil {
		compare(">=", s.Order[:1], *s.From)
	} else {
		compare(last, nil)
	}
	query := s.Select
	if len(conditions) > 0 {
		query += " WHERE " + strings.Join(conditions, " AND ")
	}
	return query + " ORDER BY " + strings.Join(slices.Concat(s.through, s.Order), direction+", ") + direction
}

// ReadPage runs a seek. T has a field for each column, in order.
func ReadPage[T any](ctx context.Context, pool *pgxpool.Pool, s *Seek) ([]T, error) {
	sql, args := s.SQL()
	rows, err := pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[T])
}
