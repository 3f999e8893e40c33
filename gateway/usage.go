package gateway

import (
	"context"
	"net/http"
	"time"

	"aiv/gateway/request"
	"aiv/runs"
)

// usageDocument is the response of GET /v1/usage.
type usageDocument struct {
	Month string     `json:"month"` // 2026-11, in UTC
	Runs  int64      `json:"runs"`
	Jobs  usageJobs  `json:"jobs"`
	Quota usageQuota `json:"quota"`
}

// usageJobs counts jobs. Jobs that are not completed, failed or canceled are unfinished.
type usageJobs struct {
	Ordered   int64 `json:"ordered"` // in all runs of the month
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Canceled  int64 `json:"canceled"`
}

// usageQuota is the current quota. Its members are null without one.
type usageQuota struct {
	JobsPerMonth *int64 `json:"jobs_per_month"`
	Remaining    *int64 `json:"remaining"` // of the month shown
}

// monthForm is the layout of a month for package time.
const monthForm = "2006-01"

// readUsage responds with the usage of a month. The current month is the database's, not this machine's.
func (g *Gateway) readUsage(x *exchange, r *http.Request) error {
	f := x.params.Faults(x.route.input.query)
	var month *time.Time // nil: the current one
	for _, p := range x.params {
		if p.Name != "month" || p.Fault != "" {
			continue
		}
		m, err := time.Parse(monthForm, p.Value)
		if err != nil {
			f.AddParameter("month", "must be a month such as 2026-11")
		}
		month = &m
	}
	if len(f) > 0 {
		return request.InvalidParameters(f)
	}
	return g.respondInReads(x, http.StatusOK, func(ctx context.Context) (any, error) {
		u, err := g.cfg.Runs.MonthOf(ctx, x.credential().AccountID, month)
		return newUsageDocument(u, x.credential().JobsPerMonth), err
	})
}

// newUsageDocument returns the wire form of usage. quota is the current one, even for a past month; nil means none.
func newUsageDocument(u runs.MonthlyUsage, quota *int64) usageDocument {
	d := usageDocument{
		Month: u.Month.UTC().Format(monthForm), Runs: u.Runs,
		Jobs: usageJobs{u.Jobs, u.Completed, u.Failed, u.Canceled}, Quota: usageQuota{JobsPerMonth: quota},
	}
	if quota != nil {
		d.Quota.Remaining = new(max(0, *quota-u.Jobs))
	}
	return d
}
