package gateway_test

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"aiv/gateway"
	"aiv/store"
)

// TestFaultClock: the clock of a gateway is hours off, and its sessions use a time zone with daylight saving time.
// Windows, the times of runs and their order follow the clock of the database.
func TestFaultClock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var made []string
	for _, off := range []time.Duration{6 * time.Hour, -6 * time.Hour, 0} {
		var err error
		f.serves, err = store.OpenHot(t.Context(), f.url+"&TimeZone=America/St_Johns", 4)
		must(t, err)
		defer f.serves.Close()
		f.newID = func() store.ID { // ids are the only values that a gateway makes from its clock
			id := store.NewID()
			ms := uint64(time.Now().Add(off).UnixMilli())
			binary.BigEndian.PutUint32(id[:4], uint32(ms>>16))
			binary.BigEndian.PutUint16(id[4:6], uint16(ms))
			return id
		}
		server := httptest.NewServer(f.gateway(io.Discard))
		defer server.Close()
		var now time.Time
		must(t, f.pool.QueryRow(t.Context(), `SELECT now()`).Scan(&now))

		w, body := f.ask(t, server.URL, "POST", "/v1/runs", "clock "+off.String())
		var run struct {
			ID string `json:"id"`
		}
		must(t, json.Unmarshal(body, &run))
		made = append([]string{run.ID}, made...)
		reset, err := strconv.ParseInt(w.Header.Get("X-RateLimit-Reset"), 10, 64)
		must(t, err)
		var after time.Time
		must(t, f.pool.QueryRow(t.Context(), `SELECT now()`).Scan(&after))
		if end := time.Unix(reset, 0); end.After(after.Add(61*time.Second)) || end.Before(now) || reset%60 != 0 {
			t.Errorf("%v off: the window ends at %v, and it is between %v and %v", off, end, now, after)
		}
		_, body = f.ask(t, server.URL, "GET", "/v1/runs?limit=3", "")
		var list struct {
			Data []struct {
				ID        string    `json:"id"`
				CreatedAt time.Time `json:"created_at"`
			} `json:"data"`
		}
		must(t, json.Unmarshal(body, &list))
		for i := range made {
			if list.Data[i].ID != made[i] {
				t.Errorf("%v off: run %d of the list is %s, want %s: newest first", off, i, list.Data[i].ID, made[i])
			}
		}
		at := list.Data[0].CreatedAt
		if at.Before(now.Add(-time.Second)) || at.After(after) || !strings.Contains(string(body), `Z"`) {
			t.Errorf("%v off: the run was created at %v, and it was between %v and %v", off, at, now, after)
		}
	}
	// The response of a full window has its end by the clock of the database.
	server := httptest.NewServer(f.gateway(io.Discard))
	defer server.Close()
	for {
		w, _ := f.askAs(t, server.URL, "limited", "GET", "/v1/me", "")
		if w.StatusCode != http.StatusTooManyRequests {
			continue
		}
		after, err := strconv.Atoi(w.Header.Get("Retry-After"))
		must(t, err)
		if after < 1 || after > 60 {
			t.Errorf("Retry-After: %d", after)
		}
		return
	}
}

func (f *fixture) ask(t *testing.T, url, method, path, idempotencyKey string) (*http.Response, []byte) {
	t.Helper()
	return f.askAs(t, url, "full", method, path, strings.ReplaceAll(idempotencyKey, " ", "-"))
}

// askAs sends a request at its plain address. With an idempotency key it creates a run.
func (f *fixture) askAs(t *testing.T, url, key, method, path, idempotencyKey string) (*http.Response, []byte) {
	t.Helper()
	body := ""
	if idempotencyKey != "" {
		body = `{"model_ids":["golden/all"],"question_ids":["golden-q1"],"repetitions":1,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url+gateway.Base+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+f.keys[key])
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", idempotencyKey)
	w, err := http.DefaultClient.Do(r)
	must(t, err)
	defer w.Body.Close()
	answer, err := io.ReadAll(w.Body)
	must(t, err)
	if w.StatusCode >= 400 && w.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("%s %s: %d %s", method, path, w.StatusCode, answer)
	}
	return w, answer
}
