package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestWebhooksMemory: 100 accounts have events of the largest size to deliver; 70 of their endpoints hang, reset
// connections, fail or respond slowly with a large body. The other 30 get their events, and the process stays within
// its memory.
func TestWebhooksMemory(t *testing.T) {
	t.Parallel()
	const accounts, events, size = 100, 8, 75_000
	url := storetest.URL(t)
	var mu sync.Mutex
	received := make(map[string]bool) // by path and webhook-id
	healthy := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscanf(r.URL.Path, "/%d", &n)
		switch {
		case n < 20:
			<-t.Context().Done()
		case n < 40:
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		case n < 60:
			w.WriteHeader(http.StatusInternalServerError)
		case n < 70:
			for range 1000 {
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				<-time.After(5 * time.Millisecond)
			}
		default:
			if body, err := io.Copy(io.Discard, r.Body); err != nil || body < size {
				t.Errorf("%d bytes, %v", body, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if key := r.URL.Path + r.Header.Get("webhook-id"); !received[key] {
				received[key] = true
				healthy++
			}
		}
	}))
	t.Cleanup(server.Close)
	storetest.Exec(t, open(t, url), fmt.Sprintf(`
INSERT INTO plans (code, features) VALUES ('p', '{api_access}');
INSERT INTO accounts (id, name, plan_code) SELECT md5('a' || n)::uuid, 'a', 'p' FROM generate_series(0, %[1]d - 1) n;
INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events)
  SELECT md5('a' || n)::uuid, md5('e' || n)::uuid, 1, '%[4]s/' || n, '', '{*}' FROM generate_series(0, %[1]d - 1) n;
INSERT INTO events (account_id, id, type, subject_id, data)
  VALUES (md5('a0')::uuid, md5('0v1')::uuid, 'run.completed', md5('r1')::uuid, json_build_object('id', repeat('a', %[3]d)));
-- A copy of the stored data is not compressed again.
INSERT INTO events (account_id, id, type, subject_id, data)
  SELECT md5('a' || n)::uuid, md5(n || 'v' || v)::uuid, 'run.completed', md5('r' || v)::uuid, first.data
  FROM events first, generate_series(0, %[1]d - 1) n, generate_series(1, %[2]d) v WHERE (n, v) <> (0, 1);
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id) SELECT v.account_id, v.id, e.id FROM events v JOIN webhook_endpoints e USING (account_id);
INSERT INTO webhook_queues (account_id, wake_at) SELECT id, now() FROM accounts`, accounts, events, size, server.URL))
	p := startDispatch(t, url, "-webhook-allow-private")
	wait(t, "the healthy endpoints have their events", "true", func() string {
		mu.Lock()
		defer mu.Unlock()
		return fmt.Sprint(healthy == 30*events)
	})
	t.Logf("memory %d MiB", p.memory(t, memoryBound()))
}
