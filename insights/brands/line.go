package brands

import (
	"errors"
	"fmt"

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
	// Without a name, the line has an error already.
	if l.Has("name") {
		for _, f := range in.Check() {
			l.Errorf("%s %s", f.At, f.Detail)
		}
	}
	return in
}

// readList reads a list of texts. It never returns nil, which would mean no change.
func readList(l *jsonl.Line, name string) []string {
	return append([]string{}, jsonl.Field[[]string](l, name)...)
}

// A merge is what the lines of a file change of one account's brands.
type merge struct {
	*state
	all     []Brand          // by creation
	lines   map[store.ID]int // of brands that the file names: the line of each
	changed map[store.ID]bool
	created map[store.ID]bool
	active  bool // an active brand changes
}

// add applies lines, and returns their errors. Those with an id are first, and the others do not replace their brands.
// So the order of the lines does not matter, and adding them again changes nothing.
func (m *merge) add(lines []*incoming) (errs []error) {
	ids := make(map[store.ID]int) // indexes of m.all
	for i := range m.all {
		ids[m.all[i].ID] = i
	}
	for _, in := range lines {
		if in.id == nil {
			continue
		}
		i, found := ids[*in.id]
		if !found {
			i = m.create(*in.id)
			ids[*in.id] = i
		}
		errs = append(errs, m.replace(i, in))
	}
	names := make(map[string][]int) // indexes of m.all, by the keys of the names
	for i := range m.all {
		// Lines without an id do not replace brands that another line names by its id, new ones included.
		if b := &m.all[i]; m.lines[b.ID] == 0 {
			key := nameKey(b.Name)
			names[key] = append(names[key], i)
		}
	}
	for _, in := range lines {
		if in.id != nil {
			continue
		}
		key := nameKey(*in.Name)
		i := m.find(in, names[key])
		if i < 0 {
			i = m.create(store.NewID())
		}
		names[key] = []int{i} // replace refuses another line with this name
		errs = append(errs, m.replace(i, in))
	}
	return errs
}

// create adds a brand, which replace fills in, and returns its index.
func (m *merge) create(id store.ID) int {
	m.created[id] = true
	// A new brand counts as archived before its line is applied, so that replace sees whether active brands change.
	m.all = append(m.all, Brand{ID: id, Status: Archived})
	return len(m.all) - 1
}

// replace applies a line to a brand. It returns an error of the line.
func (m *merge) replace(i int, in *incoming) error {
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
	// The revision increases only if a brand that changes is active before or after the change.
	m.active = m.active || b.Status == Active || after.Status == Active
	*b = after
	return nil
}

// find returns the index of the brand that a line without an id replaces, of those with an equal name, or -1: an
// active one first. Of archived ones, one that is as the line says comes first: it may be the brand that the line
// archived, and a second import must not replace another one.
func (m *merge) find(in *incoming, namesakes []int) int {
	found, same := -1, false
	for _, i := range namesakes {
		b := &m.all[i]
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
			detail := c.Detail()
			if m.created[c.Other] { // its id may be new, and unknown to the operator
				detail = c.detail(fmt.Sprint("the brand of line ", m.lines[c.Other]))
			}
			errs = append(errs, fmt.Errorf("line %d: %s %s", m.lines[b.ID], c.At, detail))
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
