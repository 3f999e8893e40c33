package gateway_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aiv/checks"
	"aiv/gateway"
)

// contractCodes are the problem codes that clients may switch on.
var contractCodes = strings.Fields(`
	invalid_json invalid_envelope invalid_request invalid_parameter idempotency_key_missing idempotency_key_invalid
	missing_credentials invalid_api_key
	entitlement_required insufficient_scope
	route_not_found run_not_found
	method_not_allowed body_too_large unsupported_media_type
	idempotency_key_reused idempotency_key_in_use
	unsupported_measurement_type repetitions_out_of_bounds too_many_jobs unknown_model unknown_question question_archived
	model_not_supported grounded_search_not_supported grounded_search_unavailable provider_unavailable
	rate_limit_exceeded internal_error unavailable overloaded`)

// TestEveryRouteAndCodeHasAGoldenCase holds the golden files to the contract and the contract to the golden files.
func TestEveryRouteAndCodeHasAGoldenCase(t *testing.T) {
	shown := make(map[string]bool)
	for _, file := range goldenFiles(t) {
		text, err := os.ReadFile(filepath.Join(goldenRoot, file))
		must(t, err)
		for _, m := range regexp.MustCompile(`"status":\d+,"code":"(\w+)".*`).FindAllStringSubmatch(string(text), -1) {
			if slices.Contains(contractCodes, m[1]) || !strings.Contains(m[0], `"check":`) { // a new check brings its own
				shown[m[1]] = true
			}
		}
	}
	for _, code := range contractCodes {
		if !shown[code] {
			t.Errorf("no golden file shows the code %s", code)
		}
		delete(shown, code)
	}
	for code := range shown {
		t.Errorf("a golden file shows the code %s, which the contract does not have", code)
	}
	for name, folder := range gateway.RouteFolders() {
		files, err := filepath.Glob(filepath.Join(goldenRoot, folder, "*.txt"))
		must(t, err)
		if len(files) == 0 {
			t.Errorf("the route %s has no golden file in %s", name, folder)
		}
	}
}

// TestEveryCheckHasItsGoldenFile: a check is shown refusing before it may refuse.
func TestEveryCheckHasItsGoldenFile(t *testing.T) {
	var names []string
	for _, c := range checks.Standard() {
		if slices.Contains(names, c.Name) {
			t.Errorf("two checks are called %s", c.Name)
		}
		names = append(names, c.Name)
		file := filepath.Join(goldenRoot, "runs.create", "rejected_"+c.Name+".txt")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(text), `"check":"`+c.Name+`"`) {
			t.Errorf("%s shows no refusal by %s", file, c.Name)
		}
	}
}
