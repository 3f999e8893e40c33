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

// TestFaultQueueFull: over TLS, more requests arrive than may wait, many with a large body, while the database is blocked
// again and again. The excess is shed, waiting requests are served, and the admin listener responds.
func TestFaultQueueFull(t *testing.T) {
	connections, lasting, held, pause := 100, time.Second, 300*time.Millisecond, 50*time.Millisecond // pause: of a client that was shed
	if storetest.Long() {
		connections, lasting, held, pause = 2000, time.Minute, 2*time.Second, 0
	}
	url, pool := database(t)
	_, key := customer(t, url, 1_000_000)
	dir := t.TempDir()
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, dir, 1))
	p := startServe(t, url, "-tls-cert", dir+"/crt", "-tls-key", dir+"/key", "-waiting", "50")
	base := strings.Replace(p.base, "http:", "https:", 1)

	var stop atomic.Bool
	var statuses [600]atomic.Int64
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
		statuses[w.StatusCode].Add(1)
		switch {
		case w.StatusCode == 200 || w.StatusCode == 202:
		case w.StatusCode == 503 && bytes.Contains(text, []byte(`"overloaded"`)) && w.Header.Get("Retry-After") != "":
			<-time.After(pause)
		default:
			t.Errorf("got %d %s", w.StatusCode, text)
		}
	}
	hold := func() (release func()) {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `SELECT FROM api_rate_limit_buckets FOR UPDATE`); err != nil {
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
	// Held up for a while, again and again, and for less than a statement waits for a lock.
	began := time.Now()
	for statuses[503].Load() == 0 || time.Since(began) < lasting {
		release := hold()
		<-time.After(held)
		release()
		<-time.After(500 * time.Millisecond)
		if time.Since(began) > lasting+20*time.Second {
			break
		}
	}
	stop.Store(true)
	clients.Wait()
	after := time.Now()
	for {
		sent := time.Now()
		if ask(first, 1); time.Since(sent) < 200*time.Millisecond {
			break
		}
		if time.Since(after) > 5*time.Second {
			t.Fatal("service is not normal 5 s later")
		}
	}
	close(stopWatching)
	watched.Wait()
	if statuses[503].Load() == 0 || statuses[200].Load() == 0 || statuses[202].Load() == 0 {
		t.Error("want some of each: shed, read, written")
	}
	memory := p.memory(t)
	if memory > maxMemory {
		t.Errorf("the process used %d MiB of memory", memory>>20)
	}
	if slowestAdmin > 5*time.Second { // as seen by this process, which has the clients to run
		t.Errorf("the admin listener took %v", slowestAdmin)
	}
	t.Logf("%d connections, 50 may wait, for %v: %d read, %d written, %d shed; memory %d MiB; admin within %v",
		connections, time.Since(began).Round(time.Second), statuses[200].Load(), statuses[202].Load(), statuses[503].Load(), memory>>20, slowestAdmin)
}
