package match

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostileParts are repeated to make texts for which a careless scanner takes quadratic time.
var hostileParts = []string{
	"a", "中", " ", "\n", "\r", "*", "_", "`", "``a", "~", "[", "]", "<", "&", "!", "(", "|", "\\", "#", "- ", "> ", "1. ", ".", ":", "\u0301",
	"a@", "a@b", "a.", "a.co ", "a.co.", "a.co/", "www.a", "http://a) ", "é.", "ü.рф ", "%", "+",
	"<a", "<a \"", "<a '\"", "<a \"'", "<ab:", "<!-- -->", "<think>", "</think>", "<think>x</think>", "<script ", "</script", "\ue200", "\ue200\ue201",
	"[a](", "[a](<", "[](a \"", "](a (", "[](a)b](", "![a](b)", "[a](b)", "[^a]", "[a]: b\n", "[a][", "[a][b]", "&amp;", "&#x1;", "【", "【†", "【†】",
	"a|\n", "|-|\n", "```\n", "```a\n> ", "* - _ ", "- - * ", "\u1100\u1161\u11a8", "각", "i could not find ", "a but ", "abc & ", "a-a-",
	"sources\n\n", "- [a](b)\n", "sources\n\n[a](b)\n\n", "\\*", "[a.co](b)", "''", "<p>",
}

// TestTimeIsLinear compares the processor time of a text with the time of one eight times as long. If it were quadratic,
// the ratio would be 64.
func TestTimeIsLinear(t *testing.T) {
	m := Compile(append(benchmarkBrands(),
		Brand{ID: "x", Name: "中", Aliases: []string{"中中中", "aaaa", "a.b.co", "a & b", "abc & abc & abc"}, Exclude: []string{"中中"}, Domains: []string{"co"}},
		Brand{ID: "y", Name: "a-a-a", Domains: []string{"a.co"}}))
	q := m.Question("a a a a a but i could not find a")
	check := func(name string, short, long string) {
		t.Helper()
		ratio := 0.0
		for range 5 { // a garbage collection may help with the work
			a, b := threadTime(func() { m.Match(Answer{Text: short, Question: q}) }), threadTime(func() { m.Match(Answer{Text: long, Question: q}) })
			if ratio = float64(b) / float64(a+time.Millisecond); ratio < 24 {
				return
			}
		}
		t.Errorf("%.40q: an eightfold text takes %.0f times as long", name, ratio)
	}
	for _, part := range hostileParts {
		n := 1 << 14 / len(part)
		check(part, strings.Repeat(part, n), strings.Repeat(part, 8*n))
	}
	var runs strings.Builder // of all lengths, none of which has a partner
	for n := 1; n < 1000; n++ {
		runs.WriteString(strings.Repeat("`", n) + " ")
	}
	check("runs", runs.String()[:runs.Len()/8], runs.String())
	for _, c := range readCases(t) {
		if c.Build != nil {
			check(c.ID, c.build(6), c.build(48))
		}
	}
}

// threadTime returns the processor time of f, which does not depend on what else the machine does.
func threadTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const thread = 1 // RUSAGE_THREAD
	var before, after syscall.Rusage
	if err := syscall.Getrusage(thread, &before); err != nil {
		panic(err)
	}
	f()
	if err := syscall.Getrusage(thread, &after); err != nil {
		panic(err)
	}
	return time.Duration(after.Utime.Nano() - before.Utime.Nano())
}
