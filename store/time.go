package store

import "time"

// AppendTime appends t as all responses show times: in the form of RFC 3339, in UTC, with the microseconds that PostgreSQL keeps.
// The texts sort as the times do.
//
// Package time formats RFC 3339 without a fraction three times faster than with one of a fixed length.
func AppendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	b = t.AppendFormat(b, time.RFC3339)
	b[len(b)-1] = '.' // was Z
	micros := t.Nanosecond() / 1000
	for unit := 100_000; unit > 0; unit /= 10 {
		b = append(b, byte('0'+micros/unit%10))
	}
	return append(b, 'Z')
}

// FormatTime returns what AppendTime appends.
func FormatTime(t time.Time) string {
	return string(AppendTime(make([]byte, 0, len("2006-01-02T15:04:05.000000Z")), t))
}

// FormatTimeOrNil is FormatTime of a time that may be missing.
func FormatTimeOrNil(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(FormatTime(*t))
}
