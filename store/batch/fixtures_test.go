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

// callers call Do of a Batcher, which returns ten times the input.
type callers struct {
	*batch.Batcher[int, int]
	results map[int]<-chan result // of the latest call for an input
}

// result is what a call of Do returned.
type result struct {
	out int
	err error
}

func newCallers(flush func(context.Context, []int) ([]int, error), change func(*config)) callers {
	c := config{Flush: flush, Timeout: time.Minute, MaxWaiting: 10, MaxWeight: 10}
	if change != nil {
		change(&c)
	}
	return callers{batch.New(c), make(map[int]<-chan result)}
}

// send calls Do in a goroutine for each input, and returns when they wait.
func (c callers) send(ctx context.Context, in ...int) {
	for _, v := range in {
		results := make(chan result, 1)
		c.results[v] = results
		go func() {
			out, err := c.Do(ctx, v)
			results <- result{out, err}
		}()
		synctest.Wait()
	}
}

// abandon calls Do for each input, and gives up before the result.
func (c callers) abandon(t *testing.T, in ...int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c.send(ctx, in...)
	cancel()
	c.failed(t, context.Canceled, in...)
}

// succeeded checks that the calls for inputs have returned their results.
func (c callers) succeeded(t *testing.T, in ...int) {
	t.Helper()
	c.failed(t, nil, in...)
}

// failed checks that the calls for inputs have returned an error or, if that is nil, their results.
func (c callers) failed(t *testing.T, wantErr error, in ...int) {
	t.Helper()
	synctest.Wait()
	for _, v := range in {
		want := 10 * v
		if wantErr != nil {
			want = 0
		}
		select {
		case got := <-c.results[v]:
			if got.out != want || !errors.Is(got.err, wantErr) {
				t.Errorf("input %d: got %d, %v, want %d, %v", v, got.out, got.err, want, wantErr)
			}
		default:
			t.Errorf("input %d: no result", v)
		}
	}
}

// stepper flushes one batch at a time: it reports the inputs on started and returns what it receives from end.
type stepper struct {
	callers
	started chan []int
	end     chan error
}

func newStepper(change func(*config)) *stepper {
	s := &stepper{started: make(chan []int), end: make(chan error)}
	s.callers = newCallers(s.flush, change)
	return s
}

func (s *stepper) flush(_ context.Context, in []int) ([]int, error) {
	s.started <- slices.Clone(in)
	if err := <-s.end; err != nil {
		return nil, err
	}
	return tenfold(in), nil
}

// flushes checks which inputs the batch has that starts next, and ends it.
func (s *stepper) flushes(t *testing.T, want ...int) {
	t.Helper()
	equal(t, want, <-s.started, "the batch")
	s.end <- nil
}

// answer is a flush that succeeds at once.
func answer(_ context.Context, in []int) ([]int, error) { return tenfold(in), nil }

func tenfold(in []int) []int {
	out := make([]int, len(in))
	for i, v := range in {
		out[i] = 10 * v
	}
	return out
}

func numbers(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

var (
	errCulprit = errors.New("an input that the database rejects")
	errAway    = errors.New("the connection is gone")
)

func isCulprit(err error) bool { return errors.Is(err, errCulprit) }

// database rejects some inputs and locks some keys. Inputs that are equal modulo 100 have the same key. A flush fails
// where it meets a locked key; a retry waits for it. The flush of input 0 waits for begin, so that the inputs sent
// after it share the second batch.
type database struct {
	callers
	rejects []int
	err     error // of a flush with a rejected input
	locked  map[int]chan struct{}
	begin   chan struct{}

	mu      sync.Mutex
	flushes [][]int
	retries [][]int
}

func newDatabase(change func(*config), rejects ...int) *database {
	d := &database{rejects: rejects, err: errCulprit, locked: make(map[int]chan struct{}), begin: make(chan struct{})}
	d.callers = newCallers(d.flush, func(c *config) {
		c.Retry, c.RetryIndividually, c.Key = d.retry, isCulprit, func(in int) any { return in % 100 }
		c.Timeout, c.MaxWaiting, c.MaxWeight, c.DropAbandoned = time.Hour, 100, 100, true
		if change != nil {
			change(c)
		}
	})
	return d
}

func (d *database) lock(keys ...int) {
	for _, key := range keys {
		d.locked[key] = make(chan struct{})
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

// together flushes input 0, and then the inputs in one batch. It returns when all goroutines are blocked.
func (d *database) together(t *testing.T, in ...int) {
	t.Helper()
	d.send(t.Context(), 0)
	d.send(t.Context(), in...)
	close(d.begin)
	d.succeeded(t, 0)
}
