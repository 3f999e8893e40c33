package gateway

import (
	"errors"
	"net/http"

	"aiv/gateway/problem"
	"aiv/runs"
	"aiv/store"
)

// cancelRun answers POST /v1/runs/{id}/cancel with the run. An Idempotency-Key is ignored, because the request is idempotent
// without it.
func (g *Gateway) cancelRun(x *exchange, r *http.Request) error {
	if err := x.params.only(); err != nil {
		return err
	}
	if err := readEmptyBody(x, r); err != nil {
		return err
	}
	id, err := store.ParseID("run", r.PathValue("id"))
	if err != nil {
		return runNotFound()
	}
	ctx, cancel := g.deadline(x, r)
	defer cancel()
	run, err := g.cfg.Runs.Cancel(ctx, x.credential().AccountID, id)
	switch {
	case errors.Is(err, runs.ErrNotFound):
		return runNotFound()
	case errors.Is(err, runs.ErrFinal):
		return &problem.Problem{Code: problem.RunFinal, Detail: "The run is " + run.Status + "; a final run cannot be canceled."}
	case err != nil:
		return err
	}
	x.write(http.StatusOK, "application/json", appendRun(nil, run))
	return nil
}
