package batch

import "context"

// How many inputs go alone at the same time, and how many more wait patiently: a lane takes a few connections of its pool, and
// no more than these and its own.
const (
	alone   = 4
	patient = 2
)

func (l *Batcher[In, Out]) waits(err error) bool {
	return err != nil && l.cfg.Waits != nil && l.cfg.Waits(err)
}

// part lets each input of a failed trip go alone, those that have gone alone already patiently. The lane goes on meanwhile:
// one of them may wait for a lock.
func (l *Batcher[In, Out]) part(t *trip[In, Out], wasAlone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.apart = make([]*trip[In, Out], len(t.in))
	for i := range t.in {
		if t.left[i] || t.gone[i] {
			continue
		}
		one := &trip[In, Out]{in: t.in[i : i+1], done: make(chan struct{})}
		t.apart[i] = one
		l.waiting++
		go func() {
			defer close(one.done)
			if !wasAlone {
				l.takeIn(l.alone, one, l.cfg.Brief)
				if !l.waits(one.err) || !l.again(one) {
					return
				}
			}
			l.takeIn(l.patient, one, l.cfg.Patient)
		}()
	}
}

// again has a trip of one input wait to be taken once more, unless its caller has gone.
func (l *Batcher[In, Out]) again(one *trip[In, Out]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.gone[0] {
		return false
	}
	one.begun = false
	l.waiting++
	return true
}

// takeIn takes a trip that carries one input, when there is a place.
func (l *Batcher[In, Out]) takeIn(places chan struct{}, one *trip[In, Out], carry func(context.Context, []In) ([]Out, error)) {
	places <- struct{}{}
	defer func() { <-places }()
	if in := l.begin(one); len(in) == 1 {
		l.take(one, in, carry)
	}
}
