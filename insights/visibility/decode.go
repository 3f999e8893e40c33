package visibility

import (
	"encoding/binary"

	"aiv/insights/brands/match"
)

// A reader reads what encode wrote. After an error all numbers are 0.
type reader struct {
	b       []byte
	at      int // bytes of b that were read
	damaged bool
}

// fail marks the bytes as damaged and skips the rest of them, so that loops over what remains end.
func (r *reader) fail() { r.at, r.damaged = len(r.b), true }

// int reads a number. Numbers beyond int32 are damage.
func (r *reader) int() int32 {
	if r.at < len(r.b) && r.b[r.at] < 0x80 { // most numbers
		r.at++
		return int32(r.b[r.at-1])
	}
	n, size := binary.Uvarint(r.b[r.at:])
	if size <= 0 || n > 1<<31-1 {
		r.fail()
		return 0
	}
	r.at += size
	return int32(n)
}

// count reads a number of items, each of which takes at least one byte. The bound keeps a damaged number from making
// the caller allocate much memory.
func (r *reader) count() int {
	n := int(r.int())
	if n > len(r.b)-r.at {
		r.fail()
		return 0
	}
	return n
}

// text reads a text, which is a copy.
func (r *reader) text() string {
	n := r.count()
	r.at += n
	return string(r.b[r.at-n : r.at])
}

// skipText skips a text without a copy.
func (r *reader) skipText() { r.at += r.count() }

// begin reads the version of the form.
func (r *reader) begin() {
	if r.int() != form {
		r.fail()
	}
}

// versions reads the served models; the first is nil.
func (r *reader) versions() []*string {
	all := make([]*string, 1, 4)
	for range r.count() {
		all = append(all, new(r.text()))
	}
	return all
}

// version returns the version with number n; 0 is nil, not reported.
func version(all []*string, n int32, r *reader) *string {
	if int(n) >= len(all) {
		r.fail()
		return nil
	}
	return all[n]
}

// brandSum reads a sum, whose brand is the difference from the brand before. Nearly always its seven numbers take seven
// bytes.
func (r *reader) brandSum() brandSum {
	if len(r.b)-r.at >= 8 {
		n := binary.LittleEndian.Uint64(r.b[r.at:])
		// No byte of the seven continues a varint, so each byte is a number.
		if n&0x80808080808080 == 0 {
			r.at += 7
			return brandSum{
				brand: int32(n & 0x7f), mentioned: int32(n >> 8 & 0x7f), mentions: int32(n >> 16 & 0x7f), first: int32(n >> 24 & 0x7f),
				positions: int32(n >> 32 & 0x7f), cited: int32(n >> 40 & 0x7f), pages: int32(n >> 48 & 0x7f),
			}
		}
	}
	return brandSum{
		brand: r.int(), mentioned: r.int(), mentions: r.int(), first: r.int(), positions: r.int(), cited: r.int(), pages: r.int(),
	}
}

// end returns an error if the bytes were damaged, or if some were not read.
func (r *reader) end() error {
	if r.damaged || r.at < len(r.b) {
		return errDamaged
	}
	return nil
}

// eachCell calls f with each cell of the column cells of a run that has n cells. The cell is valid until f returns.
func eachCell(column []byte, n int, f func(*cell)) error {
	r := &reader{b: column}
	r.begin()
	all := r.versions()
	// One cell is used for all, with its list of brands, to save allocations.
	var c cell
	for range r.count() {
		c.no += r.int()
		c.version = version(all, r.int(), r)
		c.ok, c.empty, c.truncated, c.failed, c.known, c.pages = r.int(), r.int(), r.int(), r.int(), r.int(), r.int()
		sums, brand := c.brands[:0], int32(0)
		for range r.count() {
			s := r.brandSum()
			s.brand += brand
			brand = s.brand
			sums = append(sums, s)
		}
		c.brands = sums
		// f may use the number as an index.
		if c.no < 0 || int(c.no) >= n {
			r.fail()
		}
		if r.damaged {
			break
		}
		f(&c)
	}
	return r.end()
}

// An encodedSource is a source in the encoding of the column sources. Equal sources have equal bytes.
type encodedSource []byte

func (e encodedSource) decode() source {
	r := &reader{b: e}
	return source{r.text(), r.int()}
}

// A sourceDecoder decodes columns one after the other. It reuses its memory.
type sourceDecoder struct {
	sources []encodedSource
	cell    sourceCell
}

// decode calls begin with the sources of the column sources, and then f with each cell, which is valid until f returns.
func (d *sourceDecoder) decode(column []byte, begin func([]encodedSource), f func(*sourceCell)) error {
	r := &reader{b: column}
	r.begin()
	d.sources = d.sources[:0]
	for range r.count() {
		from := r.at
		r.skipText()
		r.int()
		d.sources = append(d.sources, column[from:r.at])
	}
	// Cells refer to the sources by their index in this list.
	begin(d.sources)
	c := &d.cell
	// The decoder was used for another column.
	c.no = 0
	for range r.count() {
		c.no += r.int()
		c.pages, c.gapPages = r.int(), r.int()
		sums := c.sources[:0]
		for range r.count() {
			v := r.int()
			// A source that is cited once has all its sums in the low bits of v; see encodeSources.
			s := sourceSum{source: v >> 2, answers: 1, pages: 1, gapAnswers: v & 1, gap: v & 1}
			if v&manyCitations != 0 {
				s.answers, s.pages, s.gapAnswers, s.gap = r.int(), r.int(), r.int(), r.int()
			}
			if int(s.source) >= len(d.sources) {
				return errDamaged
			}
			sums = append(sums, s)
		}
		c.sources = sums
		if r.damaged {
			break
		}
		f(c)
	}
	return r.end()
}

// decodeFacts returns the facts of the column facts.
func decodeFacts(column []byte) ([]Fact, error) {
	r := &reader{b: column}
	r.begin()
	all := r.versions()
	pages := make([]Page, 0, 16)
	for range r.count() {
		p := Page{Key: r.text()}
		// See encodeFacts for the low bit.
		owner := r.int()
		p.Owner, p.Host = owner>>1, hostOfKey(p.Key)
		if owner&1 != 0 {
			p.Host = r.text()
		}
		pages = append(pages, p)
	}
	n := r.count()
	facts := make([]Fact, 0, n)
	ordinal, next := int32(0), int32(0)
	for range n {
		ordinal += r.int()
		head := r.int()
		// The bits of head are documented in encodeFacts.
		f := Fact{Ordinal: ordinal, Status: Status(head >> 1 & 3), Known: head&1 != 0, Version: version(all, head>>3, r)}
		if f.Status == OK {
			brand := int32(0)
			for range r.count() {
				brand += r.int()
				mentions := r.int()
				f.Brands = append(f.Brands, BrandFact{
					Brand: brand, Mentions: mentions >> 3, Flags: match.Flags(mentions & 7), Position: r.int(), Citations: r.int(),
				})
			}
			for range r.count() {
				at := next - r.int()
				if at < 0 || int(at) >= len(pages) {
					return nil, errDamaged
				}
				if at == next {
					next++
				}
				f.Pages = append(f.Pages, pages[at])
			}
		}
		facts = append(facts, f)
	}
	return facts, r.end()
}
