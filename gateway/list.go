package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"aiv/gateway/mcp"
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/gateway/wire"
	"aiv/store"
	"aiv/store/batch"
)

// A list is a list route: its filters, its query and its wire type. F is the filter and T the record of the package
// that it reads from.
//
// A new filter is a line in filters, a field of F, a condition in the package's query, an index that ends in the sort
// key, a parameter in openapi.json, and addresses in TestListPlansReadLittle. The function read may be nil if the route
// has its own handler, which calls respond or page.
type list[F, T any] struct {
	filters []filter[F]
	// read returns one record more than the limit if there are more.
	read func(ctx context.Context, db store.Querier, x *exchange, f F, selected store.Page) ([]T, error)
	// queue adds the statement of read to a batch; rows is set when its result is read. It adds nothing, and reports false,
	// if read needs more than one statement. If queue is nil, reads of the route do not share turns.
	queue func(b *pgx.Batch, account store.ID, f F, selected store.Page, rows *[]T) bool

	sortKey func(*T) store.Position
	byText  bool                        // the sort key is a text
	append  func(b []byte, t *T) []byte // appends a record as JSON

	limit func(*F) int // the default limit with these filters; nil: defaultLimit

	depend func(*exchange, *problem.Faults) // reports faults of parameters that depend on others; may be nil

	tagged bool // pages have an ETag
}

// encoded returns the function append of a list whose records encoding/json encodes as documents.
func encoded[T, D any](document func(*T) D) func([]byte, *T) []byte {
	return func(b []byte, t *T) []byte { return append(b, wire.Encode(document(t))...) }
}

// ofAccount returns the function read of a list for a query that depends on the account, the filter and the page only.
func ofAccount[F, T any](
	query func(ctx context.Context, db store.Querier, account store.ID, f F, selected store.Page) ([]T, error),
) func(context.Context, store.Querier, *exchange, F, store.Page) ([]T, error) {
	return func(ctx context.Context, db store.Querier, x *exchange, f F, selected store.Page) ([]T, error) {
		return query(ctx, db, x.credential().AccountID, f, selected)
	}
}

// Bounds of a page.
const (
	defaultLimit = 50 // items
	maxLimit     = 200
)

// Limits on the bytes of pages in flight. A page that is larger than maxPage ends early.
const (
	maxPage       = 8 << 20 // of one page
	maxPages      = 96 << 20
	maxPagesOfOne = maxPages / 3
)

// A page is an encoded page of a list.
type page struct {
	body   []byte
	cursor string // of the next page; empty if there is none

	mediaType string // empty: application/json
	tag       string // its ETag; empty: none
}

// serve is the handler of the route.
func (l *list[F, T]) serve(g *Gateway, x *exchange, r *http.Request) error {
	var f F
	selected, err := l.parameters(g, x, &f)
	if err != nil {
		return err
	}
	// The record beyond the limit shows that there are more, and is not returned.
	split := func(rows []T) ([]T, bool) { return rows[:min(len(rows), selected.Limit)], len(rows) > selected.Limit }
	// A standby may have what one request must see, and lack what another must see.
	if l.queue != nil && g.cfg.Standby == nil {
		var rows []T
		var p page
		joined := newJoinedRead(selected.Limit, func() (err error) {
			found, more := split(rows)
			p, err = l.page(g, x, found, more)
			return err
		})
		if l.queue(&joined.statement, x.credential().AccountID, f, selected, &rows) {
			if err := g.readJoined(x, joined); err == nil {
				return l.send(g, x, r, p)
			} else if !errors.Is(err, errNotReached) {
				return err
			}
		}
	}
	return l.respond(g, x, r, func(ctx context.Context, db store.Querier) ([]T, bool, error) {
		rows, err := l.read(ctx, db, x, f, selected)
		rows, more := split(rows)
		return rows, more, err
	})
}

// respond sends the page of the rows that read returns, which also reports whether more rows follow.
func (l *list[F, T]) respond(g *Gateway, x *exchange, r *http.Request, read func(context.Context, store.Querier) ([]T, bool, error)) error {
	p, err := readOne(g, x, func(ctx context.Context, db store.Querier) (page, error) {
		// The page is encoded within the turn of the read, so MaxReads bounds the pages that are being made.
		rows, more, err := read(ctx, db)
		if err != nil {
			return page{}, err
		}
		return l.page(g, x, rows, more)
	})
	if err != nil {
		return err
	}
	return l.send(g, x, r, p)
}

// send sends a page of the list.
func (l *list[F, T]) send(g *Gateway, x *exchange, r *http.Request, p page) error {
	if l.tagged {
		p.tag = tagOf(p.body)
	}
	// By then the response is sent, or toolCall.Write has copied it.
	defer g.reuse(p.body)
	return g.sendPage(x, r, p)
}

// maxReused is the size of the largest buffer that is used for further pages.
const maxReused = 64 << 10

// buffer returns an empty buffer for n bytes of a page.
func (g *Gateway) buffer(n int) []byte {
	if b, ok := g.buffers.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:0]
	}
	return make([]byte, 0, n)
}

// reuse keeps the buffer of a page that has been sent: pages are half of what a list allocates.
func (g *Gateway) reuse(b []byte) {
	if cap(b) <= maxReused {
		g.buffers.Put(&b)
	}
}

