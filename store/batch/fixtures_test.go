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
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var equal = storetest.Equal

// Most tests of this package run in bubbles of package synctest: their clock is not the machine's, Wait returns when
// all goroutines are blocked, and a goroutine that a Batcher leaks fails the test.

type config = batch.Config[int, int]

// A database is where a Batcher flushes inputs. The results are ten times the inputs. It rejects some inputs and locks
// some keys. Inputs that are equal modulo 100 have the same key. A flush fails where it meets a locked key; a retry
// waits for it. The flush of input 0 is held, so that the inputs sent after it share the second batch.
type database struct {
	*batch.Batcher[int, int]
	results map[int]<-chan result // of the latest call for an input

	rejects []int
	err     error // of a flush with a rejected input
	locked  map[int]chan struct{}
	held    map[int]chan struct{} // by the first input of flushes

	mu      sync.Mutex
	flushes [][]int
	retries [][]int
}

// result is what a call of Do returned.
type result struct {
	out int
	err error
}

var (
	errCulprit = errors.New("an input that the database rejects")
	errAway    = errors.New("the connection is gone")
)

func isCulprit(err error) bool { return errors.Is(err, errCulprit) }

func newDatabase(change func(*config), rejects ...int) *database {
	d := &database{
		results: make(map[int]<-chan result), rejects: rejects, err: errCulprit, locked: make(map[int]chan struct{}),
		held: map[int]chan struct{}{0: make(chan struct{})},
	}
	c := config{
		Flush: d.flush, Retry: d.retry, RetryIndividually: isCulprit, Key: func(in int) any { return in % 100 },
		Timeout: time.Hour, MaxWaiting: 100, MaxWeight: 100, DropAbandoned: true,
	}
	if change != nil {
		change(&c)
	}
	d.Batcher = batch.New(c)
	return d
}

func (d *database) lock(keys ...int) {
	for _, key := range keys {
		d.locked[key] = make(chan struct{})
	}
}

func (d *database) flush(_ context.Context, in []int) ([]int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flushes = append(d.flushes, slices.Clone(in))
	if held := d.held[in[0]]; held != nil {
		d.mu.Unlock()
		<-held
		d.mu.Lock()
	}
	for _, v := range in {
		if c := d.locked[v%100]; c != nil {
			select {
			case <-c:
			default:
				return nil, errCulprit
			}
		}
	}
	return d.answer(in)
}

func (d *database) retry(_ context.Context, in []int) ([]int, error) {
	d.mu.Lock()
	d.retries = append(d.retries, slices.Clone(in))
	d.mu.Unlock()
	if c := d.locked[in[0]%100]; c != nil {
		<-c
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answer(in)
}

func (d *database) answer(in []int) ([]int, error) {
	if slices.ContainsFunc(in, func(v int) bool { return slices.Contains(d.rejects, v) }) {
		return nil, d.err
	}
	return tenfold(in), nil
}

func tenfold(in []int) []int {
	out := make([]int, len(in))
	for i, v := range in {
		out[i] = 10 * v
	}
	return out
}

// send calls Do in a goroutine for each input, and returns when they wait.
func (d *database) send(ctx context.Context, in ...int) {
	for _, v := range in {
		results := make(chan result, 1)
		d.results[v] = results
		go func() { out, err := d.Do(ctx, v); results <- result{out, err} }()
		synctest.Wait()
	}
}

// abandon calls Do for each input, and gives up before the result.
func (d *database) abandon(t *testing.T, in ...int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d.send(ctx, in...)
	cancel()
	d.failed(t, context.Canceled, in...)
}

// together flushes input 0, and then the inputs in one batch. It returns when all goroutines are blocked.
func (d *database) together(t *testing.T, in ...int) {
	t.Helper()
	d.send(t.Context(), 0)
	d.send(t.Context(), in...)
	close(d.held[0])
	synctest.Wait()
}

// succeeded checks that the calls for inputs have returned their results.
func (d *database) succeeded(t *testing.T, in ...int) {
	t.Helper()
	d.failed(t, nil, in...)
}

// failed checks that the calls for inputs have returned an error or, if that is nil, their results.
func (d *database) failed(t *testing.T, wantErr error, in ...int) {
	t.Helper()
	synctest.Wait()
	for _, v := range in {
		want := 10 * v
		if wantErr != nil {
			want = 0
		}
		select {
		case got := <-d.results[v]:
			if got.out != want || !errors.Is(got.err, wantErr) {
				t.Errorf("input %d: got %d, %v, want %d, %v", v, got.out, got.err, want, wantErr)
			}
		default:
			t.Errorf("input %d: no result", v)
		}
	}
}

func numbers(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}
