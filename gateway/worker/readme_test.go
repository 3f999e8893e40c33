package worker

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/runs/jobs"
	"aiv/store/strictjson"
)

// TestReadmeRequestsAreAccepted: the program accepts the requests of README.md, and a claimed job has the members of
// its example.
func TestReadmeRequestsAreAccepted(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) != 4 {
		t.Fatalf("%d blocks of JSON, want 4: a claim, a job, a heartbeat, settlements", len(blocks))
	}
	if _, faults := readClaim(parse(t, blocks[0]), nil); len(faults) > 0 {
		t.Errorf("the claim: %v", faults)
	}

	job := jobs.Job{Question: &jobs.Question{}, Parameters: &jobs.RunParameters{}}
	response := parse(t, string(appendJobs(nil, []jobs.Job{job})))
	if diff := cmp.Diff(members(&response.Member("jobs").Items[0]), members(new(parse(t, blocks[1])))); diff != "" {
		t.Errorf("members of a job (-program +README.md):\n%s", diff)
	}

	var settlements []string
	for d := json.NewDecoder(strings.NewReader(blocks[3])); d.More(); {
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			t.Fatal(err)
		}
		settlements = append(settlements, strings.Replace(string(one), "job_…", "job_"+strconv.Itoa(len(settlements)), 1))
	}
	_, read, faults := readSettlements(parse(t, `{"jobs":[`+strings.Join(settlements, ",")+`]}`), now.AddDate(1, 0, 0))
	if len(faults) > 0 {
		t.Errorf("the settlements: %v", faults)
	}
	outcomes := ""
	for _, s := range read {
		outcomes += string(s.Outcome) + " "
	}
	if want := "completed failed retry throttled released unavailable "; outcomes != want {
		t.Errorf("README.md has the outcomes %s, want %s", outcomes, want)
	}
}

// members returns the paths of the members of an object.
func members(v *strictjson.Value) (paths []string) {
	for i := range v.Members {
		m := &v.Members[i]
		paths = append(paths, m.Name)
		for _, inner := range members(&m.Value) {
			paths = append(paths, m.Name+"/"+inner)
		}
	}
	slices.Sort(paths)
	return paths
}
