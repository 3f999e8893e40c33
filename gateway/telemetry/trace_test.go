package telemetry

import (
	"net/http"
	"strings"
	"testing"
)

// TestReadTrace: one valid traceparent of any version that may exist is read; nothing else is.
func TestReadTrace(t *testing.T) {
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for sent, want := range map[string]bool{ // the ids are {id} and {parent}
		"":                                    false,
		"00-{id}-{parent}-01":                 true,
		"00-{id}-{parent}-00":                 true,
		"cc-{id}-{parent}-01":                 true,
		"cc-{id}-{parent}-01-what-is-to-come": true,
		"00-{id}-{parent}-01-more":            false,
		"cc-{id}-{parent}-01.more":            false,
		"ff-{id}-{parent}-01":                 false,
		"00-{id}-{parent}-1":                  false,
		"00-{id}-{parent}-0G":                 false,
		"00-00000000000000000000000000000000-{parent}-01": false,
		"00-{id}-0000000000000000-01":                     false,
		"00-" + strings.ToUpper(id) + "-{parent}-01":      false,
		"00-" + id[:31] + "\"-{parent}-01":                false,
		"00_{id}-{parent}-01":                             false,
		"00-{id}-{parent}-01,00-{id}-{parent}-01":         false,
	} {
		sent = strings.NewReplacer("{id}", id, "{parent}", parent).Replace(sent)
		header := http.Header{"Traceparent": strings.Split(sent, ",")}
		if got := ReadTrace(header); got != (Trace{}) != want || want && got != (Trace{id, parent}) {
			t.Errorf("%q: got %v, want %v", header, got, want)
		}
	}
	if got := ReadTrace(http.Header{}); got != (Trace{}) {
		t.Errorf("without the header: got %v", got)
	}
}
