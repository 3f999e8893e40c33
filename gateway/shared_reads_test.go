package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"aiv/auth"
	"aiv/gateway/request"
	"aiv/limits"
	"aiv/store"
	"aiv/store/batch"
	"aiv/store/storetest"
)

// credentials are two of one account and one of another.
var credentials = []*auth.Credential{{AccountID: store.ID{1}}, {AccountID: store.ID{1}}, {AccountID: store.ID{2}}}

// readerOf returns a request for a page.
func readerOf(credential int, limit string) *exchange {
	return &exchange{logicalRequest: logicalRequest{path: "/v1/events", params: request.Parameters{{Name: "limit", Value: limit}}},
		admission: &limits.Admission{Credential: credentials[credential]}}
}

// TestSharedReads: one read is in progress, and takes the only connection. Requests for the same page then share one read, which
// begins after all of them; other pages, other accounts and other credentials do not share it: they may see other events.
func TestSharedReads(t *testing.T) {
	g := &Gateway{readQueue: newReadQueue(1, 64)}
	hold, begun := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		g.readPage(t.Context(), readerOf(0, "1"), func(context.Context, store.Querier) (page, error) {
			close(begun)
			<-hold
			return page{}, nil
		})
	})
	<-begun
	var reads, wrong atomic.Int32
	request := func(x *exchange, answer string) {
		all.Go(func() {
			p, err := g.readPage(t.Context(), x, func(context.Context, store.Querier) (page, error) {
				reads.Add(1)
				return page{body: []byte(answer)}, nil
			})
			if err != nil || string(p.body) != answer {
				wrong.Add(1)
			}
		})
	}
	for range 7 {
		request(readerOf(0, "1"), "the same page again")
		request(readerOf(2, "1"), "another account's page")
	}
	request(readerOf(0, "2"), "another page")
	request(readerOf(1, "1"), "the page of another credential")
	plain, later := readerOf(0, "1"), readerOf(0, "1")
	plain.plain, later.admission.WALPosition = true, "0/1"
	request(plain, "the page with another form of link")
	request(later, "the page after another commit")
	tool, cut := readerOf(0, "1"), readerOf(0, "1")
	tool.tool, cut.tool = &toolCall{answerChars: -1}, &toolCall{answerChars: 600}
	request(tool, "the page of a tool")
	request(cut, "the page with shorter texts")
	waitFor(t, g, 20)
	close(hold)
	all.Wait()
	if reads.Load() != 8 || wrong.Load() > 0 {
		t.Errorf("20 requests for eight pages took %d reads, and %d got another page or an error", reads.Load(), wrong.Load())
	}
	if len(g.readQueue.pending.byPage) > 0 || g.readQueue.waiting.taken > 0 {
		t.Errorf("%d reads and %d requests are left", len(g.readQueue.pending.byPage), g.readQueue.waiting.taken)
	}
}

// TestSharedReadsFail: a read that fails or panics fails for all its requests, an account cannot take all places in the queue,
// and a request whose time is over stops waiting.
func TestSharedReadsFail(t *testing.T) {
	g := &Gateway{readQueue: newReadQueue(1, 12)} // 3 for an account
	g.readQueue.slots <- struct{}{}
	failed := errors.New("failed")
	var all sync.WaitGroup
	results := make(chan error, 8)
	request := func(ctx context.Context, credential int, read func() error) {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					results <- failed
				}
			}()
			_, err := g.readPage(ctx, readerOf(credential, "1"), func(context.Context, store.Querier) (page, error) { return page{}, read() })
			results <- err
		})
	}
	for range 2 {
		request(t.Context(), 0, func() error { return failed })
		request(t.Context(), 2, func() error { panic("failed") })
	}
	waitFor(t, g, 4)
	ctx, cancel := context.WithCancel(t.Context())
	request(ctx, 0, nil)
	waitFor(t, g, 5)
	if _, err := g.readPage(t.Context(), readerOf(0, "1"), nil); err != batch.ErrOverloaded {
		t.Errorf("the fourth request of an account that waits gets %v", err)
	}
	cancel()
	if err := <-results; err != batch.ErrOverloaded {
		t.Errorf("a canceled request gets %v", err)
	}
	<-g.readQueue.slots
	all.Wait()
	close(results)
	for err := range results {
		if err == nil || err == batch.ErrOverloaded {
			t.Errorf("a request whose read failed gets %v", err)
		}
	}
	g.readQueue.slots <- struct{}{}
	if _, err := g.readPage(ctx, readerOf(0, "1"), nil); err != batch.ErrOverloaded || len(g.readQueue.pending.byPage) > 0 {
		t.Errorf("a read whose turn does not come gets %v, and leaves %d reads that others join", err, len(g.readQueue.pending.byPage))
	}
}

func waitFor(t *testing.T, g *Gateway, requests int) {
	t.Helper()
	storetest.Eventually(t, fmt.Sprintf("%d requests wait", requests), func() bool {
		g.readQueue.waiting.mu.Lock()
		defer g.readQueue.waiting.mu.Unlock()
		return g.readQueue.waiting.taken == requests
	})
}
