package demo

import (
	"encoding/json"
	"fmt"
	"time"

	"aiv/runs/jobs"
	"aiv/store"
)

// sampleAnswer returns the answer of a job, as clients get it. Its text and its citations say that it is a sample.
func sampleAnswer(j *jobs.Job, at time.Time) string {
	type citation struct {
		Position int     `json:"position"`
		URL      string  `json:"url"`
		Domain   string  `json:"domain"`
		Title    *string `json:"title"`
	}
	topic := "https://example.org/sample/" + j.Question.ID
	b, err := json.Marshal(struct {
		Text          string     `json:"text"`
		Citations     []citation `json:"citations"`
		SearchQueries []string   `json:"search_queries"`
		ModelVersion  *string    `json:"model_version"`
		AnsweredAt    string     `json:"answered_at"`
	}{
		Text: fmt.Sprintf("This is a sample answer of aiv demo; no model was asked. %s would answer here: %s", j.Parameters.ModelID, j.Question.Text),
		Citations: []citation{
			{1, topic, "example.org", new("Sample page about " + j.Question.ID)},
			{2, fmt.Sprintf("https://www.example.org/sample/%d", j.Repetition), "example.org", nil},
		},
		SearchQueries: []string{"sample query about " + j.Question.ID},
		AnsweredAt:    store.FormatTime(at),
	})
	if err != nil {
		panic(err) // these types can always be encoded
	}
	return string(b)
}
