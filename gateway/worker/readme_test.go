package worker

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aiv/runs/jobs"
)

// TestReadmeRequestsAreAccepted: the program accepts the requests of README.md, and a claimed job has the members of
// its example.
func TestReadmeRequestsAreAccepted(t *testing.T) {
	text, err := os.ReadFile("README.md")
	blocks := regexp.MustCompile("(?s)```json\n(.*?)\n```").FindAllStringSubmatch(string(text), -1)
	if err != nil || len(blocks) != 4 {
		t.Fatalf("%d blocks of JSON, want 4: a claim, a job, a heartbeat, settlements; %v", len(blocks), err)
	}
	if _, faults := readClaim(parse(t, blocks[0][1]), nil); len(faults) > 0 {
		t.Errorf("the claim: %v", faults)
	}

	members := regexp.MustCompile(`"\w+":`)
	job := string(appendJobs(nil, []jobs.Job{{Question: &jobs.Question{}, Parameters: &jobs.RunParameters{}}}))
	if got, want := members.FindAllString(job, -1)[1:], members.FindAllString(blocks[1][1], -1); !slices.Equal(got, want) {
		t.Errorf("a job has the members %s, and in README.md %s", got, want)
	}

	n := 0
	settlements := regexp.MustCompile(`job_…`).ReplaceAllStringFunc(blocks[3][1], func(string) string { n++; return fmt.Sprint("job_", n) })
	body := `{"jobs":[` + strings.ReplaceAll(settlements, "\n{", ",\n{") + `]}`
	_, read, faults := readSettlements(parse(t, body), now.AddDate(1, 0, 0))
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
