package gateway

import (
	"testing"
	"time"

	"aiv/gateway/problem"
	"aiv/runs/schedules"
	"aiv/store"
)

// TestDateIsItsFirstInstant: a date is its first instant in a time zone.
func TestDateIsItsFirstInstant(t *testing.T) {
	for _, tt := range []struct{ zone, value, want string }{
		{"UTC", "2026-03-01", "2026-03-01T00:00:00.000000Z"},
		{"Europe/Rome", "2026-03-30", "2026-03-29T22:00:00.000000Z"},
		{"Europe/Rome", "2026-03-29", "2026-03-28T23:00:00.000000Z"},
		{"America/New_York", "2026-03-01", "2026-03-01T05:00:00.000000Z"},
		{"America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00.000000Z"}, // begins at 01:00
		{"America/Havana", "2026-11-01", "2026-11-01T04:00:00.000000Z"},    // midnight comes twice
		{"Europe/Rome", "2026-03-01T12:00:00+02:00", "2026-03-01T10:00:00.000000Z"},
		{"Europe/Rome", "2026-03-01T10:00:00.0000001z", "2026-03-01T10:00:00.000001Z"},
		{"Europe/Rome", "0001-01-01", ""}, {"UTC", "0001-01-01", "0001-01-01T00:00:00.000000Z"},
		{"UTC", "0000-12-31", ""},
		{"America/New_York", "9999-12-31", "9999-12-31T05:00:00.000000Z"},
		{"UTC", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"}, {"UTC", "9999-12-31T23:59:59.9999999Z", ""},
		{"UTC", "2026-02-29", ""}, {"UTC", "2026-3-1", ""}, {"UTC", "20260301", ""},
		{"UTC", "2026-03-01T10:00:00", ""}, {"UTC", "2026-03", ""}, {"UTC", "", ""},
	} {
		zone, err := schedules.LoadZone(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if at, err := moment(tt.value, zone); err == nil {
			got = store.FormatTime(at)
		}
		if got != tt.want {
			t.Errorf("%s in %s: got %q, want %q", tt.value, tt.zone, got, tt.want)
		}
	}
}

// TestPageWindow: the window of pages may have 92 days, one of which may have 25 hours.
func TestPageWindow(t *testing.T) {
	rome, err := schedules.LoadZone("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		zone     *time.Location
		from, to string
		want     bool
	}{
		{time.UTC, "2026-01-01", "2026-04-03", false},
		{time.UTC, "2026-01-01", "2026-04-03T00:00:00.000001Z", true},
		{rome, "2026-08-01", "2026-11-01", false}, {rome, "2026-08-01", "2026-11-02", true},
		{time.UTC, "2026-08-01", "2026-11-01T01:00:00Z", true},
		{rome, "2026-01-01", "2026-04-03", false}, {rome, "2026-01-01T00:00:00Z", "2026-04-03T00:00:00Z", false},
	} {
		w := window{zone: tt.zone, times: map[string]string{"from": tt.from, "to": tt.to}}
		var faults problem.Faults
		if from, to := w.span("from", "to", &faults); w.isWide(from, to) != tt.want || faults != nil {
			t.Errorf("%s to %s in %s: got %v, want %v; %v", tt.from, tt.to, tt.zone, !tt.want, tt.want, faults)
		}
	}
}
