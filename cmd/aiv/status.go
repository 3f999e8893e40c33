package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/database"
	"aiv/cmd/aiv/internal/service"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/schema"
)

// A status is the state of the service. What could not be read is null.
type (
	status struct {
		Ready      bool             `json:"ready"`
		Problem    *string          `json:"problem"` // why not
		Database   databaseStatus   `json:"database"`
		Migrations *migrationCounts `json:"migrations"`
		Roles      []roleStatus     `json:"roles"`
		Providers  []providerStatus `json:"providers"`
		Queue      *queueStatus     `json:"queue"`
		Workers    *int             `json:"workers_seen"` // in the last 5 minutes
		Oldest     *waitingJob      `json:"oldest_waiting"`
		Webhooks   *webhookStatus   `json:"webhooks"`
		Expiring   []expiringKey    `json:"expiring_keys"`    // within 14 days
		Tables     []tableStatus    `json:"tables,omitempty"` // of a database with Citus
	}
	databaseStatus struct {
		Reachable bool    `json:"reachable"`
		Version   *string `json:"version"` // of PostgreSQL
		database.Location
		ReadOnly bool `json:"read_only"`
	}
	// A roleStatus is of a role that was granted the privileges of a service.
	roleStatus struct {
		Name    string   `json:"name"`
		Service string   `json:"service"`
		Missing []string `json:"missing"`
	}
	migrationCounts struct {
		Applied int `json:"applied"`
		Pending int `json:"pending"`
		Changed int `json:"changed"`
		Newer   int `json:"newer"` // and compatible with this binary
		Unknown int `json:"unknown"`
	}
	providerStatus struct {
		Code  string   `json:"code"`
		Name  string   `json:"name"`
		Unmet []string `json:"unmet"`
		providerWork
	}
	expiringKey struct {
		ID        string `json:"id"`
		AccountID string `json:"account_id"`
		Name      string `json:"name"`
		KeyPrefix string `json:"key_prefix"`
		ExpiresAt string `json:"expires_at"`
	}
	webhookStatus struct {
		Pending    int     `json:"pending"`     // deliveries, counted up to 10,000
		LagSeconds float64 `json:"lag_seconds"` // how long the oldest due one has been due
	}
	// A waitingJob is of the oldest run with jobs to hand out.
	waitingJob struct {
		Provider     string `json:"provider"`
		RunCreatedAt string `json:"run_created_at"`
		Why          string `json:"why"`
	}
	queueStatus struct {
		OpenRuns         int64   `json:"open_runs"`
		QueuedJobs       int64   `json:"queued_jobs"`
		OldestCreatedAt  *string `json:"oldest_created_at"`
		OldestAgeSeconds *int64  `json:"oldest_age_seconds"`
	}
)

func showStatus(ctx context.Context, c *call) error {
	c.JSONFlag()
	c.databaseFlags()
	if _, err := c.Parse(); err != nil {
		return err
	}
	s, notReady := c.status(ctx)
	if ctx.Err() != nil || errors.As(notReady, new(*cli.UsageError)) {
		return notReady
	}
	if notReady != nil {
		s.Problem = new(redact(notReady.Error()))
	}
	s.Ready = notReady == nil
	if err := c.Print(s, s.write); err != nil {
		return err
	}
	if notReady != nil {
		return fmt.Errorf("not ready: %w", notReady)
	}
	return nil
}

