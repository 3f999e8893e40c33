package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"
)

// uuid is an id from its hexadecimal text.
func uuid(t *testing.T, text string) store.ID {
	t.Helper()
	var u pgtype.UUID
	if err := u.Scan(text); err != nil {
		t.Fatal(err)
	}
	return u.Bytes
}

func TestTypeID(t *testing.T) {
	for _, test := range []struct{ uuid, prefix, want string }{
		// The vectors of https://github.com/jetify-com/typeid/blob/main/spec/valid.yml.
		{"00000000-0000-0000-0000-000000000000", "prefix", "prefix_00000000000000000000000000"},
		{"00000000-0000-0000-0000-000000000001", "prefix", "prefix_00000000000000000000000001"},
		{"00000000-0000-0000-0000-00000000000a", "prefix", "prefix_0000000000000000000000000a"},
		{"00000000-0000-0000-0000-000000000010", "prefix", "prefix_0000000000000000000000000g"},
		{"00000000-0000-0000-0000-000000000020", "prefix", "prefix_00000000000000000000000010"},
		{"ffffffff-ffff-ffff-ffff-ffffffffffff", "prefix", "prefix_7zzzzzzzzzzzzzzzzzzzzzzzzz"},
		{"0110c853-1d09-52d8-d73e-1194e95b5f19", "prefix", "prefix_0123456789abcdefghjkmnpqrs"},
		{"01890a5d-ac96-774b-bcce-b302099a8057", "prefix", "prefix_01h455vb4pex5vsknk084sn02q"},
		{"01890a5d-ac96-774b-bcce-b302099a8057", "run", "run_01h455vb4pex5vsknk084sn02q"},
	} {
		id := uuid(t, test.uuid)
		if got := id.Text(test.prefix); got != test.want {
			t.Errorf("%s: got %s, want %s", test.uuid, got, test.want)
		}
		if got, err := store.ParseID(test.prefix, test.want); err != nil || got != id {
			t.Errorf("%s: got %x, %v, want %s", test.want, got, err, test.uuid)
		}
		if got, want := string(id.AppendText([]byte("id "), test.prefix)), "id "+test.want; got != want {
			t.Errorf("appended: got %q, want %q", got, want)
		}
	}
}

func TestParseIDRefuses(t *testing.T) {
	const good = "run_01h455vb4pex5vsknk084sn02q"
	for _, test := range []struct{ name, text string }{
		{"nothing", ""},
		{"only the prefix", "run_"},
		{"another type", "job_01h455vb4pex5vsknk084sn02q"},
		{"no type", "01h455vb4pex5vsknk084sn02q"},
		{"a type of another length", "runs_01h455vb4pex5vsknk084sn02q"},
		{"another separator", "run-01h455vb4pex5vsknk084sn02q"},
		{"a type in upper case", "RUN_01h455vb4pex5vsknk084sn02q"},
		{"upper case", "run_01H455VB4PEX5VSKNK084SN02Q"},
		{"one character too few", good[:len(good)-1]},
		{"one character too many", good + "0"},
		{"more than 128 bits", "run_8zzzzzzzzzzzzzzzzzzzzzzzzz"},
		{"i, which Crockford reads as 1", "run_01h455vb4pex5vsknk084sn0i0"},
		{"l, which Crockford reads as 1", "run_01h455vb4pex5vsknk084sn0l0"},
		{"o, which Crockford reads as 0", "run_01h455vb4pex5vsknk084sn0o0"},
		{"u", "run_01h455vb4pex5vsknk084sn0u0"},
		{"a hyphen", "run_01h455vb4pex5vsknk084sn0-0"},
		{"a space at the end", "run_01h455vb4pex5vsknk084sn02 "},
		{"not ASCII", "run_01h455vb4pex5vsknk084sn0\u00e9"},
		{"a UUID", "run_01890a5d-ac96-774b-bcce-b302099a8057"},
	} {
		id, err := store.ParseID("run", test.text)
		if err == nil {
			t.Errorf("%s: %q is taken as %x", test.name, test.text, id)
		} else if test.text != "" && strings.Contains(err.Error(), strings.TrimPrefix(test.text, "run_")) && len(test.text) > len("run_") {
			t.Errorf("%s: the error repeats what was sent: %v", test.name, err)
		}
	}
}

func TestNewID(t *testing.T) {
	const n = 2000
	before := time.Now().UnixMilli()
	ids := make([]store.ID, n)
	seen := make(map[store.ID]bool, n)
	for i := range ids {
		ids[i] = store.NewID()
		seen[ids[i]] = true
	}
	after := time.Now().UnixMilli()
	if len(seen) != n {
		t.Errorf("%d of %d ids are different", len(seen), n)
	}
	last := int64(0)
	for _, id := range ids {
		if version, variant := id[6]>>4, id[8]>>6; version != 7 || variant != 0b10 {
			t.Fatalf("%x: version %d, variant %b", id, version, variant)
		}
		ms := int64(0)
		for _, b := range id[:6] {
			ms = ms<<8 | int64(b)
		}
		if ms < before || ms > after || ms < last {
			t.Fatalf("%x: its time is %d, made between %d and %d, after %d", id, ms, before, after, last)
		}
		last = ms
		if back, err := store.ParseID("run", id.Text("run")); err != nil || back != id {
			t.Fatalf("%x came back as %x, %v", id, back, err)
		}
	}
}

// TestIDOrder: by bytes, by text and in PostgreSQL, ids have the same order.
func TestIDOrder(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	ids := make([]store.ID, 200)
	for i := range ids {
		ids[i] = store.NewID()
		ids[i][0] = byte(i * 37) // far apart, also beyond the sign bit
	}
	rows, err := pool.Query(t.Context(), `SELECT u FROM unnest($1::uuid[]) u ORDER BY u`, ids)
	if err != nil {
		t.Fatal(err)
	}
	var got []store.ID
	for rows.Next() {
		var id store.ID
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	want := slices.SortedFunc(slices.Values(ids), store.ID.Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PostgreSQL's order (-want +got):\n%s", diff)
	}
	if !slices.IsSortedFunc(got, func(a, b store.ID) int { return strings.Compare(a.Text("x"), b.Text("x")) }) {
		t.Error("the texts have another order")
	}
}

func TestIDAndNull(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	var id store.ID
	if err := pool.QueryRow(t.Context(), `SELECT NULL::uuid`).Scan(&id); err == nil {
		t.Errorf("NULL is read as %x", id)
	}
	absent := &id
	if err := pool.QueryRow(t.Context(), `SELECT $1::uuid`, (*store.ID)(nil)).Scan(&absent); err != nil || absent != nil {
		t.Errorf("an absent id: got %v, %v", absent, err)
	}
	want := store.NewID()
	if err := pool.QueryRow(t.Context(), `SELECT $1::uuid`, &want).Scan(&absent); err != nil || absent == nil || *absent != want {
		t.Errorf("a present id: got %v, %v, want %x", absent, err, want)
	}
}
