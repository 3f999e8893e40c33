package demo

import (
	"fmt"
	"time"

	"aiv/runs/answers"
	"aiv/runs/jobs"
)

// sampleAnswer returns the answer of a job. Its text and its citations say that it is a sample.
func sampleAnswer(j *jobs.Job, at time.Time) *answers.Answer {
	topic := "https://example.org/sample/" + j.Question.ID
	return &answers.Answer{
		Text: fmt.Sprintf("This is a sample answer of aiv demo; no model was asked. %s would answer here: %s", j.Parameters.ModelID, j.Question.Text),
		Citations: []answers.Citation{
			{Position: 1, URL: topic, Domain: "example.org", Title: new("Sample page about " + j.Question.ID)},
			{Position: 2, URL: fmt.Sprintf("https://www.example.org/sample/%d", j.Repetition), Domain: "example.org"},
		},
		SearchQueries: []string{"sample query about " + j.Question.ID},
		AnsweredAt:    at,
		Searched:      new(true),
	}
}