// status returns what it could read, and why /readyz would fail: the database is unreachable or read-only, its migrations do not
// fit this binary, or a role that was granted privileges lacks some. Unmet dependencies of providers do not make the service
// unready.
func (c *call) status(ctx context.Context) (s status, notReady error) {
	source, err := c.source()
	if err != nil {
		return s, err
	}
	s.Database.Location = source.Location()
	notReady = c.withAnyDatabase(ctx, func(pool *pgxpool.Pool) error {
		s.Database.Reachable = true
		if err := pool.QueryRow(ctx, `SHOW server_version`).Scan(&s.Database.Version); err != nil {
			return err
		}
		migrations, err := schema.ReadStatus(ctx, pool)
		if err != nil {
			return err
		}
		s.Migrations = &migrationCounts{len(migrations.Applied), len(migrations.Pending), len(migrations.Changed),
			len(migrations.Newer), len(migrations.Unknown)}
		if err := migrations.Err(); err != nil {
			return source.In(err) // the tables may differ from what the rest expects
		}
		// What follows can be read nevertheless.
		notServing := schema.Writable(ctx, pool)
		if _, s.Database.ReadOnly = errors.AsType[*schema.ReadOnlyError](notServing); notServing != nil && !s.Database.ReadOnly {
			return notServing
		}
		if s.Tables, err = readTables(ctx, pool); err != nil {
			return err
		}
		providers, err := catalog.Providers(ctx, pool)
		if err != nil {
			return err
		}
		if err := s.readWork(ctx, pool, providers); err != nil {
			return err
		}
		queue, err := runs.ReadQueue(ctx, pool)
		if err != nil {
			return err
		}
		s.Queue = &queueStatus{OpenRuns: queue.OpenRuns, QueuedJobs: queue.QueuedJobs, OldestCreatedAt: store.FormatTimeOrNil(queue.Oldest)}
		if queue.Age != nil {
			s.Queue.OldestAgeSeconds = new(int64(*queue.Age / time.Second))
		}
		deliveries, err := webhooks.ReadBacklog(ctx, pool, service.MaxCounted)
		if err != nil {
			return err
		}
		s.Webhooks = &webhookStatus{deliveries.Pending, deliveries.Lag.Seconds()}
		expiring, err := auth.ReadExpiring(ctx, pool, service.ExpirySoon, service.MaxCounted)
		if err != nil {
			return err
		}
		s.Expiring = []expiringKey{}
		for _, k := range expiring {
			s.Expiring = append(s.Expiring, expiringKey{k.ID.Text("cred"), k.AccountID.Text("acct"), k.Name, k.KeyPrefix, store.FormatTime(k.ExpiresAt)})
		}
		lacking, err := s.readRoles(ctx, pool)
		if err != nil {
			return err
		}
		return source.In(cmp.Or(notServing, lacking))
	})
	if _, reached := errors.AsType[*store.EncodingError](notReady); reached {
		s.Database.Reachable = true
	}
	return s, notReady
}

// readRoles reads the roles that were granted privileges. lacking is a [*schema.PrivilegeError] if one of them cannot serve.
func (s *status) readRoles(ctx context.Context, pool *pgxpool.Pool) (lacking, err error) {
	granted, err := schema.GrantedRoles(ctx, pool)
	if err != nil {
		return nil, err
	}
	s.Roles = []roleStatus{}
	for _, g := range granted {
		role := roleStatus{g.Role, string(g.Service), []string{}}
		err := schema.CheckPrivileges(ctx, pool, g.Service, g.Role)
		if missing, ok := errors.AsType[*schema.PrivilegeError](err); ok {
			role.Missing, lacking = missing.Missing, cmp.Or(lacking, err)
		} else if err != nil {
			return nil, err
		}
		s.Roles = append(s.Roles, role)
	}
	return lacking, nil
}

// readWork reads what waits at the providers, and for what.
func (s *status) readWork(ctx context.Context, pool *pgxpool.Pool, providers []catalog.Provider) error {
	states, err := jobs.ProviderStates(ctx, pool)
	if err != nil {
		return err
	}
	seen, err := (&auth.Admin{Pool: pool}).WorkersSeen(ctx)
	if err != nil {
		return err
	}
	s.Workers = &seen
	s.Providers = []providerStatus{}
	var oldest *time.Time
	for _, p := range providers {
		status := providerStatus{Code: p.Code, Name: p.Name, Unmet: p.Unmet()}
		if i := slices.IndexFunc(states, func(s jobs.ProviderState) bool { return s.Code == p.Code }); i >= 0 {
			state := &states[i]
			status.providerWork = workOf(*state)
			if at := state.OldestRun; at != nil && (oldest == nil || at.Before(*oldest)) {
				oldest = at
				s.Oldest = &waitingJob{p.Code, store.FormatTime(*at), whyWaiting(state, seen)}
			}
		}
		s.Providers = append(s.Providers, status)
	}
	return nil
}

// whyWaiting returns why jobs of a provider wait.
func whyWaiting(s *jobs.ProviderState, workers int) string {
	if why := s.Blocked(); why != "" {
		return why
	}
	if workers == 0 {
		return "no worker was seen in the last 5 minutes"
	}
	return "it waits for a worker, for its turn, or for another try"
}

