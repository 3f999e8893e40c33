package storetest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aiv/store/storetest"
)

// TestKilledClusterLeavesNoSharedMemory: otherwise some hundred runs of the tests use up what the kernel allows, and no
// PostgreSQL starts on the machine.
func TestKilledClusterLeavesNoSharedMemory(t *testing.T) {
	var segment string
	t.Run("killed", func(t *testing.T) {
		c := storetest.NewCluster(t)
		pid, err := os.ReadFile(filepath.Join(c.Data(), "postmaster.pid"))
		must(t, err)
		segment = strings.Fields(strings.Split(string(pid), "\n")[6])[1]
		if !slices.Contains(segments(t), segment) {
			t.Fatalf("the kernel has no segment %s", segment)
		}
		c.Kill()
	})
	// The kernel removes it when the last process that was killed has gone.
	storetest.Eventually(t, "segment "+segment+" is removed", func() bool { return !slices.Contains(segments(t), segment) })
}

// segments returns the ids of all System V shared memory.
func segments(t *testing.T) (ids []string) {
	table, err := os.ReadFile("/proc/sysvipc/shm")
	must(t, err)
	for line := range strings.Lines(string(table)) {
		ids = append(ids, strings.Fields(line)[1])
	}
	return ids
}
