package match

import (
	"cmp"
	"testing"
	"unicode"

	"aiv/store/storetest"
)

// TestDecompositionEqualsPostgreSQL compares decompositions with PostgreSQL's normalize, for each character that M4 names.
func TestDecompositionEqualsPostgreSQL(t *testing.T) {
	t.Parallel()
	var want []string
	var points []rune
	for _, r := range [][2]rune{{0xaa, 0x24f}, {0x370, 0x4ff}, {0x1e00, 0x1fff}, {0x3041, 0x30ff}, {0x2071, 0x209c}, {0x2100, 0x214f},
		{0x24b6, 0x24e9}, {0xfb00, 0xfb06}, {0xff01, 0xff9f}, {0x1d400, 0x1d7ff}} {
		for p := r[0]; p <= r[1]; p++ {
			if hasDecomposition(p) {
				points = append(points, p)
			}
		}
	}
	storetest.Must(t, storetest.New(t).QueryRow(t.Context(),
		`SELECT array_agg(normalize(chr(point), NFKD) ORDER BY n) FROM unnest($1::int[]) WITH ORDINALITY AS points (point, n)`,
		points).Scan(&want))
	if len(points) < 2000 {
		t.Errorf("only %d characters are decomposed", len(points))
	}
	for i, p := range points {
		if got := cmp.Or(decompose(p), string(p)); got != want[i] {
			t.Errorf("%U decomposes to %+q, want %+q", p, got, want[i])
		}
	}
}

// TestUnicodeVersion fails when Go has the tables of another version than AIVM-1.0 names: then results may change.
func TestUnicodeVersion(t *testing.T) {
	t.Parallel()
	if unicode.Version != "15.0.0" {
		t.Errorf("package unicode has the tables of Unicode %s, AIVM-1.0 is defined by 15.0", unicode.Version)
	}
}
