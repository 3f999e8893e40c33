package brands

import (
	"errors"
	"fmt"
	"slices"

	"aiv/store"
	"aiv/store/jsonl"
)

// An incoming brand is a line of a file.
type incoming struct {
	line    int
	account store.ID
	id      *store.ID // nil: the line has none
	Change            // all members are set
}

// readLine reads a line. It has the members of a brand that operators set, and account_id; id is optional.
func readLine(l *jsonl.Line) *incoming {
	in := &incoming{line: l.Number, account: jsonl.ID(l, "account_id", "acct", "an account")}
	if l.Has("id") {
		in.id = new(jsonl.ID(l, "id", "brand", "a brand"))
	}
	in.Change = Change{
		Kind: new(jsonl.OneOf(l, "kind", Kinds...)), Name: new(jsonl.Field[string](l, "name")),
		Aliases: readList(l, "aliases"), Domains: readList(l, "domains"), Exclude: readList(l, "exclude"),
		MatchCase: new(jsonl.Field[bool](l, "match_case")), Status: new(jsonl.OneOf(l, "status", Statuses...)),
	}
	if l.Has("name") {
		for _, f := range in.Check() {
			l.Errorf("%s %s", f.At, f.Detail)
		}
	}
	return in
}

func readList(l *jsonl.Line, name string) []string {
	return append([]string{}, jsonl.Field[[]string](l, name)...)
}

// A merge is what the lines of a file change of one account's brands.
type merge struct {
	*state
	all     []Brand // active ones first, then by creation
	lines   map[store.ID]int
	changed map[store.ID]bool
	created map[store.ID]bool
	active  bool // an active brand changes
}

// add applies a line. It returns an error of the line.
func (m *merge) add(in *incoming) error {
	i := m.find(in)
	if i < 0 {
		b := Brand{ID: store.NewID(), Status: Archived}
		if in.id != nil {
			b.ID = *in.id
		}
		m.created[b.ID] = true
		m.all = append(m.all, b)
		i = len(m.all) - 1
	}
	b := &m.all[i]
	if first, ok := m.lines[b.ID]; ok {
		return fmt.Errorf("line %d: names the brand of line %d", in.line, first)
	}
	m.lines[b.ID] = in.line
	after, _ := in.apply(*b) // which Check has accepted
	if !m.created[b.ID] && after.equal(b) {
		return nil
	}
	m.changed[b.ID] = true
	m.active = m.active || b.Status == Active || after.Status == Active
	*b = after
	return nil
}

// find returns the index of the brand that a line replaces, or -1: the brand with its id or, if it has none, one with
// an equal name, an active one first. Of archived ones, one that is as the line says comes first: it may be the brand
// that the line archived, and a second import must not replace another one.
func (m *merge) find(in *incoming) int {
	if in.id != nil {
		return slices.IndexFunc(m.all, func(b Brand) bool { return b.ID == *in.id })
	}
	key, found, same := nameKey(*in.Name), -1, false
	for i := range m.all {
		b := &m.all[i]
		if nameKey(b.Name) != key {
			continue
		}
		if b.Status == Active {
			return i
		}
		after, _ := in.apply(*b)
		if isSame := after.equal(b); found < 0 || isSame && !same {
			found, same = i, isSame
		}
	}
	return found
}

// check returns an error for each line whose brand has a name or domain of another active brand, and for bounds that
// the account exceeds.
func (m *merge) check() error {
	if len(m.changed) == 0 {
		return nil
	}
	var errs []error
	t, active := newTaken(nil), 0
	for i := range m.all { // brands that the file does not change, so that errors name its lines
		if b := &m.all[i]; b.Status == Active && !m.changed[b.ID] {
			t.add(b)
			active++
		}
	}
	for i := range m.all {
		b := &m.all[i]
		if b.Status != Active || !m.changed[b.ID] {
			continue
		}
		for _, c := range t.conflicts(b) {
			errs = append(errs, fmt.Errorf("line %d: %s %s", m.lines[b.ID], c.At, c.Detail()))
		}
		t.add(b)
		active++
	}
	account := m.account.Text("acct")
	if active > MaxActive {
		errs = append(errs, fmt.Errorf("account %s would have %d active brands; it may have at most %d", account, active, MaxActive))
	}
	if len(m.all) > MaxBrands {
		errs = append(errs, fmt.Errorf("account %s would have %d brands; it may have at most %d", account, len(m.all), MaxBrands))
	}
	return errors.Join(errs...)
}
