package store_test

import (
	"errors"
	"testing"
	"time"

	"aiv/store"
)

func TestFormatTime(t *testing.T) {
	times := []time.Time{{}, time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2026, 1, 2, 3, 4, 5, 7999, time.FixedZone("", 3600))}
	for _, at := range times {
		equal(t, at.UTC().Format("2006-01-02T15:04:05.000000Z"), store.FormatTime(at), at)
	}
}

// TestParseTime: what is finer than a nanosecond is rounded up, so that a time is not before the one that was written.
func TestParseTime(t *testing.T) {
	for text, want := range map[string]string{ // "": refused
		"2026-01-02t03:04:05z":                      "2026-01-02T03:04:05Z",
		"2026-01-02T03:04:05+23:59":                 "2026-01-01T03:05:05Z",
		"2026-01-02T03:04:05.5-01:00":               "2026-01-02T04:04:05.5Z",
		"2026-01-02T03:04:05.1234567890Z":           "2026-01-02T03:04:05.123456789Z",
		"2026-01-02T03:04:05.1234567890001-01:30":   "2026-01-02T04:34:05.12345679Z",
		"2026-01-02T03:04:05.12345678+11:30":        "2026-01-01T15:34:05.12345678Z",
		"2026-01-02T03:04:05.123456789000000+11:30": "2026-01-01T15:34:05.123456789Z",

		"": "", "2026-01-02T3:04:05Z": "", "2026-01-02T03:04:05,5Z": "", "2026-01-02T03:04:05.": "", "2026-01-02T03:04:05.+01:00": "",
		"2026-01-02T03:04:05+24:00": "", "2026-01-02T03:04:05+01:60": "", "2026-01-02T03:04:05+0100": "", "2026-01-02T03:04:05": "",
		"2026-01-02 03:04:05Z": "", "9999-12-31T23:59:59-23:59": "", "0001-01-01T00:00:00+23:59": "", "2026-02-30T03:04:05Z": "",
	} {
		parsed, err := store.ParseTime(text)
		got := ""
		if err == nil {
			got = parsed.UTC().Format(time.RFC3339Nano)
		}
		equal(t, want, got, text)
	}
}

// TestPurgeBefore: rows are old by both clocks, and none is if the clocks are more than a minute apart.
func TestPurgeBefore(t *testing.T) {
	process := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for ahead, want := range map[time.Duration]time.Time{ // of the database's clock
		0:                process.Add(-24 * time.Hour),
		time.Minute:      process.Add(-24 * time.Hour),
		-time.Minute:     process.Add(-24*time.Hour - time.Minute),
		time.Minute + 1:  {},
		-time.Minute - 1: {},
	} {
		got, err := store.PurgeBeforeAt(process, process.Add(ahead), 24*time.Hour)
		equal(t, want, got, "a database clock ", ahead, " ahead")
		if _, skewed := errors.AsType[*store.ClockError](err); skewed != want.IsZero() {
			t.Errorf("a database clock %v ahead: %v", ahead, err)
		}
	}
}
