package status

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/cmd/aiv/capability"
	"aiv/cmd/aiv/internal/service"
	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/schema"
)

// Read reads the status of a database that was reached. notReady is why /readyz would fail: the database is read-only,
// its migrations do not fit this binary, or a role that was granted privileges lacks some. Unmet dependencies of
// providers do not make the service unready. After an error, s has what was read before it.
func (s *Status) Read(ctx context.Context, pool *pgxpool.Pool) (notReady, err error) {
	s.Database.Reachable = true
	if err := pool.QueryRow(ctx, `SHOW server_version`).Scan(&s.Database.Version); err != nil {
		return nil, err
	}
	m, err := schema.ReadStatus(ctx, pool)
	if err != nil {
		return nil, err
	}
	s.Migrations = &Migrations{len(m.Applied), len(m.Pending), len(m.Changed), len(m.Newer), len(m.Unknown)}
	if err := m.Err(); err != nil {
		return err, nil // the tables may differ from what the rest expects
	}
	// What follows can be read from a read-only database too.
	notWritable := schema.Writable(ctx, pool)
	if _, s.Database.ReadOnly = errors.AsType[*schema.ReadOnlyError](notWritable); notWritable != nil && !s.Database.ReadOnly {
		return nil, notWritable
	}
	for _, read := range []func(context.Context, *pgxpool.Pool) error{s.readTables, s.readProviders, s.readQueue, s.readWebhooks, s.readBrands, s.readSchedules, s.readKeys} {
		if err := read(ctx, pool); err != nil {
			return nil, err
		}
	}
	lacking, err := s.readRoles(ctx, pool)
	if err != nil {
		return nil, err
	}
	return cmp.Or(notWritable, lacking), nil
}

// readTables reads where the tables are, of a database with Citus.
func (s *Status) readTables(ctx context.Context, pool *pgxpool.Pool) error {
	if found, err := schema.HasCitus(ctx, pool); err != nil || !found {
		return err
	}
	placements, err := schema.Placements(ctx, pool, capability.All)
	if err != nil {
		return err // placements is incomplete: a server may be lost
	}
	for _, p := range placements {
		s.Tables = append(s.Tables, Table{p.Table, p.Is, p.Want, p.Size})
	}
	return nil
}

// readProviders reads what waits at the providers, and for what.
func (s *Status) readProviders(ctx context.Context, pool *pgxpool.Pool) error {
	providers, err := catalog.Providers(ctx, pool)
	if err != nil {
		return err
	}
	states, err := jobs.ProviderStates(ctx, pool)
	if err != nil {
		return err
	}
	// A worker is seen when its token is used. An empty provider counts all workers.
	workers := &auth.Admin{Pool: pool}
	seen, err := workers.WorkersSeen(ctx, "")
	if err != nil {
		return err
	}
	s.Workers = &seen
	s.Providers = []Provider{}
	// oldest is the provider whose oldest waiting run was created first.
	var oldest *jobs.ProviderState
	for _, p := range providers {
		provider := Provider{Code: p.Code, Name: p.Name, Unmet: p.Unmet()}
		if i := slices.IndexFunc(states, func(s jobs.ProviderState) bool { return s.Code == p.Code }); i >= 0 {
			state := &states[i]
			provider.ProviderWork = WorkOf(*state)
			// A provider without waiting jobs has no oldest run.
			if at := state.OldestRun; at != nil && (oldest == nil || at.Before(*oldest.OldestRun)) {
				oldest = state
			}
		}
		s.Providers = append(s.Providers, provider)
	}
	if oldest == nil {
		return nil
	}
	// able counts only the workers that may claim this provider's jobs.
	able, err := workers.WorkersSeen(ctx, oldest.Code)
	if err != nil {
		return err
	}
	s.Oldest = &WaitingJob{oldest.Code, store.FormatTime(*oldest.OldestRun), whyWaiting(oldest, able)}
	return nil
}

