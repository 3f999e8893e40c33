package insights

import "testing"

// TestShareOfFailedJobs: the share is rounded once, from the exact quotient. In floating point, 163/800 × 10,000 is less
// than 2037.5.
func TestShareOfFailedJobs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		failed, total int
		value         float64
		message       string
	}{
		{24, 60, 0.4, "24 of 60 jobs failed (40 %). Visibility was not compared with earlier runs."},
		{1, 3, 0.3333, "1 of 3 jobs failed (33.33 %). Visibility was not compared with earlier runs."},
		{163, 800, 0.2038, "163 of 800 jobs failed (20.38 %). Visibility was not compared with earlier runs."},
		{7, 7, 1, "7 of 7 jobs failed (100 %). Visibility was not compared with earlier runs."},
	} {
		a := application{Evaluation: &Evaluation{Name: "Italy", Total: tt.total, Failed: tt.failed}}
		if alert := a.failure(); *alert.CurrentValue != tt.value || alert.Message != tt.message {
			t.Errorf("%d of %d: got %v, %s; want %v, %s", tt.failed, tt.total, *alert.CurrentValue, alert.Message, tt.value, tt.message)
		}
	}
}
