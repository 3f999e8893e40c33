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

// Remembered returns how many tokens are remembered.
func (l *WorkerLookup) Remembered() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.known)
}
