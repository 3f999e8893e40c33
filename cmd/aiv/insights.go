package main

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/cli"
	"aiv/gateway"
	"aiv/insights"
	"aiv/insights/webhooks"
)

// insightsGroup returns the commands of aiv insights.
func insightsGroup() cli.Command {
	return cli.Command{
		Name:    "insights",
		Summary: "Import recommendations and alerts",
		Commands: []cli.Command{
			{
				Name:     "import",
				Summary:  "Import a JSON Lines file of insights, completely or not at all",
				Usage:    "FILE|- [-json]",
				Examples: []string{"aiv insights import insights.jsonl", "aiv insights import - <insights.jsonl"},
				Run:      audited(insightsImport),
			},
		},
	}
}

// importedInsights counts the lines of each kind in a file.
type importedInsights struct {
	Recommendations int `json:"recommendations"`
	Alerts          int `json:"alerts"`
}

// insightsImport also records an event for each insight that becomes current, in the same transaction: webhooks
// deliver them.
func insightsImport(ctx context.Context, c *call) error {
	return c.importFile(ctx, func(pool *pgxpool.Pool, file io.Reader, progress func(int)) (any, string, error) {
		admin := insights.Admin{Pool: pool, Actor: c.actor(), Events: gateway.EventData{}, Record: webhooks.RecordMany}
		n, err := admin.Import(ctx, file, progress)
		return importedInsights(n), fmt.Sprintf("%s and %s", cli.Count(n.Recommendations, "recommendation", "recommendations"),
			cli.Count(n.Alerts, "alert", "alerts")), err
	})
}
