// Package match finds what the answer of a model mentions and cites: AIVM-1.0, part 1. It is a pure function of the
// answer's text, its question, its citations and the account's active brands: no database, network, clock, locale
// or random number takes part, so every process computes the same. Time and memory are linear in the input for
// given brands, whatever the text contains. METHODOLOGY.md in package insights explains the rules to customers.
//
//	m := match.Compile(brands)      // once for each revision of the brands
//	q := m.Question(question)       // once for each question
//	r := m.Match(match.Answer{Text: text, Question: q, Citations: citations})
//
// # What is decided, in this order
//
// Hidden spans (hidden.go, M1) are removed: comments, the reasoning of a model, scripts, and the marks by which
// engines refer to sources.
//
// Blocks (blocks.go, definitions.go, M2) are read line by line and split the text into units, which no name, phrase
// or address crosses: paragraphs, headings, items and cells. Fenced code and link definitions are dropped.
//
// Blocks that name no brand (starts.go) are left out, unless the answer may end with a list of sources. This changes no
// result. It makes matching several times as fast.
//
// Inline syntax (inline.go, destinations.go, angles.go, references.go, M2 and M3) decides which characters of a
// unit are visible. It is a subset of CommonMark 0.31 and of GFM, as a reader sees it: emphasis has no width, a
// link is its label.
//
// Addresses (addresses.go, M9) are found in the visible characters: a link becomes a space, a bare host is one
// character. Link labels (labels.go, M10) that are only addresses or note marks are not prose. The list of sources
// (sources.go, M2) at the end of the answer is dropped.
//
// The normal form (normal.go, nfkd.go, M4) of each unit folds case, accents, apostrophes and compatibility forms.
//
// The search (patterns.go, trie.go, search.go, bounds.go, M5 to M8) finds names, aliases, derived variants
// (names.go) and excluded phrases, all at once and with all spellings of their gaps, where their edges are bounds.
//
// Overlaps (overlaps.go, M11) are resolved: an excluded phrase removes what it covers, then the longest occurrence
// wins.
//
// Flags (absence.go, echo.go, M12) mark occurrences that are not counted: the answer says that it knows nothing of
// the name, or repeats the question.
//
// Citations (urls.go, wrappers.go, hostnames.go, owners.go, pages.go, pagekeys.go, M14 and M15) are read,
// unwrapped, assigned to the brand that owns them, and counted once for each page.
//
// # Before brands are saved
//
// [NameKey], [Domain], [DomainKey] and [NormalForm] say what can be saved and in which form, and what is equal.
// [Matcher.Sample] shows what a draft would match.
//
// # Standards
//
//   - CommonMark 0.31: https://spec.commonmark.org/0.31.2/
//   - UAX #15, Unicode Normalization Forms: https://www.unicode.org/reports/tr15/
//   - RFC 3492, Punycode: https://www.rfc-editor.org/rfc/rfc3492
//   - URL Standard: https://url.spec.whatwg.org/
//
// Package unicode has the tables of Unicode 15.0, which the methodology names; [unicode.Version] is tested.
package match