// sendPage sends a page, unless it has a tag and the client has the page. Until it is sent, its memory counts against
// the account.
func (g *Gateway) sendPage(x *exchange, r *http.Request, p page) error {
	if p.cursor != "" {
		x.set("Link", "<"+x.nextAddress(p.cursor)+`>; rel="next"`)
	}
	if p.tag != "" {
		x.set("Cache-Control", "private, no-cache")
		// The client already has the page, so the response has no body.
		if x.unchanged(r, p.tag) {
			return nil
		}
	}
	account := x.credential().AccountID
	// This bounds the memory of pages that slow clients receive.
	if !g.pages.take(account, len(p.body)) {
		return batch.ErrOverloaded
	}
	defer g.pages.release(account, len(p.body))
	x.write(http.StatusOK, cmp.Or(p.mediaType, "application/json"), p.body)
	return nil
}

// page returns a page, whose body has the members data, has_more and next_cursor.
func (l *list[F, T]) page(g *Gateway, x *exchange, rows []T, more bool) (page, error) {
	// The capacity is an estimate; longer items make it grow.
	b := append(g.buffer(256+512*len(rows)), `{"data":[`...)
	var ends []int // of the items in b, for tools
	for i := range rows {
		if len(b) > x.maxPage() {
			// The rest of the rows is on the next page.
			rows, more = rows[:i], true
			break
		}
		b = l.append(wire.Item(b), &rows[i])
		if x.tool != nil {
			ends = append(ends, len(b))
		}
	}
	// fit may ask for several lengths. Clip makes end copy a shorter page instead of overwriting the items after it.
	return x.fit(len(rows), func(n int) page {
		if n < len(rows) {
			return l.end(g, x, slices.Clip(b[:ends[n-1]]), rows[:n], true)
		}
		// Without a tool, n is always len(rows).
		return l.end(g, x, b, rows, more)
	})
}

// maxPage is the size after which a page ends early.
func (x *exchange) maxPage() int {
	if x.tool != nil {
		return mcp.MaxResult
	}
	return maxPage
}

// end returns the page whose items are in b.
func (l *list[F, T]) end(g *Gateway, x *exchange, b []byte, rows []T, more bool) page {
	b = append(b, ']')
	b = strconv.AppendBool(wire.Member(b, "has_more"), more)
	// The last page has no cursor.
	if !more {
		return page{body: append(wire.Member(b, "next_cursor"), "null}"...)}
	}
	cursor := g.seal(x.bound(), l.sortKey(&rows[len(rows)-1]), l.byText)
	return page{body: append(wire.Text(b, "next_cursor", cursor), '}'), cursor: cursor}
}

// query returns the names of the parameters of the route.
func (l *list[F, T]) query() []string {
	return append([]string{"limit", "cursor"}, namesOf(l.filters)...)
}

// parameters reads the filters, the limit and the cursor, and reports every fault.
func (l *list[F, T]) parameters(g *Gateway, x *exchange, f *F) (selected store.Page, err error) {
	faults := x.params.Faults(x.route.input.query)
	selected.Limit = defaultLimit
	for _, p := range x.params {
		if p.Fault != "" {
			continue
		}
		wrong := ""
		// A parameter is a filter, the limit or the cursor; Faults has reported any other.
		if i := slices.IndexFunc(l.filters, func(f filter[F]) bool { return f.name == p.Name }); i >= 0 {
			wrong = l.filters[i].read(f, p.Value)
		} else {
			wrong = g.readPosition(x, p, l.byText, &selected)
		}
		if wrong != "" {
			faults.AddParameter(p.Name, wrong)
		}
	}
	if l.depend != nil {
		l.depend(x, &faults)
	}
	if len(faults) > 0 {
		return selected, request.InvalidParameters(faults)
	}
	// After all filters have been read, because the default depends on them.
	if l.limit != nil && len(x.params.Get("limit")) == 0 {
		selected.Limit = l.limit(f)
	}
	return selected, nil
}

// readPosition reads the parameters limit and cursor, and reports what is wrong with them. It ignores other parameters.
func (g *Gateway) readPosition(x *exchange, p request.Parameter, byText bool, to *store.Page) (wrong string) {
	switch {
	case p.Name == "limit":
		// Atoi also accepts +5 and 05, which are rejected below.
		limit, err := strconv.Atoi(p.Value)
		if to.Limit = limit; err != nil || limit < 1 || limit > maxLimit || p.Value[0] == '+' || p.Value[0] == '0' {
			return "must be an integer from 1 to " + strconv.Itoa(maxLimit)
		}
	case p.Name == "cursor" && !slices.ContainsFunc(x.params, request.Parameter.IsFaulty):
		// A cursor is opened only if all parameters can be read, because it is bound to them.
		var ok bool
		if to.After, ok = g.open(x.bound(), p.Value, byText); !ok {
			return "must be a next_cursor of this list with the same filters"
		}
	}
	return ""
}

// bound returns what a cursor is bound to: the path, the account and the filters. The order of the filters does not
// matter.
func (x *exchange) bound() string {
	filters := slices.DeleteFunc(slices.Clone(x.params), func(p request.Parameter) bool { return p.Name == "limit" || p.Name == "cursor" })
	slices.SortFunc(filters, func(a, b request.Parameter) int { return strings.Compare(a.Name, b.Name) })
	return x.route.method + " " + x.path + "\n" + x.credential().AccountID.Text("acct") + "\n" + filters.Encode()
}

// given reports whether the request has a parameter.
func (x *exchange) given(name string) bool { return len(x.params.Get(name)) > 0 }

// nextAddress returns the address of the next page, in the form of this request: with path or plain.
func (x *exchange) nextAddress(cursor string) string {
	next := slices.DeleteFunc(slices.Clone(x.params), func(p request.Parameter) bool { return p.Name == "cursor" })
	next = append(next, request.Parameter{Name: "cursor", Value: cursor})
	if x.plain {
		return Base + x.path + "?" + next.Encode()
	}
	return Base + "?path=" + x.path + "&" + next.Encode()
}
