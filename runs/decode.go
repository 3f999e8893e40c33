package runs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"aiv/store"
)

// decoder reads rows of the columns of Run from PostgreSQL's binary format. pgx's reflection takes a third of the time
// of a list page, because a page has 50 rows of 18 columns. A decoder returns equal lists as one slice, which callers
// must not change. A text that is equal in consecutive rows, as most are, is allocated once.
type decoder struct {
	account store.ID            // of all rows, which then have no column for it; zero: rows begin with their account
	checked bool                // whether check has passed
	last    Run                 // of the previous row
	lists   map[string][]string // by their binary format
	err     error               // of the current row
}

func newDecoder(account store.ID) *decoder {
	return &decoder{account: account, lists: make(map[string][]string)}
}

// row implements pgx.RowToFunc.
func (d *decoder) row(row pgx.CollectableRow) (r Run, err error) {
	if !d.checked { // the rows of a query have the same columns
		if err := d.check(row.FieldDescriptions()); err != nil {
			return r, err
		}
		d.checked = true
	}
	raw := row.RawValues()
	d.err = nil
	next := func() []byte { // the value of the next column
		v := raw[0]
		raw = raw[1:]
		return v
	}
	// The columns are in the order of the fields of Run.
	if r.AccountID = d.account; d.hasAccount() {
		copy(r.AccountID[:], next())
	}
	copy(r.ID[:], next())
	r.Status, r.MeasurementType = text(next(), d.last.Status), text(next(), d.last.MeasurementType)
	r.MethodologyVersion = text(next(), d.last.MethodologyVersion)
	r.ModelIDs, r.QuestionIDs = d.list(next()), d.list(next())
	r.Repetitions = d.int(next())
	r.Locale, r.Country, r.Language = text(next(), d.last.Locale), text(next(), d.last.Country), text(next(), d.last.Language)
	r.TotalJobs, r.Running, r.Completed, r.Failed, r.Canceled = d.int(next()), d.int(next()), d.int(next()), d.int(next()), d.int(next())
	r.CreatedAt = d.time(next())
	r.StartedAt, r.FinishedAt = d.timeOrNil(next()), d.timeOrNil(next())
	d.last = r
	return r, d.err
}

// hasAccount reports whether rows begin with their account.
func (d *decoder) hasAccount() bool { return d.account == store.ID{} }

// check returns an error unless a run can be read from the columns.
func (d *decoder) check(columns []pgconn.FieldDescription) error {
	want := reflect.TypeFor[Run]().NumField()
	if !d.hasAccount() {
		want--
	}
	switch {
	case !isBinary(columns):
		return errors.New("a run is in the text format")
	case len(columns) != want:
		return fmt.Errorf("a run has %d columns", len(columns))
	}
	return nil
}

// isBinary reports whether the columns are in the binary format. Texts are the same in both formats.
func isBinary(columns []pgconn.FieldDescription) bool {
	return !slices.ContainsFunc(columns, func(c pgconn.FieldDescription) bool {
		return c.Format != pgx.BinaryFormatCode && c.DataTypeOID != pgtype.TextOID
	})
}

// text returns the text of a column; last is its text in the previous row.
func text(raw []byte, last string) string {
	if string(raw) == last { // allocates nothing
		return last
	}
	return string(raw)
}

// int reads a smallint or an integer.
func (d *decoder) int(raw []byte) int {
	switch len(raw) {
	case 2:
		return int(int16(binary.BigEndian.Uint16(raw)))
	case 4:
		return int(int32(binary.BigEndian.Uint32(raw)))
	}
	d.err = fmt.Errorf("an integer has %d bytes", len(raw))
	return 0
}

// epoch is PostgreSQL's, in microseconds of Unix time.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// time reads a timestamptz: microseconds since the epoch.
func (d *decoder) time(raw []byte) (t time.Time) {
	if len(raw) != 8 {
		d.err = fmt.Errorf("a timestamp has %d bytes", len(raw))
		return t
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(raw)) + epoch)
}

// timeOrNil reads a timestamptz, or NULL.
func (d *decoder) timeOrNil(raw []byte) *time.Time {
	if raw == nil {
		return nil
	}
	return new(d.time(raw))
}

// list reads a text[].
func (d *decoder) list(raw []byte) []string {
	list, ok := d.lists[string(raw)]
	if !ok {
		list = d.elements(raw)
		d.lists[string(raw)] = list
	}
	return list
}

// elements reads a text[]: the number of dimensions, a flag and the type of the elements; the length and the lower
// bound of its one dimension; and each element after its length.
func (d *decoder) elements(raw []byte) []string {
	next := func() int {
		if len(raw) < 4 {
			d.err = fmt.Errorf("an array ends early")
			return 0
		}
		n := int(int32(binary.BigEndian.Uint32(raw)))
		raw = raw[4:]
		return n
	}
	// An empty array has no dimension.
	dimensions := next()
	// The flag and the type of the elements, which are text.
	next()
	next()
	if dimensions == 0 || d.err != nil {
		return []string{}
	}
	length := next()
	// The lower bound, which is 1.
	next()
	// Each element has at least its length, so this bounds what is allocated.
	if length < 0 || length > len(raw)/4 {
		d.err = fmt.Errorf("an array of %d elements has %d bytes", length, len(raw))
		return nil
	}
	list := make([]string, length)
	for i := range list {
		n := next()
		if n < 0 || n > len(raw) {
			d.err = fmt.Errorf("an array's element has %d bytes", n)
			return nil
		}
		list[i] = string(raw[:n])
		raw = raw[n:]
	}
	return list
}
