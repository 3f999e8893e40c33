package gateway

import (
	"context"
	"net/http"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/insights/webhooks"
	"aiv/store"
)

// deliveryDocument is the response of POST /v1/webhooks/{id}/resend and an item of GET /v1/webhooks/{id}/deliveries.
type deliveryDocument struct {
	EventID       string  `json:"event_id"`
	Type          string  `json:"type"`
	Status        string  `json:"status"`
	Attempts      int     `json:"attempts"`    // that were made
	LastStatus    *int    `json:"last_status"` // of the HTTP response; null: none was received
	LastError     *string `json:"last_error"`
	NextAttemptAt *string `json:"next_attempt_at"` // null: none will follow
	CreatedAt     string  `json:"created_at"`
	DeliveredAt   *string `json:"delivered_at"`
}

func newDeliveryDocument(d *webhooks.Delivery) deliveryDocument {
	return deliveryDocument{d.EventID.Text("evt"), d.Type, d.Status, d.Attempts, d.LastStatus, d.LastError,
		store.FormatTimeOrNil(d.NextAttemptAt), store.FormatTime(d.CreatedAt), store.FormatTimeOrNil(d.DeliveredAt)}
}

// deliveryList is filtered by status only.
var deliveryList = list[string, webhooks.Delivery]{
	filters: []filter[string]{
		wordFilter("status", webhooks.DeliveryStatuses(), func(status *string) *string { return status }),
	},
	read: func(ctx context.Context, db store.Querier, x *exchange, status string, page store.Page) ([]webhooks.Delivery, error) {
		id, err := webhookID(&x.routed)
		if err != nil {
			return nil, err
		}
		return webhooks.Deliveries(ctx, db, x.credential().AccountID, id, status, page)
	},
	sortKey: func(d *webhooks.Delivery) store.Position { return store.Position{Time: d.CreatedAt, ID: d.EventID} },
	append:  encoded(newDeliveryDocument),
}

// resendEvent requires the scope that reading the event requires. Package webhooks calls x.mayRead with the type of the
// event when it has read it.
func (g *Gateway) resendEvent(x *exchange, r *http.Request) error {
	event, err := readEventID(x, r)
	if err != nil {
		return err
	}
	endpoint, err := webhookID(r)
	if err != nil {
		return err
	}
	return g.respondInReads(x, http.StatusAccepted, func(ctx context.Context) (any, error) {
		return asDocument(newDeliveryDocument)(g.cfg.Webhooks.Resend(ctx, x.credential().AccountID, endpoint, event, x.mayRead))
	})
}

// readEventID reads the body {"event_id"} of a resend.
func readEventID(x *exchange, r *http.Request) (id store.ID, err error) {
	body, at, err := bodyOf(x, r)
	if err != nil {
		return id, err
	}
	var f problem.Faults
	o := request.NewObject(body, at, &f, "event_id")
	text := o.Text("event_id")
	if len(f) == 0 {
		// A malformed id in a body is a fault of the body. In a path it would be the id of nothing; see pathID.
		if id, err = store.ParseID("evt", text); err != nil {
			o.Fault("event_id", "must be the id of an event, such as evt_01k…")
		}
	}
	if len(f) > 0 {
		return id, &problem.Problem{Code: problem.InvalidRequest, Detail: "The body does not name an event.", Errors: f}
	}
	return id, nil
}
