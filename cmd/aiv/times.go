package main

import "time"

// wireTime formats a time for scripts. It always has six digits, so that the texts sort as the times do.
func wireTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func wireTimeOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := wireTime(*t)
	return &text
}

// humanTime formats a time for people.
func humanTime(t *time.Time, absent string) string {
	if t == nil {
		return absent
	}
	return t.UTC().Format(time.RFC3339)
}
