package gateway

import (
	"sync"

	"aiv/store"
)

// A share counts what is in use, such as bytes or requests, in total and by account.
type share struct {
	max, maxOfOne int

	mu    sync.Mutex
	taken int
	by    map[store.ID]int
}

// take reserves n for an account. If that would exceed a bound, it reserves nothing and reports false.
func (s *share) take(account store.ID, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken+n > s.max || s.by[account]+n > s.maxOfOne {
		return false
	}
	if s.by == nil {
		s.by = make(map[store.ID]int)
	}
	s.taken += n
	s.by[account] += n
	return true
}

// release returns n that an account has taken.
func (s *share) release(account store.ID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.by[account] -= n; s.by[account] == 0 {
		delete(s.by, account)
	}
}
