package reference_test

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
	"aiv/gateway/reference"
	"aiv/store"
)

// TestWordsAreOfWhatThereIs: nothing is said of what the gateway has no more, and something of each code that is its own.
// (A route, parameter or member of which nothing is said keeps the reference from being made at all.)
func TestWordsAreOfWhatThereIs(t *testing.T) {
	w := httptest.NewRecorder()
	gateway.New(gateway.Config{Log: slog.New(slog.DiscardHandler), NewID: store.NewID, Metrics: gateway.NewMetrics()}).
		ServeHTTP(w, httptest.NewRequest("GET", gateway.Base+"/openapi.json", nil))
	type operation struct {
		OperationID string
		Parameters  []struct{ Name string }
	}
	var d struct {
		Paths      map[string]map[string]operation
		Components struct {
			Schemas struct {
				Problem struct {
					Properties struct{ Code struct{ Enum []string } }
				}
			}
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	var routes, parameters []string
	used := make(map[string]bool)
	for path, item := range d.Paths {
		if path == gateway.Base {
			continue
		}
		for method, o := range item {
			name := map[string]string{"get": "GET ", "post": "POST "}[method] + path[len(gateway.Base):]
			routes = append(routes, name)
			for _, p := range o.Parameters {
				used[name+" "+p.Name] = true
				used[p.Name] = true
			}
		}
	}
	for _, name := range reference.Words()["parameters"] {
		if used[name] {
			parameters = append(parameters, name)
		}
	}
	for kind, want := range map[string][]string{"routes": routes, "parameters": parameters, "codes": d.Components.Schemas.Problem.Properties.Code.Enum} {
		got := reference.Words()[kind]
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-there are +are spoken of):\n%s", kind, diff)
		}
	}
}
