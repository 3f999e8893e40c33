package gateway

import (
	"errors"
	"testing"

	"aiv/gateway/problem"
)

// TestInvalidParametersCount checks that the detail counts parameters, not faults.
func TestInvalidParametersCount(t *testing.T) {
	var faults problem.Faults
	faults.AddParameter("from", "must be a date")
	faults.AddParameter("from", "cannot be given with run_id")
	for _, want := range []string{"1 parameter is not valid.", "2 parameters are not valid."} {
		var p *problem.Problem
		if err := invalidParameters(faults); !errors.As(err, &p) || p.Detail != want {
			t.Errorf("invalidParameters(%v) = %v, want the detail %q", faults, err, want)
		}
		faults.AddParameter("to", "must be a date")
	}
}
