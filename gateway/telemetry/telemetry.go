// Package telemetry is what the operators of a service see of it: the log of requests, metrics, and the pages of the admin
// listener. Package gateway and gateway/worker count and log their requests by it, and command aiv serves the admin pages. It
// owns no table.
package telemetry
