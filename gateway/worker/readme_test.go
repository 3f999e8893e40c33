package worker

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/strictjson"
)

// TestReadmeRequestsAreAccepted: the program accepts the requests of README.md, and a claimed job has the members of its example.
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
	claim, err := strictjson.Parse(blocks[0], jsonLimits)
	if err != nil {
		t.Fatal(err)
	}
	if _, faults := readClaim(claim, nil); len(faults) > 0 {
		t.Errorf("the claim: %v", faults)
	}

	now := time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)
	job := jobs.Job{Key: jobs.Key{Account: store.NewID(), Run: store.NewID(), Ordinal: 1}, Question: &jobs.Question{}, Parameters: &jobs.RunParameters{}}
	var response struct{ Jobs []any }
	var example any
	if err := json.Unmarshal(appendJobs(nil, []jobs.Job{job}), &response); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(blocks[1]), &example); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(members(response.Jobs[0]), members(example)); diff != "" {
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
	body, err := strictjson.Parse(`{"jobs":[`+strings.Join(settlements, ",")+`]}`, jsonLimits)
	if err != nil {
		t.Fatal(err)
	}
	_, read, faults := readSettlements(body, now)
	if len(faults) > 0 {
		t.Errorf("the settlements: %v", faults)
	}
	var outcomes []jobs.Outcome
	for _, s := range read {
		outcomes = append(outcomes, s.Outcome)
	}
	if diff := cmp.Diff([]jobs.Outcome{jobs.Completed, jobs.Failed, jobs.Retry, jobs.Throttled, jobs.Released, jobs.Unavailable}, outcomes); diff != "" {
		t.Errorf("outcomes (-want +README.md):\n%s", diff)
	}
}

// members returns the paths of the members of an object.
func members(v any) (paths []string) {
	object, _ := v.(map[string]any)
	for name, value := range object {
		paths = append(paths, name)
		for _, inner := range members(value) {
			paths = append(paths, name+"/"+inner)
		}
	}
	slices.Sort(paths)
	return paths
}
