package gateway

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/gateway/worker"
	"aiv/store"
	"aiv/store/storetest"
)

// bare returns a gateway that has only what the configuration names.
func bare(cfg Config) *Gateway {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.NewID, cfg.Metrics = store.NewID, NewMetrics()
	return New(cfg)
}

// TestGuessingIsSlow: every 401 is delayed, so that a connection that tries keys gets at most ten responses a second.
func TestGuessingIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 100 * time.Millisecond
		for path, h := range map[string]http.Handler{Base + "/v1/me": bare(Config{Delay: delay}), worker.Base + "/claim": worker.New(
			worker.Config{Delay: delay, NewID: store.NewID, Log: slog.New(slog.DiscardHandler), Metrics: worker.NewMetrics()})} {
			for _, key := range []string{"", "Bearer x"} {
				r, w, began := httptest.NewRequest("POST", path, nil), httptest.NewRecorder(), time.Now()
				r.Header.Set("Authorization", key)
				if h.ServeHTTP(w, r); w.Code != http.StatusUnauthorized || time.Since(began) != delay {
					t.Errorf("%s with %q: got %d after %v, want 401 after %v", path, key, w.Code, time.Since(began), delay)
				}
			}
		}
	})
}

// TestDeadlines: requests share deadlines, and each has nearly the timeout for its calls.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, shared := bare(Config{Timeout: 32 * time.Second}), make(map[*sharedDeadline]bool)
		for range 100 {
			if at, _ := g.deadline(&exchange{}).Deadline(); time.Until(at) < 31*time.Second || time.Until(at) > 32*time.Second {
				t.Errorf("a request has %v, want 31 to 32 s", time.Until(at))
			}
			shared[g.deadlines.Load()] = true
			time.Sleep(300 * time.Millisecond)
		}
		storetest.Equal(t, 25, len(shared), "deadlines of 100 requests in 30 s")
	})
}

// TestPanicIsAnInternalError: a panic is an internal error. Nothing is added to a response that has begun.
func TestPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	g := bare(Config{Log: slog.New(slog.NewJSONHandler(&log, nil))}) // without Limits
	w := ask(g, "aiv_live_00000000000000000000000000000000000000000003GcTia", "GET", "/v1/me", "")
	const want = `"code":"internal_error","detail":"The error was logged`
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), want) {
		t.Errorf("before the response: got %d, %s", w.Code, w.Body)
	}
	writes := 0
	g.ServeHTTP(hookedWriter{httptest.NewRecorder(), func() {
		if writes++; writes == 1 {
			panic("in a write")
		}
	}}, httptest.NewRequest("GET", Base+"/docs", nil))
	if n := strings.Count(log.String(), "panic: "); writes != 1 || n != 2 {
		t.Errorf("in the response: %d writes, want 1; %d panics are logged, want 2:\n%s", writes, n, log.String())
	}
}

// TestPagesDoNotShareMemory: the buffer of a page that was sent is used again, and holds no page that is cached.
func TestPagesDoNotShareMemory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway()
	f.run(t, g, f.keys["full"])
	lists := []string{"/v1/catalog/models", "/v1/runs", "/v1/catalog/questions", "/v1/catalog/models?limit=1", "/v1/alerts"}
	page := func(n int) string { return ask(g, f.keys["full"], "GET", lists[n%len(lists)], "").Body.String() }
	var want []string
	for n := range lists {
		want = append(want, page(n))
	}
	storetest.AtOnce(8, func(int) {
		for n := range 10 * len(lists) {
			if got := page(n); got != want[n%len(lists)] {
				t.Errorf("GET %s: got %s, want %s", lists[n%len(lists)], got, want[n%len(lists)])
			}
		}
	})
}

// TestFaultClock: the clock of a gateway is hours off, and its sessions use a time zone with daylight saving time.
// Windows, the times of runs and their order follow the clock of the database.
func TestFaultClock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.serves = storetest.Open(t, f.url+"&TimeZone=America/St_Johns", store.OpenHot, 4)
	now := func() time.Time { return storetest.Value[time.Time](t, f.pool, `SELECT clock_timestamp()`) }
	var oldestFirst []string
	for _, off := range []time.Duration{6 * time.Hour, -6 * time.Hour, 0} {
		f.newID = func() store.ID { // ids are the only values that a gateway makes from its clock
			id := store.NewID()
			ms := uint64(time.Now().Add(off).UnixMilli())
			binary.BigEndian.PutUint32(id[:4], uint32(ms>>16))
			binary.BigEndian.PutUint16(id[4:6], uint16(ms))
			return id
		}
		g := f.gateway()
		before, header := now(), "X-RateLimit-Reset" // in this spelling
		oldestFirst = append(oldestFirst, f.run(t, g, f.keys["full"]))
		w := ask(g, f.keys["full"], "GET", "/v1/runs?limit=3", "")
		after := now()
		var list listPage[struct {
			ID        string
			CreatedAt time.Time `json:"created_at"`
		}]
		must(t, json.Unmarshal(w.Body.Bytes(), &list))
		for i, id := range oldestFirst {
			if got := list.Data[len(oldestFirst)-1-i].ID; got != id {
				t.Errorf("%v off: in the place of run %d of %s is %s", off, i, oldestFirst, got)
			}
		}
		if at := list.Data[0].CreatedAt; at.Before(before) || at.After(after) || !strings.Contains(w.Body.String(), `Z"`) {
			t.Errorf("%v off: the run was created at %v, and it was between %v and %v", off, at, before, after)
		}
		reset, err := strconv.ParseInt(w.Header()[header][0], 10, 64)
		if end := time.Unix(reset, 0); err != nil || end.Before(before) || end.After(after.Add(time.Minute)) || reset%60 != 0 {
			t.Errorf("%v off: the window ends at %v, %v, and it is between %v and %v", off, end, err, before, after)
		}
	}
}
