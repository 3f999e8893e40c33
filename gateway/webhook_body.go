package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/store/strictjson"
)

// readWebhookBody reads the members of a webhook that a client sets. Members that the body does not have are nil.
func (g *Gateway) readWebhookBody(x *exchange, r *http.Request, required, optional []string) (*webhooks.Change, error) {
	body, at, err := bodyOf(x, r)
	if err != nil {
		return nil, err
	}
	var f problem.Faults
	o := request.NewOpenObject(body, at, &f, required, optional)
	c := &webhooks.Change{Events: readEventTypes(o)}
	// The URL is stored in the form that ParseURL returns. A value that is no string has its fault already.
	if v := o.Member("url"); v != nil {
		text := o.Text("url")
		if v.Kind == strictjson.KindString {
			// The error is written for clients: it says what a URL must be.
			if text, err = g.cfg.Webhooks.ParseURL(text); err != nil {
				o.Fault("url", err.Error())
			}
		}
		c.URL = &text
	}
	if o.Member("description") != nil {
		c.Description = new(o.TextUpTo("description", webhooks.MaxDescription))
	}
	if o.Member("enabled") != nil {
		c.Enabled = new(o.Bool("enabled"))
	}
	if len(f) > 0 {
		return nil, &problem.Problem{Code: problem.InvalidRequest, Detail: "The body is not a valid webhook.", Errors: f}
	}
	return c, nil
}

// readEventTypes reads the member events: types, none twice, or "*" alone.
func readEventTypes(o request.Object) []string {
	types := events.Types()
	// A missing member has no items, and Array has added a fault for a wrong type or length.
	items := o.Array("events", "types", 1, len(types))
	if items == nil {
		return nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = item.Text
		at := "events/" + strconv.Itoa(i)
		// Each item gets at most one fault.
		switch first := slices.Index(texts[:i], item.Text); {
		case item.Kind == strictjson.KindString && item.Text == webhooks.All && len(items) > 1:
			o.Fault(at, `must be alone, because "*" means all types`)
		case item.Kind != strictjson.KindString || item.Text != webhooks.All && !slices.Contains(types, item.Text):
			o.Fault(at, "must be * or one of "+strings.Join(types, ", "))
		case first >= 0:
			o.Fault(at, fmt.Sprintf("duplicates events/%d", first))
		}
	}
	return texts
}