// whyWaiting returns why the jobs of a provider's oldest run wait. workers is the number of workers that were seen
// lately and may claim them. The provider is checked first, then the job, then the workers.
func whyWaiting(s *jobs.ProviderState, workers int) string {
	if why := s.Blocked(); why != "" {
		return why
	}
	if s.RetryAt != nil {
		return "it waits for another try until " + store.FormatTime(*s.RetryAt)
	}
	if workers == 0 {
		return "no worker for its provider was seen in the last 5 minutes"
	}
	return "it waits for a worker or for its turn"
}

// readQueue reads how many jobs wait in open runs, and since when.
func (s *Status) readQueue(ctx context.Context, pool *pgxpool.Pool) error {
	queue, err := runs.ReadQueue(ctx, pool)
	if err != nil {
		return err
	}
	s.Queue = &Queue{OpenRuns: queue.OpenRuns, QueuedJobs: queue.QueuedJobs, OldestCreatedAt: store.FormatTimeOrNil(queue.Oldest)}
	if queue.Age != nil {
		s.Queue.OldestAgeSeconds = new(int64(*queue.Age / time.Second))
	}
	return nil
}

// readWebhooks reads how many deliveries are pending, and for how long the oldest has been due.
func (s *Status) readWebhooks(ctx context.Context, pool *pgxpool.Pool) error {
	deliveries, err := webhooks.ReadBacklog(ctx, pool, service.MaxCounted)
	if err != nil {
		return err
	}
	s.Webhooks = &Webhooks{deliveries.Pending, deliveries.Lag.Seconds()}
	return nil
}

// readBrands reads how many brands there are, and what waits to be recounted after their changes.
func (s *Status) readBrands(ctx context.Context, pool *pgxpool.Pool) error {
	active, err := brands.CountActive(ctx, pool)
	if err != nil {
		return err
	}
	waiting, err := visibility.ReadBacklog(ctx, pool)
	if err != nil {
		return err
	}
	s.Brands = &Brands{active, waiting.Answers, waiting.Oldest.Seconds()}
	return nil
}

// readSchedules reads how many schedules there are, and what waits to be carried out or evaluated.
func (s *Status) readSchedules(ctx context.Context, pool *pgxpool.Pool) error {
	b, err := schedules.ReadBacklog(ctx, pool)
	if err != nil {
		return err
	}
	s.Schedules = &Schedules{b.Active, b.Paused, b.Lag.Seconds(), b.Waiting, b.EvaluationLag.Seconds()}
	return nil
}

// readKeys reads the keys that expire soon.
func (s *Status) readKeys(ctx context.Context, pool *pgxpool.Pool) error {
	expiring, err := auth.ReadExpiring(ctx, pool, service.ExpirySoon, service.MaxCounted)
	if err != nil {
		return err
	}
	s.Expiring = []ExpiringKey{}
	for _, k := range expiring {
		s.Expiring = append(s.Expiring, ExpiringKey{k.ID.Text("cred"), k.AccountID.Text("acct"), k.Name, k.KeyPrefix, store.FormatTime(k.ExpiresAt)})
	}
	return nil
}

// readRoles reads the roles that were granted privileges. lacking is a [*schema.PrivilegeError] if one of them cannot
// serve.
func (s *Status) readRoles(ctx context.Context, pool *pgxpool.Pool) (lacking, err error) {
	granted, err := schema.GrantedRoles(ctx, pool)
	if err != nil {
		return nil, err
	}
	s.Roles = []Role{}
	for _, g := range granted {
		role := Role{g.Role, string(g.Service), []string{}}
		err := schema.CheckPrivileges(ctx, pool, capability.All, g.Service, g.Role)
		if missing, ok := errors.AsType[*schema.PrivilegeError](err); ok {
			// Only the first PrivilegeError is returned; s.Roles shows all of them.
			role.Missing, lacking = missing.Missing, cmp.Or(lacking, err)
		} else if err != nil {
			return nil, err
		}
		s.Roles = append(s.Roles, role)
	}
	return lacking, nil
}
