package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestFaultQueueFull: over TLS, more requests arrive than may wait, many with a large body, while the database is
// blocked again and again. The excess is shed, waiting requests are served, and the admin listener responds.
func TestFaultQueueFull(t *testing.T) {
	connections, pause := 100, 50*time.Millisecond // of a client that was shed
	if storetest.Long() {
		connections, pause = 2000, 0
	}
	url, pool, _, key := databaseOfCustomer(t, 1_000_000)
	dir := t.TempDir()
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, dir, 1))
	p := startServe(t, url, "-tls-cert", dir+"/crt", "-tls-key", dir+"/key", "-waiting", "50")
	base := strings.Replace(p.base, "http:", "https:", 1)

	var stop atomic.Bool
	var read, written, shed, unavailable atomic.Int64
	ask := func(client *http.Client, i int) {
		method, address, body := "GET", base+"?path=/v1/me", ""
		if i%10 == 0 { // as much as net/http reads after an early response
			method, address, body = "POST", base, strings.Repeat(" ", 200<<10)+testRun
		}
		r, err := http.NewRequest(method, address, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+key.Key)
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", fmt.Sprint("full-", i))
		}
		w, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer w.Body.Close()
		text, _ := io.ReadAll(w.Body)
		switch {
		case w.StatusCode == 200:
			read.Add(1)
		case w.StatusCode == 202:
			written.Add(1)
		case w.StatusCode != 503 || w.Header.Get("Retry-After") == "":
			t.Errorf("got %d %s", w.StatusCode, text)
		case bytes.Contains(text, []byte(`"overloaded"`)):
			shed.Add(1)
			<-time.After(pause)
		case bytes.Contains(text, []byte(`"unavailable"`)): // waited for the lock in vain
			unavailable.Add(1)
		default:
			t.Errorf("got %d %s", w.StatusCode, text)
		}
	}
	hold := func() (release func()) {
		tx, err := pool.Begin(t.Context())
		must(t, err)
		if _, err := tx.Exec(t.Context(), `LOCK TABLE api_rate_limit_buckets IN EXCLUSIVE MODE`); err != nil {
			t.Fatal(err)
		}
		return func() { tx.Rollback(context.Background()) }
	}
	secure := func() *http.Client {
		return &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots},
		}}
	}
	first := secure()
	ask(first, 1)
	stopWatching := make(chan struct{})
	var watched sync.WaitGroup
	var slowestAdmin time.Duration
	watched.Go(func() { slowestAdmin = p.watchAdmin(t, stopWatching) })

	var clients sync.WaitGroup
	for c := range connections {
		clients.Go(func() {
			client := secure()
			defer client.CloseIdleConnections()
			for n := 0; !stop.Load(); n++ {
				ask(client, n*connections+c)
			}
		})
	}
	more := func(what string, n *atomic.Int64) {
		t.Helper()
		before := n.Load()
		storetest.Eventually(t, what, func() bool { return n.Load() > before })
	}
	for began, rounds := time.Now(), 0; rounds < 2 || storetest.Long() && time.Since(began) < time.Minute; rounds++ {
		release := hold()
		more("a request is shed", &shed)
		if storetest.Long() { // for less than a statement waits for a lock
			<-time.After(2 * time.Second)
		}
		release()
		more("a request that waited is read", &read)
		more("a run is written", &written)
	}
	stop.Store(true)
	clients.Wait()
	isNormalAgain(t, func() bool {
		before := read.Load()
		ask(first, 1)
		return read.Load() > before
	})
	close(stopWatching)
	watched.Wait()
	memory := p.memory(t)
	if memory > maxMemory {
		t.Errorf("the process used %d MiB of memory", memory>>20)
	}
	if storetest.Long() && slowestAdmin > 5*time.Second { // as seen by this process, which has the clients to run
		t.Errorf("the admin listener took %v", slowestAdmin)
	}
	t.Logf("%d connections, 50 may wait: %d read, %d written, %d shed, %d refused behind the lock; memory %d MiB",
		connections, read.Load(), written.Load(), shed.Load(), unavailable.Load(), memory>>20)
	t.Logf("the admin listener answered within %v", slowestAdmin)
}
