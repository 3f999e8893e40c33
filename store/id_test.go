package store_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"
)

func TestTypeID(t *testing.T) {
	for _, test := range []struct{ uuid, text string }{
		// Of the vectors of https://github.com/jetify-com/typeid/blob/main/spec/valid.yml.
		{"00000000-0000-0000-0000-000000000000", "prefix_00000000000000000000000000"},
		{"ffffffff-ffff-ffff-ffff-ffffffffffff", "prefix_7zzzzzzzzzzzzzzzzzzzzzzzzz"},
		{"0110c853-1d09-52d8-d73e-1194e95b5f19", "prefix_0123456789abcdefghjkmnpqrs"},
		{"01890a5d-ac96-774b-bcce-b302099a8057", "run_01h455vb4pex5vsknk084sn02q"},
	} {
		prefix, _, _ := strings.Cut(test.text, "_")
		id, err := store.ParseID(prefix, test.text)
		must(t, err)
		equal(t, test.uuid, id.UUID(), test.text)
		equal(t, test.text, id.Text(prefix), test.uuid)
		equal(t, "id "+test.text, string(id.AppendText([]byte("id "), prefix)), test.uuid)
	}
}

func TestParseIDRefuses(t *testing.T) {
	for _, text := range []string{
		"", "run_",
		"job_01h455vb4pex5vsknk084sn02q", "01h455vb4pex5vsknk084sn02q", "run-01h455vb4pex5vsknk084sn02q",
		"run_01H455VB4PEX5VSKNK084SN02Q",
		"run_01h455vb4pex5vsknk084sn02", "run_01h455vb4pex5vsknk084sn02q0",
		"run_8zzzzzzzzzzzzzzzzzzzzzzzzz",                                   // more than 128 bits
		"run_01h455vb4pex5vsknk084sn0i0", "run_01h455vb4pex5vsknk084sn0o0", // which Crockford reads as 1 and 0
		"run_01h455vb4pex5vsknk084sn0\u00e9",
	} {
		id, err := store.ParseID("run", text)
		if sent := strings.TrimPrefix(text, "run_"); err == nil || sent != "" && strings.Contains(err.Error(), sent) {
			t.Errorf("%q: got %x and %v, want an error that does not repeat the text", text, id, err)
		}
	}
}

// TestNewID: ids differ, are UUIDs of version 7, and begin with the time in milliseconds.
func TestNewID(t *testing.T) {
	seen := make(map[store.ID]bool)
	for last := time.Now().UnixMilli(); len(seen) < 2000; {
		id := store.NewID()
		version, variant, ms := id[6]>>4, id[8]>>6, int64(binary.BigEndian.Uint64(id[:8])>>16)
		if now := time.Now().UnixMilli(); version != 7 || variant != 0b10 || ms < last || ms > now || seen[id] {
			t.Fatalf("%x: version %d, variant %b, time %d, made between %d and %d; made before: %v",
				id, version, variant, ms, last, now, seen[id])
		}
		seen[id], last = true, ms
	}
}

// TestIDInPostgreSQL: by bytes, by text and in PostgreSQL, ids have the same order. An absent id is NULL.
func TestIDInPostgreSQL(t *testing.T) {
	t.Parallel()
	pool := open(t, storetest.Empty(t))
	ids := make([]store.ID, 200)
	for i := range ids {
		ids[i] = store.NewID()
		ids[i][0] = byte(i * 37) // far apart, also beyond the sign bit
	}
	sorted := storetest.Value[[]store.ID](t, pool, `SELECT array_agg(u ORDER BY u) FROM unnest($1::uuid[]) u`, ids)
	equal(t, slices.SortedFunc(slices.Values(ids), store.ID.Compare), sorted, "PostgreSQL's order")
	if !slices.IsSortedFunc(sorted, func(a, b store.ID) int { return strings.Compare(a.Text("x"), b.Text("x")) }) {
		t.Error("the texts have another order")
	}
	equal(t, (*store.ID)(nil), storetest.Value[*store.ID](t, pool, `SELECT $1::uuid`, (*store.ID)(nil)), "an absent id")
}
