package gateway

import (
	"encoding/json"

	"aiv/insights"
)

// EventData encodes what events carry: documents as the routes of the same name return them.
type EventData struct{}

// Recommendation encodes an item of GET /v1/recommendations.
func (EventData) Recommendation(r *insights.Recommendation) ([]byte, error) {
	return json.Marshal(recommendationList.wire(r))
}

// Alert encodes an item of GET /v1/alerts.
func (EventData) Alert(a *insights.Alert) ([]byte, error) { return json.Marshal(alertList.wire(a)) }
