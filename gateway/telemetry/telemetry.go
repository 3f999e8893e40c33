// Package telemetry lets operators observe a service: the log of requests, the metrics, and the pages of the admin
// listener. Packages gateway and gateway/worker count and log their requests with it, and command aiv serves the admin
// pages. It owns no table.
package telemetry
