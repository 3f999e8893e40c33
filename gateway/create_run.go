package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"aiv/idempotency"
	"aiv/runs"
)

// runCreated is the answer of POST /v1/runs.
type runCreated struct {
	ID                 string `json:"id"`
	Status             string `json:"status"`
	TotalJobs          int    `json:"total_jobs"`
	MeasurementType    string `json:"measurement_type"`
	MethodologyVersion string `json:"methodology_version"`
}

func (g *Gateway) createRun(x *exchange, r *http.Request) error {
	if err := x.params.only(); err != nil {
		return err
	}
	body, at := x.envelope, "#/body"
	if body == nil {
		v, err := readJSON(x, r)
		if err != nil {
			return err
		}
		body, at = &v, "#"
	}
	proposal, f := readProposal(*body, at)
	x.envelope, body = nil, nil // what it was read from takes many times the memory
	if len(f) > 0 {
		return &problem{code: codeInvalidRequest, detail: "The body is not that of a run.", errors: f}
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	proposal.Credential, proposal.CatalogRevision = x.credential(), x.admission.CatalogRevision

	ctx, cancel := g.deadline(x, r)
	defer cancel()
	receipt, err := g.cfg.Runs.Create(ctx, &runs.Order{
		Proposal: proposal, Method: x.route.method, Route: x.route.path, Key: key, Answer: encodeRunCreated,
	})
	if refusal, ok := errors.AsType[*runs.Refusal](err); ok {
		return refused(refusal, at)
	}
	if err != nil {
		return err
	}
	x.set("Location", Base+"?path=/v1/runs/"+receipt.RunID.Text("run"))
	if receipt.Replayed {
		x.set("Idempotent-Replayed", "true")
	}
	x.write(http.StatusAccepted, "application/json", receipt.Answer)
	return nil
}

func encodeRunCreated(r *runs.Run) []byte {
	return encode(runCreated{r.ID.Text("run"), r.Status, r.TotalJobs, r.MeasurementType, r.MethodologyVersion})
}

func idempotencyKey(h http.Header) (string, error) {
	sent := h["Idempotency-Key"]
	if len(sent) == 0 {
		return "", &problem{code: codeIdempotencyKeyMissing,
			detail: "Send an Idempotency-Key of your own, such as a UUID, with each run that you create, and the same key with each retry."}
	}
	if len(sent) > 1 {
		return "", &problem{code: codeIdempotencyKeyInvalid, detail: "The header Idempotency-Key is given more than once."}
	}
	key, err := idempotency.ParseKey(sent[0])
	if err != nil {
		return "", &problem{code: codeIdempotencyKeyInvalid,
			detail: fmt.Sprintf("An Idempotency-Key is 1 to %d visible ASCII characters: %v.", idempotency.MaxKeyLength, err)}
	}
	return key, nil
}

// Bounds of a run that hold whatever its methodology.
const (
	maxModels    = 50
	maxQuestions = 500
)

var (
	catalogID = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}$`)
	locale    = regexp.MustCompile(`^[a-z]{2}-[A-Z]{2}$`)
	country   = regexp.MustCompile(`^[A-Z]{2}$`)
	language  = regexp.MustCompile(`^[a-z]{2,3}(-[A-Z]{2})?$`)
	word      = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// readProposal reads the body of POST /v1/runs. All its members are required.
func readProposal(body value, at string) (*runs.Proposal, faults) {
	var f faults
	o := f.object(body, at, "model_ids", "question_ids", "repetitions", "measurement_type", "locale", "country", "language")
	p := &runs.Proposal{
		ModelIDs:        o.ids("model_ids", maxModels),
		QuestionIDs:     o.ids("question_ids", maxQuestions),
		Repetitions:     o.positive("repetitions"),
		MeasurementType: o.matching("measurement_type", word, "a word of a-z, 0-9 and _, such as grounded"),
		Locale:          o.matching("locale", locale, "a language and a region, such as it-IT"),
		Country:         o.matching("country", country, "two upper-case letters, such as IT"),
		Language:        o.matching("language", language, "a language such as it, or one with a region, such as it-IT"),
	}
	return p, f
}

// matching reads a string of the given form.
func (o object) matching(name string, form *regexp.Regexp, is string) string {
	v, ok := o.member(name)
	if ok && (v.kind != kindString || !form.MatchString(v.text)) {
		o.faults.add(o.at+"/"+name, "must be "+is)
	}
	return v.text
}

// positive reads an integer from 1. One too large for any bound is read as the largest there is.
func (o object) positive(name string) int64 {
	v, ok := o.member(name)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	if v.kind != kindNumber || n < 1 || err != nil && !errors.Is(err, strconv.ErrRange) {
		o.faults.add(o.at+"/"+name, "must be an integer from 1")
	}
	return n
}

// ids reads an array of 1 to most catalog ids, no id twice.
func (o object) ids(name string, most int) []string {
	at := o.at + "/" + name
	v, ok := o.member(name)
	if !ok {
		return nil
	}
	if v.kind != kindArray {
		o.faults.add(at, "must be an array of ids, not "+v.describe())
		return nil
	}
	if n := len(v.items); n < 1 || n > most {
		o.faults.add(at, fmt.Sprintf("must hold 1 to %d ids, not %d", most, n))
		return nil
	}
	ids := make([]string, len(v.items))
	seen := make(map[string]bool, len(v.items))
	for i, item := range v.items {
		switch {
		case item.kind != kindString || !catalogID.MatchString(item.text):
			o.faults.add(at+"/"+strconv.Itoa(i), "must be an id: 1 to 128 of letters, digits and . _ : / -")
		case seen[item.text]:
			o.faults.add(at+"/"+strconv.Itoa(i), "stands in the array already")
		}
		seen[item.text] = true
		ids[i] = item.text
	}
	return ids
}
