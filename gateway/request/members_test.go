package request

import (
	"fmt"
	"math"
	"testing"

	"aiv/gateway/problem"
	"aiv/store/strictjson"
)

// TestIntegers: an integer that exceeds int64 is the largest or smallest one, not another number. The golden files of
// runs.create show the faults of other members.
func TestIntegers(t *testing.T) {
	for text, want := range map[string]string{
		"1":                    "1 1 0",
		"20":                   "20 20 0",
		"0":                    "0 0 2", // less than 1, twice
		"21":                   "21 21 1",
		"9223372036854775808":  fmt.Sprint(math.MaxInt64, math.MaxInt64, 1),
		"-9223372036854775809": fmt.Sprint(math.MinInt64, math.MinInt64, 2),
		"3.0":                  "0 0 2",
		"1e1":                  "0 0 2",
		`"7"`:                  "7 7 2",
	} {
		v, err := strictjson.Parse(`{"n":`+text+`}`, strictjson.Limits{Depth: 2, Values: 10})
		if err != nil {
			t.Fatal(err)
		}
		var faults problem.Faults
		o := NewObject(&v, At("#/body"), &faults, "n")
		if got := fmt.Sprint(o.Positive("n"), o.Integer("n", 1, 20), len(faults)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
