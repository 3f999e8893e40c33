package worker

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/batch"
	"aiv/store/strictjson"
)

// TestBudgetIsNeverExceeded: whatever requests reserve and release, the memory that is left is what the others do not
// take.
func TestBudgetIsNeverExceeded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := budget{free: maxMemory}
	requests := make([]*exchange, 20)
	for i := range requests {
		requests[i] = &exchange{}
	}
	for range 20_000 {
		x := requests[r.IntN(len(requests))]
		switch n := 1 << r.IntN(26); r.IntN(4) {
		case 0:
			b.keep(x, n)
		case 1:
			b.keep(x, 0)
		case 2:
			b.reserveAnyway(x, n)
			b.keep(x, x.reserved-n)
		default:
			before := x.reserved
			err := b.reserve(x, n)
			want := before
			if err == nil {
				want += n
			}
			if x.reserved != want || err != nil && before+n <= small {
				t.Fatalf("reserving %d after %d: %v, %d", n, before, err, x.reserved)
			}
		}
		taken, counted := 0, 0
		for _, x := range requests {
			if x.reserved > small {
				taken += x.reserved - small
				counted++
			}
		}
		if b.free != maxMemory-taken || b.counted != counted || taken > maxMemory && counted > 1 {
			t.Fatalf("%d free and %d counted; requests have %d, %d of them counted", b.free, b.counted, taken, counted)
		}
	}
}

// TestRefusedForItsSize: a request whose announced body does not fit, or is too large, is rejected before any of it is
// received. One whose values need more memory than others leave is rejected before it is parsed, unless it is the only
// request.
func TestRefusedForItsSize(t *testing.T) {
	values := "[" + strings.Repeat("0,", 40_000) + "0]"
	for _, test := range []struct {
		name         string
		body         string
		free, others int
		want         error
		received     bool
	}{
		{"does not fit", strings.Repeat("x", 4<<20), forMedium + 2<<20, 1, batch.ErrOverloaded, false},
		{"is too large", strings.Repeat("x", maxBody+1), maxMemory, 1, tooLarge(), false},
		{"has many values", values, forMedium, 1, batch.ErrOverloaded, true},
		{"has many values and is alone", values, forMedium, 0, nil, true},
		{"has a text, which is one value", `"\"` + strings.Repeat(",", 40_000) + `"`, forMedium, 1, nil, true},
	} {
		h := &Handler{memory: budget{free: test.free, counted: test.others}}
		body, left := strings.NewReader(test.body), len(test.body)
		x := &exchange{ResponseWriter: httptest.NewRecorder(), request: httptest.NewRequest("POST", "/", body)}
		x.request.Header.Set("Content-Type", "application/json")
		if test.received {
			left = 0
		}
		if _, err := h.readJSON(x); fmt.Sprint(err) != fmt.Sprint(test.want) || body.Len() != left {
			t.Errorf("%s: %v, %d of %d bytes are left, want %v", test.name, err, body.Len(), len(test.body), test.want)
		}
	}
}

// TestSlowTransfersEnd: when memory is short, transfers that take longer than maxTransfer are ended, small and recent
// ones are not.
func TestSlowTransfersEnd(t *testing.T) {
	for name, exceed := range map[string]func(*budget) bool{
		"a request is rejected":   func(b *budget) bool { return b.reserve(&exchange{}, small+1) != nil },
		"a request is unexpected": func(b *budget) bool { return b.expect(&exchange{}, small+1) != nil },
		"a response is large": func(b *budget) bool {
			b.reserveAnyway(&exchange{}, small+1)
			return b.free < 0
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := budget{free: maxMemory}
			end := make(chan struct{})
			transfer := func(bytes int) <-chan bool {
				x, ended := &exchange{}, make(chan bool, 2)
				b.reserveAnyway(x, bytes)
				deadline := func(time.Time) error { ended <- true; return nil }
				go func() { ended <- b.transfer(x, deadline, func() { <-end }) }()
				synctest.Wait()
				return ended
			}
			slow, little := transfer(maxMemory/2+small), transfer(small)
			time.Sleep(maxTransfer)
			recent := transfer(maxMemory/2 + small)
			if err := b.reserve(&exchange{}, small); err != nil {
				t.Errorf("a small request: %v", err)
			}
			if !exceed(&b) || len(slow) != 1 {
				t.Errorf("%s: the slow transfer has %d deadlines, want 1", name, len(slow))
			}
			close(end)
			if ended, returned := <-slow, <-slow; !ended || !returned || <-little || <-recent {
				t.Errorf("%s: another transfer than the slow one was ended", name)
			}
		})
	}
}

// FuzzCountValues: a JSON text has at most as many values as countValues returns.
func FuzzCountValues(f *testing.F) {
	for _, seed := range []string{`0`, `"\\"`, `["a,[{\"","\\",{"b":[]},{}]`, `{"a":1,"b":"\\\\\","}`, `"`, ``} {
		f.Add(seed)
	}
	var count func(v strictjson.Value) int
	count = func(v strictjson.Value) int {
		n := 1
		for _, item := range v.Items {
			n += count(item)
		}
		for _, m := range v.Members {
			n += count(m.Value)
		}
		return n
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := countValues(text) // of any text, without a panic
		if v, err := strictjson.Parse(text, jsonLimits); err == nil && n < count(v) {
			t.Errorf("%s has %d values, counted %d", text, count(v), n)
		}
	})
}
