package request

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"aiv/gateway/problem"
	"aiv/store/strictjson"
)

// CheckMediaType checks by the header of a request that its body is JSON in UTF-8, without a Content-Encoding.
func CheckMediaType(h http.Header) error {
	types := h["Content-Type"]
	if len(types) == 1 && types[0] != "application/json" {
		mediaType, params, err := mime.ParseMediaType(types[0])
		charset, given := params["charset"]
		if err != nil || mediaType != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
			types = nil
		}
	}
	if len(types) != 1 {
		return &problem.Problem{Code: problem.UnsupportedMediaType, Detail: "Send the body as Content-Type: application/json, in UTF-8."}
	}
	if slices.ContainsFunc(h["Content-Encoding"], func(encoding string) bool { return !strings.EqualFold(encoding, "identity") }) {
		return &problem.Problem{Code: problem.UnsupportedMediaType, Detail: "Send the body without a Content-Encoding."}
	}
	return nil
}

// Parse returns the value of a body, which must be strict JSON.
func Parse(body string, limits strictjson.Limits) (strictjson.Value, error) {
	v, err := strictjson.Parse(body, limits)
	if err != nil {
		return v, &problem.Problem{Code: problem.InvalidJSON, Detail: "The body is not strict JSON: " + err.Error() + "."}
	}
	return v, nil
}
