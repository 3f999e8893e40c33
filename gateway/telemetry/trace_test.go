package telemetry_test

import (
	"net/http"
	"testing"

	"aiv/gateway/telemetry"
)

func TestReadTrace(t *testing.T) {
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	want := telemetry.Trace{id, parent}
	for _, test := range []struct {
		sent []string
		want telemetry.Trace
	}{
		{nil, telemetry.Trace{}},
		{[]string{"00-" + id + "-" + parent + "-01"}, want},
		{[]string{"00-" + id + "-" + parent + "-00"}, want},
		{[]string{"cc-" + id + "-" + parent + "-01"}, want},
		{[]string{"cc-" + id + "-" + parent + "-01-what-is-to-come"}, want},
		{[]string{"00-" + id + "-" + parent + "-01-more"}, telemetry.Trace{}},
		{[]string{"cc-" + id + "-" + parent + "-01.more"}, telemetry.Trace{}},
		{[]string{"ff-" + id + "-" + parent + "-01"}, telemetry.Trace{}},
		{[]string{"00-" + id + "-" + parent + "-1"}, telemetry.Trace{}},
		{[]string{"00-" + id + "-" + parent + "-0G"}, telemetry.Trace{}},
		{[]string{"00-00000000000000000000000000000000-" + parent + "-01"}, telemetry.Trace{}},
		{[]string{"00-" + id + "-0000000000000000-01"}, telemetry.Trace{}},
		{[]string{"00-0AF7651916CD43DD8448EB211C80319C-" + parent + "-01"}, telemetry.Trace{}},
		{[]string{`00-0af7651916cd43dd8448eb211c80319"-` + parent + "-01"}, telemetry.Trace{}},
		{[]string{"00_" + id + "-" + parent + "-01"}, telemetry.Trace{}},
		{[]string{"00-" + id + "-" + parent + "-01", "00-" + id + "-" + parent + "-01"}, telemetry.Trace{}},
		{[]string{""}, telemetry.Trace{}},
	} {
		if got := telemetry.ReadTrace(http.Header{"Traceparent": test.sent}); got != test.want {
			t.Errorf("%q: got %v, want %v", test.sent, got, test.want)
		}
	}
}
