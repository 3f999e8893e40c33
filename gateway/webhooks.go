package gateway

import (
	"context"
	"net/http"

	"aiv/insights/webhooks"
	"aiv/store"
)

// webhookScope is required by all routes of webhooks and events.
var webhookScope = []string{"webhooks:manage"}

// webhookDocument is the response of GET /v1/webhooks/{id} and an item of GET /v1/webhooks.
type webhookDocument struct {
	ID             string   `json:"id"`
	URL            string   `json:"url"`
	Description    string   `json:"description"`
	Events         []string `json:"events"`          // types, or "*" alone
	Enabled        bool     `json:"enabled"`         // false if and only if there is a reason
	DisabledReason *string  `json:"disabled_reason"` // null: it is enabled
	CreatedAt      string   `json:"created_at"`
	UpdatedAt      string   `json:"updated_at"`
}

// webhookWithSecret is the response of the routes that make a secret. No other route shows the secret again.
type webhookWithSecret struct {
	webhookDocument
	Secret string `json:"secret"`
}

// newWebhookDocument returns the wire form of an endpoint. An endpoint is enabled unless there is a reason why not.
func newWebhookDocument(e *webhooks.Endpoint) webhookDocument {
	return webhookDocument{ID: e.ID.Text("wh"), URL: e.URL, Description: e.Description, Events: e.Events, Enabled: e.DisabledReason == nil,
		DisabledReason: e.DisabledReason, CreatedAt: store.FormatTime(e.CreatedAt), UpdatedAt: store.FormatTime(e.UpdatedAt)}
}

func newWebhookWithSecret(e *webhooks.Endpoint, secret string) webhookWithSecret {
	return webhookWithSecret{newWebhookDocument(e), secret}
}

// webhookList is the list of webhooks, newest first. It has no filter.
var webhookList = list[struct{}, webhooks.Endpoint]{
	read: func(ctx context.Context, db store.Querier, x *exchange, _ struct{}, page store.Page) ([]webhooks.Endpoint, error) {
		return webhooks.List(ctx, db, x.credential().AccountID, page)
	},
	sortKey: func(e *webhooks.Endpoint) store.Position { return store.Position{Time: e.CreatedAt, ID: e.ID} },
	append:  encoded(newWebhookDocument),
}

// createWebhook adds a webhook and responds with its secret. It requires the read scopes of the types.
func (g *Gateway) createWebhook(x *exchange, r *http.Request) error {
	c, err := g.readWebhookBody(x, r, []string{"url", "events"}, []string{"description"})
	if err != nil {
		return err
	}
	if err := x.maySubscribe(c.Events); err != nil {
		return err
	}
	// The default of the description is "".
	description := ""
	if c.Description != nil {
		description = *c.Description
	}
	return g.respondInReads(x, http.StatusCreated, func(ctx context.Context) (any, error) {
		e, secret, err := g.cfg.Webhooks.Create(ctx, x.credential().AccountID, *c.URL, description, c.Events)
		if err != nil {
			return nil, err
		}
		x.set("Location", Base+"?path=/v1/webhooks/"+e.ID.Text("wh"))
		return newWebhookWithSecret(e, secret), nil
	})
}

// readWebhook responds with a webhook, without its secret.
func (g *Gateway) readWebhook(x *exchange, r *http.Request) error {
	id, err := webhookID(r)
	if err != nil {
		return err
	}
	return g.respondInReads(x, http.StatusOK, func(ctx context.Context) (any, error) {
		return asDocument(newWebhookDocument)(g.cfg.Webhooks.Get(ctx, x.credential().AccountID, id))
	})
}

// changeWebhook requires the read scopes of the new types. For a new URL it also requires the read scopes of the
// current types and of pending deliveries, whose events may be sent there.
func (g *Gateway) changeWebhook(x *exchange, r *http.Request) error {
	c, err := g.readWebhookBody(x, r, nil, []string{"url", "events", "description", "enabled"})
	if err != nil {
		return err
	}
	// Without new types, c.Events is nil and requires nothing.
	if err := x.maySubscribe(c.Events); err != nil {
		return err
	}
	id, err := webhookID(r)
	if err != nil {
		return err
	}
	// For a new URL, Update calls maySubscribe with the current and pending types, under the lock of the webhook.
	return g.respondInReads(x, http.StatusOK, func(ctx context.Context) (any, error) {
		return asDocument(newWebhookDocument)(g.cfg.Webhooks.Update(ctx, x.credential().AccountID, id, *c, x.maySubscribe))
	})
}

func (g *Gateway) deleteWebhook(x *exchange, r *http.Request) error {
	return g.deleteInReads(x, r, webhookID, g.cfg.Webhooks.Delete)
}

// rotateWebhook responds with a new secret.
func (g *Gateway) rotateWebhook(x *exchange, r *http.Request) error {
	id, err := x.webhookCommand(r)
	if err != nil {
		return err
	}
	return g.respondInReads(x, http.StatusOK, func(ctx context.Context) (any, error) {
		e, secret, err := g.cfg.Webhooks.Rotate(ctx, x.credential().AccountID, id)
		if err != nil {
			return nil, err
		}
		return newWebhookWithSecret(e, secret), nil
	})
}

// testWebhook has an event sent to the webhook only, and responds with the event.
func (g *Gateway) testWebhook(x *exchange, r *http.Request) error {
	id, err := x.webhookCommand(r)
	if err != nil {
		return err
	}
	return g.respondInReads(x, http.StatusAccepted, func(ctx context.Context) (any, error) {
		return asDocument(newEventDocument)(g.cfg.Webhooks.Test(ctx, x.credential().AccountID, id))
	})
}

// webhookCommand reads a request that has the body {}.
func (x *exchange) webhookCommand(r *http.Request) (id store.ID, err error) {
	if err := readEmptyBody(x, r); err != nil {
		return id, err
	}
	return webhookID(r)
}

func webhookID(r *http.Request) (store.ID, error) {
	return pathID(r, "wh", webhooks.ErrEndpointNotFound)
}
