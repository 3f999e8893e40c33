package auth

import "time"

// Age makes remembered workers older.
func (l *WorkerLookup) Age(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for token, k := range l.known {
		k.until = k.until.Add(-d)
		l.known[token] = k
	}
}
