package store_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"aiv/store"
)

const wireForm = "2006-01-02T15:04:05.000000Z"

func TestFormatTime(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	times := []time.Time{{}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2026, 1, 2, 3, 4, 5, 999, time.UTC), time.Date(2026, 1, 2, 3, 4, 5, 7000, time.FixedZone("", 3600))}
	for range 1000 {
		times = append(times, time.Unix(random.Int64N(1<<33), random.Int64N(1e9)))
	}
	for _, at := range times {
		equal(t, at.UTC().Format(wireForm), store.FormatTime(at), at)
	}
}

// TestParseTime: what is finer than a nanosecond is rounded up, so that a time is not before the one that was written.
func TestParseTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{ // "": refused
		"2026-01-02T03:04:05Z":                      "2026-01-02T03:04:05Z",
		"2026-01-02t03:04:05z":                      "2026-01-02T03:04:05Z",
		"2026-01-02T03:04:05+23:59":                 "2026-01-01T03:05:05Z",
		"2026-01-02T03:04:05.5-01:00":               "2026-01-02T04:04:05.5Z",
		"2026-01-02T03:04:05.123456789Z":            "2026-01-02T03:04:05.123456789Z",
		"2026-01-02T03:04:05.1234567890Z":           "2026-01-02T03:04:05.123456789Z",
		"2026-01-02T03:04:05.1234567890001Z":        "2026-01-02T03:04:05.12345679Z",
		"2026-01-02T03:04:05.1234567890001-01:30":   "2026-01-02T04:34:05.12345679Z",
		"2026-01-02T03:04:05.12345678+11:30":        "2026-01-01T15:34:05.12345678Z",
		"2026-01-02T03:04:05.123456789000000+11:30": "2026-01-01T15:34:05.123456789Z",
		"2026-01-02T3:04:05Z":                       "",
		"2026-01-02T03:04:05,5Z":                    "",
		"2026-01-02T03:04:05.Z":                     "",
		"2026-01-02T03:04:05.+01:00":                "",
		"2026-01-02T03:04:05+24:00":                 "",
		"2026-01-02T03:04:05+01:60":                 "",
		"2026-01-02T03:04:05+0100":                  "",
		"2026-01-02T03:04:05":                       "",
		"2026-01-02 03:04:05Z":                      "",
		"9999-12-31T23:59:59-23:59":                 "",
		"0001-01-01T00:00:00+23:59":                 "",
		"2026-02-30T03:04:05Z":                      "",
		"":                                          "",
		"2026-01-02T03:04:05.":                      "",
	} {
		parsed, err := store.ParseTime(text)
		got := ""
		if err == nil {
			got = parsed.UTC().Format(time.RFC3339Nano)
		}
		equal(t, want, got, text)
	}
}

func BenchmarkAppendTime(b *testing.B) {
	at := time.Date(2026, 11, 22, 21, 4, 5, 678_901_000, time.UTC)
	var buf []byte
	b.Run("AppendTime", func(b *testing.B) {
		for b.Loop() {
			buf = store.AppendTime(buf[:0], at)
		}
	})
	b.Run("AppendFormat", func(b *testing.B) {
		for b.Loop() {
			buf = at.UTC().AppendFormat(buf[:0], wireForm)
		}
	})
}
