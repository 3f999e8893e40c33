package telemetry

import (
	"net/http"
	"strings"
	"testing"
)

// TestReadTrace: one valid traceparent of any version that may exist is read; nothing else is.
func TestReadTrace(t *testing.T) {
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, test := range []struct {
		want bool
		sent string // ID and PARENT are the ids
	}{
		{true, "00-ID-PARENT-01"}, {true, "00-ID-PARENT-00"}, {true, "cc-ID-PARENT-01"}, {true, "cc-ID-PARENT-01-what-is-to-come"},
		{false, ""}, {false, "00-ID-PARENT-01-more"}, {false, "cc-ID-PARENT-01.more"}, {false, "ff-ID-PARENT-01"}, {false, "00-ID-PARENT-1"},
		{false, "00-ID-PARENT-0G"}, {false, "00-00000000000000000000000000000000-PARENT-01"}, {false, "00-ID-0000000000000000-01"},
		{false, "00-" + strings.ToUpper(id) + "-PARENT-01"}, {false, "00-" + id[:31] + "\"-PARENT-01"}, {false, "00_ID-PARENT-01"},
		{false, "00-ID-PARENT-01,00-ID-PARENT-01"},
	} {
		header := http.Header{"Traceparent": strings.Split(strings.NewReplacer("ID", id, "PARENT", parent).Replace(test.sent), ",")}
		if got := ReadTrace(header); got != (Trace{}) != test.want || test.want && got != (Trace{id, parent}) {
			t.Errorf("%q: got %v, want %v", header, got, test.want)
		}
	}
	if got := ReadTrace(http.Header{}); got != (Trace{}) {
		t.Errorf("without the header: got %v", got)
	}
}
