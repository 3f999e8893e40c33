package gateway_test

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/store"
)

// TestFaultClock: the clock of a gateway is hours off, and its sessions use a time zone with daylight saving time.
// Windows, the times of runs and their order follow the clock of the database.
func TestFaultClock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var err error
	f.serves, err = store.OpenHot(t.Context(), f.url+"&TimeZone=America/St_Johns", 4)
	must(t, err)
	t.Cleanup(f.serves.Close)
	now := func() (at time.Time) {
		must(t, f.pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&at))
		return at
	}
	var newestFirst []string
	for _, off := range []time.Duration{6 * time.Hour, -6 * time.Hour, 0} {
		f.newID = func() store.ID { // ids are the only values that a gateway makes from its clock
			id := store.NewID()
			ms := uint64(time.Now().Add(off).UnixMilli())
			binary.BigEndian.PutUint32(id[:4], uint32(ms>>16))
			binary.BigEndian.PutUint16(id[4:6], uint16(ms))
			return id
		}
		g := f.gateway(io.Discard)
		before := now()
		newestFirst = append([]string{f.run(t, g, f.keys["full"])}, newestFirst...)
		w := ask(g, f.keys["full"], "GET", "/v1/runs?limit=3", "")
		after := now()

		var list listPage[struct {
			ID        string
			CreatedAt time.Time `json:"created_at"`
		}]
		must(t, json.Unmarshal(w.Body.Bytes(), &list))
		var got []string
		for _, run := range list.Data[:len(newestFirst)] {
			got = append(got, run.ID)
		}
		if diff := cmp.Diff(newestFirst, got); diff != "" {
			t.Errorf("%v off: runs, newest first (-want +got):\n%s", off, diff)
		}
		at := list.Data[0].CreatedAt
		if at.Before(before) || at.After(after) || !strings.Contains(w.Body.String(), `Z"`) {
			t.Errorf("%v off: the run was created at %v, and it was between %v and %v", off, at, before, after)
		}
		header := "X-RateLimit-Reset" // in this spelling
		reset, err := strconv.ParseInt(w.Header()[header][0], 10, 64)
		must(t, err)
		if end := time.Unix(reset, 0); end.Before(before) || end.After(after.Add(time.Minute)) || reset%60 != 0 {
			t.Errorf("%v off: the window ends at %v, and it is between %v and %v", off, end, before, after)
		}
	}
}
