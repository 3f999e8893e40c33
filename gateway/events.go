package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"aiv/gateway/wire"
	"aiv/insights"
	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/runs"
	"aiv/runs/schedules"
	"aiv/store"
)

// eventDocument is the response of GET /v1/events/{id} and an item of GET /v1/events.
type eventDocument struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"` // such as run.completed
	CreatedAt string          `json:"created_at"`
	Data      json.RawMessage `json:"data"` // as it was recorded
}

func newEventDocument(e *events.Event) eventDocument {
	return eventDocument{e.ID.Text("evt"), e.Type, store.FormatTime(e.CreatedAt), e.Data}
}

// eventList leaves out events whose data the credential may not read.
var eventList = list[events.Filter, events.Event]{
	filters: []filter[events.Filter]{
		wordsFilter("type", events.Types(), func(f *events.Filter) *[]string { return &f.Types }),
		timeFilter("created_from", func(f *events.Filter) **time.Time { return &f.From }),
		timeFilter("created_to", func(f *events.Filter) **time.Time { return &f.To }),
	},
	read: func(ctx context.Context, db store.Querier, x *exchange, f events.Filter, page store.Page) ([]events.Event, error) {
		// Types that the credential may not read are left out of the query, so that pages are full.
		if f.Types == nil {
			f.Types = events.Types()
		}
		f.Types = slices.DeleteFunc(slices.Clone(f.Types), func(t string) bool { return !x.mayRead(t) })
		return events.List(ctx, db, x.credential().AccountID, f, page)
	},
	sortKey: func(e *events.Event) store.Position { return store.Position{Time: e.CreatedAt, ID: e.ID} },
	append:  encoded(newEventDocument),
}

// readEvent does not reveal whether an event exists that the credential may not read.
func (g *Gateway) readEvent(x *exchange, r *http.Request) error {
	id, err := pathID(r, "evt", events.ErrNotFound)
	if err != nil {
		return err
	}
	return g.respondInReads(x, http.StatusOK, func(ctx context.Context) (any, error) {
		e, err := events.Get(ctx, g.cfg.Reads, x.credential().AccountID, id)
		if err != nil {
			return nil, err
		}
		if !x.mayRead(e.Type) {
			return nil, events.ErrNotFound
		}
		return newEventDocument(e), nil
	})
}

// eventTypes are the types of events, with the scope that each requires besides webhooks:manage.
var eventTypes = slices.Concat(runs.Capability.Events, insights.Capability.Events, schedules.Capability.Events, webhooks.Capability.Events)

// readScope returns the scope that the data of an event requires besides webhooks:manage, or "". known is false for the
// types of a newer binary.
func readScope(eventType string) (scope string, known bool) {
	for _, e := range eventTypes {
		if e.Name == eventType {
			return e.Scope, true
		}
	}
	return "", false
}

// mayRead reports whether the credential has the read scope of an event type.
func (x *exchange) mayRead(eventType string) bool {
	scope, known := readScope(eventType)
	return known && (scope == "" || x.credential().HasScope(scope))
}

// maySubscribe returns a problem that names the read scopes which the credential lacks for event types.
func (x *exchange) maySubscribe(types []string) error {
	if slices.Contains(types, webhooks.All) {
		types = events.Types()
	}
	var lacking []string
	for _, t := range types {
		if scope, _ := readScope(t); !x.mayRead(t) && !slices.Contains(lacking, scope) {
			lacking = append(lacking, scope)
		}
	}
	if lacking == nil {
		return nil
	}
	return problems.InsufficientScope("The key lacks scopes that the events of this webhook require: "+strings.Join(lacking, ", ")+".", lacking)
}

// EventData encodes what events carry: documents as the routes of the same name return them.
type EventData struct{}

// Recommendation encodes an item of GET /v1/recommendations.
func (EventData) Recommendation(r *insights.Recommendation) []byte {
	return wire.Encode(newRecommendationDocument(r))
}

// Alert encodes an item of GET /v1/alerts.
func (EventData) Alert(a *insights.Alert) []byte { return wire.Encode(newAlertDocument(a)) }
