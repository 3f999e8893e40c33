package schedules_test

import (
	"testing"
	"time"

	"aiv/cmd/aiv/capability"
	"aiv/runs/schedules"
	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// TestRolesMayCarryOutSchedules: the roles of aiv dispatch and aiv serve have the privileges that schedules need. That of aiv dispatch
// cannot read the hashes of keys or change what customers set.
func TestRolesMayCarryOutSchedules(t *testing.T) {
	t.Parallel()
	m := newMonitoredOn(t, &database{pool: storetest.Hot(t)})
	m.run(t, mentions(4, 0))
	owner := m.pool
	as := func(service schema.Service) *pgxpool.Pool {
		name, role := storetest.NewRole(t, owner, "_"+string(service))
		must(t, schema.Grant(t.Context(), owner, capability.All, service, name, "test"))
		storetest.Exec(t, owner, "GRANT USAGE ON SCHEMA clock TO "+role, "GRANT SELECT ON clock.ahead TO "+role)
		config := owner.Config()
		config.ConnConfig.RuntimeParams["role"] = name
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		must(t, err)
		t.Cleanup(pool.Close)
		return pool
	}
	dispatch := as(schema.Dispatch)
	m.process = m.scheduler(t, dispatch)
	m.run(t, mentions(0, 3))
	if got := m.outlineAlerts(t); got == "" {
		t.Error("no alert")
	}
	m.advance(-2 * time.Hour) // a purge refuses a clock that is ahead
	for _, task := range m.process.Tasks() {
		must(t, task.Run(t.Context()))
	}
	must(t, ignore(schedules.ReadBacklog(t.Context(), dispatch)))
	for _, sql := range []string{`SELECT key_hash FROM credentials`, `UPDATE schedules SET name = 'x'`, `DELETE FROM schedules`, `DELETE FROM alerts`,
		`UPDATE credentials SET revoked_at = NULL`} {
		if _, err := dispatch.Exec(t.Context(), sql); err == nil {
			t.Errorf("aiv dispatch may %s", sql)
		}
	}
	serve := schedules.New(config(as(schema.Serve)))
	must(t, ignore(serve.Create(t.Context(), m.account, m.credential, change("by serve", schedules.Daily))))
	must(t, ignore(serve.Update(t.Context(), m.account, m.schedule.ID, m.credential, schedules.Change{Status: new(schedules.Paused)})))
	must(t, serve.Delete(t.Context(), m.account, m.schedule.ID))
	m.verify(t)
}
