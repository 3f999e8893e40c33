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

// TestDispatchMayCarryOutSchedules: the role of aiv dispatch has the privileges that schedules need.
func TestDispatchMayCarryOutSchedules(t *testing.T) {
	t.Parallel()
	m := newMonitoredOn(t, &database{pool: storetest.Hot(t)})
	m.run(t, mentions(4, 0))
	name, role := storetest.NewRole(t, m.pool, "_dispatch")
	must(t, schema.Grant(t.Context(), m.pool, capability.All, schema.Dispatch, name, "test"))
	storetest.Exec(t, m.pool, "GRANT USAGE ON SCHEMA clock TO "+role, "GRANT SELECT ON clock.ahead TO "+role)
	config := m.pool.Config()
	config.ConnConfig.RuntimeParams["role"] = name
	dispatch, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(dispatch.Close)
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
	m.verify(t)
}
