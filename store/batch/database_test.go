package batch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"
)

var (
	errCulprit = errors.New("an input that the database rejects")
	errAway    = errors.New("the connection is gone")
)

func isCulprit(err error) bool { return errors.Is(err, errCulprit) }

// database rejects some inputs and locks some keys. Inputs that are equal modulo 100 have the same key. A flush fails
// where it meets a locked key; a retry waits for it. The flush of input 0 waits for begin, so that the inputs sent
// after it share the second batch.
type database struct {
	rejects []int
	err     error // of a flush with a rejected input
	locked  map[int]chan struct{}
	begin   chan struct{}

	mu             sync.Mutex
	flushes        [][]int
	retries        [][]int
	inFlight, most int // retries
}

func newDatabase(rejects ...int) *database {
	return &database{rejects: rejects, err: errCulprit, locked: make(map[int]chan struct{}), begin: make(chan struct{})}
}

func (d *database) lock(keys ...int) {
	for _, key := range keys {
		d.locked[key] = make(chan struct{})
	}
}

func (d *database) batcher() *batcher { return batch.New(d.config()) }

func (d *database) config() batch.Config[int, int] {
	return batch.Config[int, int]{
		Flush: d.flush, Retry: d.retry, Timeout: time.Hour, MaxWaiting: 100, MaxWeight: 100, RetryIndividually: isCulprit,
		Key: func(in int) any { return in % 100 }, DropAbandoned: true,
	}
}

func (d *database) flush(_ context.Context, in []int) ([]int, error) {
	if in[0] == 0 {
		<-d.begin
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushes = append(d.flushes, slices.Clone(in))
	for _, v := range in {
		if slices.Contains(d.rejects, v) {
			return nil, d.err
		}
		if c := d.locked[v%100]; c != nil {
			select {
			case <-c:
			default:
				return nil, errCulprit
			}
		}
	}
	return tenfold(in), nil
}

func (d *database) retry(_ context.Context, in []int) ([]int, error) {
	d.mu.Lock()
	d.retries = append(d.retries, slices.Clone(in))
	d.inFlight++
	d.most = max(d.most, d.inFlight)
	d.mu.Unlock()
	if c := d.locked[in[0]%100]; c != nil {
		<-c
	}
	d.mu.Lock()
	d.inFlight--
	d.mu.Unlock()
	for _, v := range in {
		if slices.Contains(d.rejects, v) {
			return nil, d.err
		}
	}
	return tenfold(in), nil
}

// together flushes the inputs in one batch, and returns when all goroutines are blocked.
func (d *database) together(t *testing.T, b *batcher, in ...int) map[int]<-chan result {
	t.Helper()
	got := map[int]<-chan result{0: send(t.Context(), b, 0)}
	for _, v := range in {
		got[v] = send(t.Context(), b, v)
	}
	close(d.begin)
	synctest.Wait()
	return got
}