// write writes the status for people. Why it is not ready is an error, on stderr.
func (s *status) write(w io.Writer) {
	if s.Ready {
		cli.Row(w, "ready", "yes")
	} else {
		cli.Row(w, "ready", "NO")
	}
	cli.Row(w, "database", s.Database.text())
	if m := s.Migrations; m != nil {
		cell := strconv.Itoa(m.Applied) + " applied"
		for _, more := range []struct {
			n    int
			word string
		}{{m.Pending, "pending"}, {m.Changed, "changed"}, {m.Newer, "newer"}, {m.Unknown, "unknown"}} {
			if more.n > 0 {
				cell += fmt.Sprintf(", %d %s", more.n, more.word)
			}
		}
		cli.Row(w, "migrations", cell)
	}
	for _, r := range s.Roles {
		cell := r.Name + " for aiv " + r.Service
		if len(r.Missing) > 0 {
			cell += ", LACKS " + cli.Count(len(r.Missing), "PRIVILEGE", "PRIVILEGES")
		}
		cli.Row(w, "role", cell)
	}
	if s.Tables != nil {
		cli.Row(w, "tables", tablesText(s.Tables))
	}
	if s.Queue != nil {
		cli.Row(w, "queue", s.Queue.text())
	}
	if s.Webhooks != nil {
		cli.Row(w, "webhooks", s.Webhooks.text())
	}
	if len(s.Expiring) > 0 {
		cli.Row(w, "keys", cli.Count(len(s.Expiring), "expires", "expire")+" within 14 days")
	}
	if s.Providers != nil {
		s.writeWork(w)
		s.writeProviders(w)
	}
	if len(s.Expiring) > 0 {
		fmt.Fprintln(w, "\nThese keys expire within 14 days (issue successors with aiv keys rotate ID -expires TIME):")
		for _, k := range s.Expiring {
			cli.Row(w, "  "+k.ID, k.AccountID, k.Name, k.KeyPrefix+"…", k.ExpiresAt)
		}
	}
}

func (d *databaseStatus) text() string {
	state := "unreachable"
	switch {
	case d.Version != nil && d.ReadOnly:
		state = "PostgreSQL " + *d.Version + ", READ-ONLY"
	case d.Version != nil:
		state = "PostgreSQL " + *d.Version
	case d.Reachable:
		state = "not usable"
	}
	if d.Name == "" {
		return state
	}
	return state + "; " + d.Location.String()
}

func (q *queueStatus) text() string {
	text := cli.Count(int(q.OpenRuns), "open run", "open runs") + ", " + cli.Count(int(q.QueuedJobs), "queued job", "queued jobs")
	if q.OldestAgeSeconds != nil {
		text += ", the oldest for " + cli.FormatDuration(time.Duration(*q.OldestAgeSeconds)*time.Second)
	}
	return text
}

func (w *webhookStatus) text() string {
	text := cli.Count(w.Pending, "pending delivery", "pending deliveries")
	if w.LagSeconds > 0 {
		text += ", due for " + cli.FormatDuration(time.Duration(w.LagSeconds*float64(time.Second)).Round(time.Second))
	}
	return text
}

// writeWork writes the workers, and the providers that have jobs or are paused.
func (s *status) writeWork(w io.Writer) {
	cli.Row(w, "workers", strconv.Itoa(*s.Workers)+" seen in the last 5 minutes")
	if s.Oldest != nil {
		cli.Row(w, "oldest job", fmt.Sprintf("of %s, in a run of %s: %s", s.Oldest.Provider, s.Oldest.RunCreatedAt, s.Oldest.Why))
	}
	for _, p := range s.Providers {
		if p.Waiting+p.Leased > 0 || p.paused() != "" {
			cli.Row(w, "  "+p.Code, fmt.Sprintf("%d waiting, %d leased; %s", p.Waiting, p.Leased, cmp.Or(p.paused(), "not paused")))
		}
	}
}

// writeProviders lists the providers with unmet dependencies.
func (s *status) writeProviders(w io.Writer) {
	var lacking []providerStatus
	for _, p := range s.Providers {
		if len(p.Unmet) > 0 {
			lacking = append(lacking, p)
		}
	}
	if len(s.Providers) == 0 {
		cli.Row(w, "providers", "none; import a catalog with aiv catalog import")
		return
	}
	if len(lacking) == 0 {
		cli.Row(w, "providers", fmt.Sprintf("%d, all dependencies met", len(s.Providers)))
		return
	}
	cli.Row(w, "providers", fmt.Sprintf("%d, of which %d HAVE UNMET DEPENDENCIES", len(s.Providers), len(lacking)))
	fmt.Fprintln(w, "\nRuns with models of these providers are rejected, and their jobs are not handed out, until these dependencies are recorded\nas met (aiv providers met):")
	for _, p := range lacking {
		cli.Row(w, "  "+p.Code, strings.Join(p.Unmet, ", "))
	}
}
