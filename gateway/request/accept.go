package request

import (
	"net/http"
	"strconv"
	"strings"
)

// PrefersCSV reports whether a request prefers text/csv to application/json ([RFC 9110], section 12.5.1). A tie is
// JSON.
//
// [RFC 9110]: https://www.rfc-editor.org/rfc/rfc9110
func PrefersCSV(h http.Header) bool {
	accept := strings.Join(h["Accept"], ",")
	return accept != "" && quality(accept, "text", "csv") > quality(accept, "application", "json")
}

// PrefersMarkdown reports whether a request lists text/markdown with a weight that is not below the weight of text/html.
// Ranges such as text/* do not count: a browser that accepts everything gets HTML.
func PrefersMarkdown(h http.Header) bool {
	accept := strings.Join(h["Accept"], ",")
	weight := listed(accept, "text/markdown")
	return weight > 0 && weight >= listed(accept, "text/html")
}

// listed returns the weight of a media type that is listed itself, or 0.
func listed(accept, mediaType string) (weight float64) {
	for item := range strings.SplitSeq(accept, ",") {
		name, parameters, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(name), mediaType) {
			weight = max(weight, weightOf(parameters))
		}
	}
	return weight
}

// quality returns the weight of a media type, from 0 to 1, by the most specific range that matches it.
func quality(accept, kind, subtype string) float64 {
	weight, best := 0.0, 0
	for item := range strings.SplitSeq(accept, ",") {
		mediaRange, parameters, _ := strings.Cut(item, ";")
		specific := 0
		switch strings.ToLower(strings.TrimSpace(mediaRange)) {
		case kind + "/" + subtype:
			specific = 3
		case kind + "/*":
			specific = 2
		case "*/*":
			specific = 1
		}
		if specific > best {
			weight, best = weightOf(parameters), specific
		}
	}
	return weight
}

// weightOf returns the parameter q, which is 1 if it is missing. One that is malformed is 0.
func weightOf(parameters string) float64 {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || !(q >= 0 && q <= 1) {
				return 0
			}
			return q
		}
	}
	return 1
}
