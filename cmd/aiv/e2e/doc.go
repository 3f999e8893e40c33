// Package e2e has the tests that start real aiv processes: faults, several processes, upgrade, restore, TLS, systemd.
package e2e
