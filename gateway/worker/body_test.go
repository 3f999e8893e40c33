package worker

import (
	"strings"
	"testing"
	"time"

	"aiv/store/storetest"
	"aiv/store/strictjson"
)

// now is the database's time in these tests.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func parse(t testing.TB, body string) strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse(body, jsonLimits)
	storetest.Must(t, err)
	return v
}

// completed is the body of a settlement of one answer. members replace or follow its members.
func completed(members string) string {
	answer := ""
	for _, member := range []string{`"text":""`, `"citations":[]`, `"search_queries":[]`, `"model_version":null`,
		`"answered_at":"2026-01-01T00:00:00Z"`} {
		if name, _, _ := strings.Cut(member, ":"); !strings.Contains(members, name+":") {
			answer += member + ","
		}
	}
	return `{"jobs":[{"id":"a","attempt":1,"outcome":"completed","answer":{` + strings.TrimSuffix(answer+members, ",") + `}}]}`
}

// TestAnsweredAt: an answer was given at most 5 minutes in the future. The golden files of the worker interface show other
// bounds of bodies.
func TestAnsweredAt(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"2026-01-02T03:09:05Z": true, "2026-01-02T03:09:06Z": false,
		"2026-01-02T04:09:05+01:00": true, "2026-01-02 03:04:05Z": false} {
		_, _, faults := readSettlements(parse(t, completed(`"answered_at":"`+text+`"`)), now)
		if (len(faults) == 0) != ok || !ok && faults[0].Pointer != "#/jobs/0/answer/answered_at" {
			t.Errorf("%s: faults %+v", text, faults)
		}
	}
}
