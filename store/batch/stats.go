package batch

import (
	"slices"
	"time"
)

// Stats reports what a Batcher has done so far, and how many inputs wait. Retries are not counted as batches.
type Stats struct {
	Sizes      [len(Sizes) + 1]uint64 // batches with at most Sizes[i] inputs, and in the last element larger ones
	Inputs     uint64                 // that were flushed
	Time       time.Duration          // that batches took
	Failed     uint64                 // batches
	Retried    uint64                 // failed batches whose inputs were retried individually
	Overloaded uint64                 // inputs refused
	Waiting    int                    // inputs, now
}

// Sizes are the bounds by which batches are counted.
var Sizes = [...]int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}

// Stats returns what b has done so far.
func (b *Batcher[In, Out]) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Waiting = b.waiting
	return s
}

func (s *Stats) add(inputs int, took time.Duration, failed, retried bool) {
	size, _ := slices.BinarySearch(Sizes[:], inputs)
	s.Sizes[size]++
	s.Inputs += uint64(inputs)
	s.Time += took
	if failed {
		s.Failed++
	}
	if retried {
		s.Retried++
	}
}
