package gateway

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"aiv/auth"
	"aiv/gateway/problem"
	"aiv/gateway/wire"
	"aiv/runs"
	"aiv/store"
)

// appendRun appends a run as JSON: the response of GET /v1/runs/{id} and an item of GET /v1/runs.
// TestOpenAPIAndGoldenFiles validates it by its schema.
func appendRun(b []byte, r *runs.Run) []byte {
	b = append(b, '{')
	b = wire.ID(b, "id", "run", r.ID)
	b = wire.Text(b, "status", r.Status)
	b = wire.Text(b, "measurement_type", r.MeasurementType)
	b = wire.Text(b, "methodology_version", r.MethodologyVersion)
	b = wire.Texts(b, "model_ids", r.ModelIDs)
	b = wire.Texts(b, "question_ids", r.QuestionIDs)
	b = wire.Int(b, "repetitions", r.Repetitions)
	b = wire.Text(b, "locale", r.Locale)
	b = wire.Text(b, "country", r.Country)
	b = wire.Text(b, "language", r.Language)
	b = wire.Int(b, "total_jobs", r.TotalJobs)
	// The counts add up to total_jobs.
	b = append(wire.Member(b, "jobs"), '{')
	b = wire.Int(b, "queued", r.Queued())
	b = wire.Int(b, "running", r.Running)
	b = wire.Int(b, "completed", r.Completed)
	b = wire.Int(b, "failed", r.Failed)
	b = wire.Int(b, "canceled", r.Canceled)
	b = append(b, '}')
	b = wire.Time(b, "created_at", r.CreatedAt)
	b = wire.TimeOrNull(b, "started_at", r.StartedAt)
	b = wire.TimeOrNull(b, "finished_at", r.FinishedAt)
	return append(b, '}')
}

// EncodeRun returns a run as GET /v1/runs/{id} does. Events about runs contain it.
func EncodeRun(r *runs.Run) []byte { return appendRun(make([]byte, 0, 512), r) }

// runList is the list of runs. With ids, the default limit is their number, so that they fit on one page.
var runList = list[runs.Filter, runs.Run]{
	filters: []filter[runs.Filter]{
		idsFilter("id", "run", func(f *runs.Filter) *[]store.ID { return &f.IDs }),
		wordsFilter("status", runs.Statuses, func(f *runs.Filter) *[]string { return &f.Statuses }),
		formFilter("measurement_type", measurementType, func(f *runs.Filter) *string { return &f.MeasurementType }),
		formFilter("country", country, func(f *runs.Filter) *string { return &f.Country }),
		formFilter("model_id", catalogID, func(f *runs.Filter) *string { return &f.ModelID }),
		timeFilter("created_from", func(f *runs.Filter) **time.Time { return &f.From }),
		timeFilter("created_to", func(f *runs.Filter) **time.Time { return &f.To }),
	},
	read:  ofAccount(runs.List),
	queue: runs.QueueList,
	limit: func(f *runs.Filter) int {
		if f.IDs == nil {
			return defaultLimit
		}
		return len(f.IDs)
	},
	sortKey: func(r *runs.Run) store.Position { return store.Position{Time: r.CreatedAt, ID: r.ID} },
	append:  appendRun,
}

// readRun does not wait in the queue of reads: package runs reads the runs of concurrent requests in one statement.
func (g *Gateway) readRun(x *exchange, r *http.Request) error {
	id, err := runID(r)
	if err != nil {
		return err
	}
	run, err := g.getRun(x, id)
	if err != nil {
		return err
	}
	x.write(http.StatusOK, "application/json", EncodeRun(run))
	return nil
}

// getRun returns a run of the account. If an early read has failed, the run is read again, because only the read of an
// admitted request may decide the response.
func (g *Gateway) getRun(x *exchange, id store.ID) (*runs.Run, error) {
	account, ctx := x.credential().AccountID, g.deadline(x)
	if e := x.early; e != nil && e.account == account && e.id == id {
		x.early = nil
		if run, err := e.reading.Get(ctx); err == nil || errors.Is(err, runs.ErrNotFound) {
			return run, err
		}
	}
	return g.cfg.Runs.Get(ctx, account, id)
}

// An earlyRead is the read of a run that began while its request was being counted. Counting ends with a commit, which
// takes about as long as the read.
type earlyRead struct {
	account, id store.ID
	reading     runs.Reading
}

// namedRun returns the run that a read names. ok is false for a request that reads no single run.
func (x *exchange) namedRun() (id store.ID, ok bool) {
	name, ok := strings.CutPrefix(x.path, "/v1/runs/")
	if !ok || len(x.params) > 0 {
		return id, false
	}
	id, err := store.ParseID("run", name) // fails for the routes below a run
	return id, err == nil
}

// readEarly begins to read a run for the cached credential of a request. The request may be refused, or admitted with a
// credential that has changed.
func (g *Gateway) readEarly(x *exchange, c *auth.Credential, id store.ID) {
	if !c.Plan.Entitled(auth.APIAccess) || !c.HasScope(readRuns...) {
		return
	}
	if reading, ok := g.cfg.Runs.StartGet(g.deadline(x), c.AccountID, id); ok {
		x.early = &earlyRead{c.AccountID, id, reading}
	}
}

// cancelRun responds to POST /v1/runs/{id}/cancel with the run. An Idempotency-Key is ignored, because the request is
// idempotent without it.
func (g *Gateway) cancelRun(x *exchange, r *http.Request) error {
	if err := readEmptyBody(x, r); err != nil {
		return err
	}
	id, err := runID(r)
	if err != nil {
		return err
	}
	ctx := g.deadline(x)
	run, err := g.cfg.Runs.Cancel(ctx, x.credential().AccountID, id)
	// Only with this error does Cancel return a run besides the error.
	if errors.Is(err, runs.ErrFinal) {
		return &problem.Problem{Code: problem.RunFinal, Detail: "The run is " + run.Status + "; a final run cannot be canceled."}
	}
	if err != nil {
		return err
	}
	x.write(http.StatusOK, "application/json", EncodeRun(run))
	return nil
}

func runID(r *http.Request) (store.ID, error) { return pathID(r, "run", runs.ErrNotFound) }
