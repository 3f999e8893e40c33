package work

import (
	"context"
	"encoding/json"
	"time"
)

// An Executor answers jobs. The worker calls it for up to Config.Parallel jobs at a time, and knows nothing else of how
// answers are made.
type Executor interface {
	// Execute returns what has become of a job. It must return soon after ctx is done: the job is lost or canceled, or
	// the worker must end. The outcome is then used only if it is Completed and the worker still has the job; a job
	// that it still has is otherwise released.
	Execute(ctx context.Context, job Job) Outcome
}

// A Job is a job as a claim returns it. The worker interface documents its members (gateway/worker/README.md).
type Job struct {
	ID                 string    `json:"id"`
	Attempt            int64     `json:"attempt"`
	LeaseUntil         time.Time `json:"lease_until"`
	AccountID          string    `json:"account_id"`
	RunID              string    `json:"run_id"`
	MeasurementType    string    `json:"measurement_type"`
	MethodologyVersion string    `json:"methodology_version"`
	Model              Model     `json:"model"`
	Question           Question  `json:"question"`
	Repetition         int       `json:"repetition"`
	Locale             string    `json:"locale"`
	Country            string    `json:"country"`
	Language           string    `json:"language"`

	// Raw is the JSON of the job as the dispatcher sent it, with members that this program does not know.
	Raw json.RawMessage `json:"-"`

	// ClaimedAt is when the job was claimed by the database's clock, and ReceivedAt when this machine got it.
	ClaimedAt  time.Time `json:"-"`
	ReceivedAt time.Time `json:"-"`
}

// A Model is the model of a job. ProviderModel is its name in requests to the provider.
type Model struct {
	ID            string `json:"id"`
	Provider      string `json:"provider"`
	ProviderModel string `json:"provider_model"`
}

// A Question is the question of a job.
type Question struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Language string `json:"language"`
	Country  string `json:"country"`
}

// Now returns the time by the database's clock, which bounds Answer.AnsweredAt. The clock of this machine may be wrong:
// only the time since the job was received is measured with it.
func (j Job) Now() time.Time { return j.ClaimedAt.Add(time.Since(j.ReceivedAt)) }
