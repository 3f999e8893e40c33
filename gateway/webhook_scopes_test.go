package gateway_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/store"
)

// TestURLOfPendingDeliveries: a key changes the URL of a webhook only if it may read the events of pending deliveries,
// even when the webhook no longer subscribes to them.
func TestURLOfPendingDeliveries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	account := f.accounts["golden hooks"]
	created := ask(g, f.keys["hooks"], "POST", "/v1/webhooks", `{"url":"https://a.example/","events":["alert.opened"]}`)
	var webhook struct{ ID string }
	must(t, json.Unmarshal(created.Body.Bytes(), &webhook))
	must(t, pgx.BeginFunc(t.Context(), f.pool, func(tx pgx.Tx) error {
		return webhooks.Record(t.Context(), tx, []events.Cause{{AccountID: account, Type: events.AlertOpened, SubjectID: store.NewID(), Data: []byte(`{}`)}})
	}))
	change := func(key, body string) string {
		w := ask(g, f.keys[key], "PATCH", "/v1/webhooks/"+webhook.ID, body)
		return w.Result().Status + " " + w.Body.String()
	}
	for _, step := range []struct{ key, body, want string }{
		{"hooks_only", `{"url":"https://b.example/"}`, "403"},                        // of the subscription
		{"hooks_only", `{"url":"https://a.example/","description":"Alerts"}`, "200"}, // the URL that it has
		{"hooks_only", `{"events":["webhook.test"]}`, "200"},
		{"hooks_only", `{"url":"https://b.example/"}`, "403"}, // of the delivery
		{"hooks", `{"url":"https://c.example/"}`, "200"},
	} {
		got := change(step.key, step.body)
		if !strings.HasPrefix(got, step.want) || step.want == "403" && !strings.Contains(got, "alerts:read") {
			t.Errorf("%s %s: got %s, want %s", step.key, step.body, got, step.want)
		}
	}
	f.exec(t, `UPDATE webhook_deliveries SET status = 'failed', attempts = 1, next_attempt_at = NULL`)
	if got := change("hooks_only", `{"url":"https://b.example/"}`); !strings.HasPrefix(got, "200") {
		t.Errorf("without a pending delivery: %s", got)
	}
}
