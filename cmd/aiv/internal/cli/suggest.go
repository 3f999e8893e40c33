package cli

import "strings"

// nearest returns the candidate closest to a mistyped word, or "" when none is close.
func nearest(word string, candidates []string) string {
	found, least := "", 4
	for _, c := range candidates {
		// A third of the letters may be wrong; with more, any short word resembles any other.
		d := distance(strings.ToLower(word), c)
		if d <= (max(len(word), len(c))+2)/3 && d < least {
			found, least = c, d
		}
	}
	return found
}

// distance is the number of bytes to insert, remove, replace or swap with a neighbor that turn a into b (the optimal
// string alignment distance).
func distance(a, b string) int {
	// Rows of the matrix of distances between prefixes: two rows ago, the row before, and this one.
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range now {
		now[j] = j
	}
	for i := 1; i <= len(a); i++ {
		// now reuses the memory of the oldest row.
		before, last, now = last, now, before
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
	}
	return now[len(b)]
}
