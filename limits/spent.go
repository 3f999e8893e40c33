package limits

import (
	"sync"
	"time"

	"aiv/auth"
)

// spent is the set of credentials that have used up the current minute. Their further requests of the minute are
// refused by a read. That is exact: a count only grows, and a changed limit makes a new *auth.Credential. In the same
// round trip the database confirms that the revision of the credentials and the minute are still the same.
type spent struct {
	mu          sync.Mutex
	start       time.Time // of the minute, by the database's clock
	until       time.Time // its end, by the process's clock: then a request is counted in the next minute at once
	credentials map[*auth.Credential]bool
}

// add records that c's minute is spent, and that the minute ends after left.
func (s *spent) add(c *auth.Credential, start time.Time, left time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !start.Equal(s.start) {
		s.start, s.until, s.credentials = start, time.Now().Add(left), make(map[*auth.Credential]bool)
	}
	s.credentials[c] = true
}

// minute returns the start of c's spent minute, unless that has ended.
func (s *spent) minute(c *auth.Credential) (start time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start, s.credentials[c] && time.Now().Before(s.until)
}
