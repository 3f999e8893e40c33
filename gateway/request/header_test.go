package request

import (
	"net/http"
	"testing"
)

func TestPrefersCSV(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/csv": true, "TEXT/CSV": true, "text/*": true,
		"text/csv;header=present": true, "text/csv; charset=utf-8; q=0.9, application/json;q=0.8": true,
		"text/csv, application/json": false, "text/csv;q=0.5, application/json": false, "text/csv;q=0.5, */*": false,
		"text/csv, */*;q=0.1": true, "text/csv, application/*;q=0.9": true,
		"text/csv;q=0": false, "text/csv;q=0.001": true,
		"text/csv;q=0, text/*": false, "*/*, application/json;q=0.5": true, "*/*, application/json;q=0": true,
		"text/html, application/xhtml+xml, */*;q=0.8": false, "text/csv;q=x": false, "text/csv;q=2": false,
		"text/csv;Q=0.7,*/*;q=0.6": true, "text/csv-schema": false, "csv": false, ",, text/csv ,": true,
	} {
		if got := PrefersCSV(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("Accept: %s: got %v", accept, got)
		}
	}
	if PrefersCSV(http.Header{}) || !PrefersCSV(http.Header{"Accept": {"application/json;q=0.1", "text/csv"}}) {
		t.Error("CSV is preferred without Accept, or is not with two fields")
	}
}
