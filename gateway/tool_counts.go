package gateway

import (
	"context"
	"sync/atomic"

	"aiv/gateway/mcp"
	"aiv/gateway/telemetry"
)

// toolCounts counts calls of tools by the name of the tool and by outcome.
type toolCounts map[string]*[2]atomic.Uint64

// outcomes are the outcomes of calls: whether the result is a problem.
var outcomes = [2]string{"ok", "error"}

func newToolCounts() toolCounts {
	c := make(toolCounts)
	for _, t := range mcp.Tools() {
		c[t.Name] = new([2]atomic.Uint64)
	}
	return c
}

func (c toolCounts) count(tool string, ok bool) {
	if ok {
		c[tool][0].Add(1)
	} else {
		c[tool][1].Add(1)
	}
}

// WriteToolCalls adds the counts of tool calls to a page of metrics.
func (g *Gateway) WriteToolCalls(_ context.Context, e *telemetry.Exposition) {
	e.Family("aiv_mcp_calls_total", "counter", "Calls of tools by assistants, by tool and outcome.")
	for _, t := range mcp.Tools() {
		for i, outcome := range outcomes {
			e.Sample(float64(g.toolCalls[t.Name][i].Load()), "tool", t.Name, "outcome", outcome)
		}
	}
}
