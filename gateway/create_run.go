package gateway

import (
	"errors"
	"fmt"
	"net/http"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/gateway/wire"
	"aiv/idempotency"
	"aiv/runs"
	"aiv/store/batch"
	"aiv/store/strictjson"
)

// newRun is the body of POST /v1/runs, which a schedule shows.
type newRun struct {
	ModelIDs        []string `json:"model_ids"`
	QuestionIDs     []string `json:"question_ids"`
	Repetitions     int      `json:"repetitions"` // of each question, for each model
	MeasurementType string   `json:"measurement_type"`
	Locale          string   `json:"locale"`
	Country         string   `json:"country"`
	Language        string   `json:"language"`
}

// runCreated is the response of POST /v1/runs.
type runCreated struct {
	ID                 string `json:"id"`
	Status             string `json:"status"`
	TotalJobs          int    `json:"total_jobs"` // models × questions × repetitions
	MeasurementType    string `json:"measurement_type"`
	MethodologyVersion string `json:"methodology_version"` // stays the same for all jobs of the run
}

// createRun reads the body, then the key, and has package runs check and write the run. A replay gets status 202 too,
// with the bytes of the first response.
func (g *Gateway) createRun(x *exchange, r *http.Request) error {
	body, at, err := bodyOf(x, r)
	if err != nil {
		return err
	}
	proposal, f := readProposal(body, at)
	x.envelope, body = nil, nil // frees the parsed body, which is much larger than the proposal, while the run is written
	if len(f) > 0 {
		return &problem.Problem{Code: problem.InvalidRequest, Detail: "The body is not a valid run.", Errors: f}
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	proposal.Orderer, proposal.CatalogRevision = runs.OrdererOf(x.credential()), x.admission.CatalogRevision

	ctx := g.deadline(x)
	account := proposal.Orderer.AccountID
	// This bounds how many runs of one account wait to be written. The batchers of package runs bound the total.
	if !g.writes.take(account, 1) {
		return batch.ErrOverloaded
	}
	defer g.writes.release(account, 1)
	result, err := g.cfg.Runs.Create(ctx, &runs.CreateRequest{
		Proposal: proposal, Operation: idempotency.Operation{Method: x.route.method, Route: x.route.path}, Key: key, Response: EncodeRunCreated,
	})
	if refusal, ok := errors.AsType[*runs.Refusal](err); ok {
		return refused(refusal, at)
	}
	if err != nil {
		return err
	}
	// The form with ?path= is valid for clients of plain addresses too.
	x.set("Location", Base+"?path=/v1/runs/"+result.RunID.Text("run"))
	if result.Replayed {
		x.set("Idempotent-Replayed", "true")
	}
	x.write(http.StatusAccepted, "application/json", result.Response)
	return nil
}

// EncodeRunCreated encodes the response of POST /v1/runs. It is stored with the idempotency key, for replays, also for
// the runs of schedules.
func EncodeRunCreated(r *runs.Run) []byte {
	return wire.Encode(runCreated{r.ID.Text("run"), r.Status, r.TotalJobs, r.MeasurementType, r.MethodologyVersion})
}

// idempotencyKey returns the key of a request. It indexes the header, because Get would return the first of two keys.
func idempotencyKey(h http.Header) (string, error) {
	sent := h["Idempotency-Key"]
	if len(sent) == 0 {
		return "", &problem.Problem{Code: problem.IdempotencyKeyMissing,
			Detail: "Send an Idempotency-Key, such as a UUID: a new one with each run, the same one with each retry."}
	}
	if len(sent) > 1 {
		return "", &problem.Problem{Code: problem.IdempotencyKeyInvalid, Detail: "The Idempotency-Key header is given more than once."}
	}
	key, err := idempotency.ParseKey(sent[0])
	if err != nil {
		return "", &problem.Problem{Code: problem.IdempotencyKeyInvalid,
			Detail: fmt.Sprintf("An Idempotency-Key is 1 to %d visible ASCII characters: %v.", idempotency.MaxKeyLength, err)}
	}
	return key, nil
}

// Bounds of a run under any methodology. The methodology may allow less. See also jsonLimits, which a run of this size
// must fit.
const (
	maxModels    = 50
	maxQuestions = 500
)

// readProposal reads the body of POST /v1/runs, found at the given location. All members are required. The caller sets
// the orderer and the revision of the catalog.
func readProposal(body *strictjson.Value, at *request.Location) (*runs.Proposal, problem.Faults) {
	var f problem.Faults
	o := request.NewObject(body, at, &f,
		"model_ids", "question_ids", "repetitions", "measurement_type", "locale", "country", "language")
	p := &runs.Proposal{
		ModelIDs:        o.UniqueIDs("model_ids", maxModels, catalogID.form(), catalogID.want),
		QuestionIDs:     o.UniqueIDs("question_ids", maxQuestions, catalogID.form(), catalogID.want),
		Repetitions:     o.Positive("repetitions"),
		MeasurementType: o.Matching("measurement_type", measurementType.form(), measurementType.want),
		Locale:          o.Matching("locale", locale.form(), locale.want),
		Country:         o.Matching("country", country.form(), country.want),
		Language:        o.Matching("language", language.form(), language.want),
	}
	return p, f
}
