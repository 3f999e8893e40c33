package engines

import (
	"slices"
	"strconv"
	"strings"
)

// An apiError is a response that reports an error.
type apiError struct {
	engine string
	status int
	known  bool // the body has the form of the API's errors; it may be a proxy's or a CDN's otherwise

	kind, code, message string // its type and code; of xai, message is its text
	body                value
}

// readError reads the body of an error, which may be invalid. Some APIs send it in a list.
func readError(engine string, status int, body value) *apiError {
	if items := body.list(); len(items) == 1 {
		body = items[0]
	}
	e := &apiError{engine: engine, status: status, body: body}
	inner := body.at("error")
	object, isObject := inner.any.(map[string]any)
	_, hasMessage := object["message"].(string)
	_, isText := inner.any.(string)
	// The forms: {"code": …, "error": TEXT} of xai; {"error": {…}} or its members at the top of servers for chat;
	// {"error": {…}} of the others, where gemini has its word in status, and perplexity may have FastAPI's detail.
	switch engine {
	case "xai":
		e.known = isText
		e.code, e.message = body.at("code").word(), inner.text()
	case "chat":
		_, e.known = body.any.(map[string]any)
		if !isObject {
			inner = body // vLLM's form
		}
		e.kind, e.code, e.message = inner.at("type").word(), inner.at("code").word(), inner.at("message").text()
		if isText {
			e.message = body.at("error").text()
		}
	default:
		e.known = isObject && hasMessage || engine == "perplexity" && body.at("detail").any != nil
		e.kind, e.code, e.message = inner.at("type").word(), inner.at("code").word(), inner.at("message").text()
		if engine == "gemini" {
			e.kind = inner.at("status").word()
		}
	}
	if (engine == "perplexity" || engine == "chat") && e.message == "" {
		e.message = detailOf(body)
	}
	// The error may be a proxy's, whose words say nothing about the API.
	if !e.known {
		e.kind, e.code, e.message = "", "", ""
	}
	return e
}

// has reports whether a text has one of the words, in any case. The words are given in lower case.
func has(text string, words ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// says reports whether the error has one of the words anywhere.
func (e *apiError) says(words ...string) bool {
	return has(e.kind+"\n"+e.code+"\n"+e.message, words...)
}

// is reports whether the code or the type is one of the words.
func (e *apiError) is(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return strings.EqualFold(e.code, w) || strings.EqualFold(e.kind, w)
	})
}

// An errorRule is what a response with a status means, if the condition holds (nil: always).
type errorRule struct {
	statuses []int
	when     func(*apiError) bool
	fault    fault
}

// known reports whether the error has the form of the API's errors.
func known(e *apiError) bool { return e.known }

// errorRules are in order: the first that fits holds. What none fits is a providerError, such as a 400 of a CDN.
var errorRules = []errorRule{
	{[]int{400}, func(e *apiError) bool {
		return e.engine == "gemini" && e.detail("reason", "API_KEY_INVALID")
	}, keyRejected},
	{[]int{400}, func(e *apiError) bool { return e.engine == "xai" && has(e.message, "incorrect api key") }, keyRejected},
	{[]int{400}, func(e *apiError) bool {
		return e.engine == "anthropic" && has(e.message, "usage limits", "credit balance")
	}, noCredit},
	{[]int{400}, func(e *apiError) bool {
		return e.engine == "anthropic" && has(e.message, "not enabled") || e.engine == "gemini" && e.is("FAILED_PRECONDITION")
	}, notConfigured},
	{[]int{400}, func(e *apiError) bool { return e.is("model_not_found", "invalid_model") }, modelNotFound},
	{[]int{400, 403, 422}, func(e *apiError) bool {
		return has(e.code, "content_policy") || strings.EqualFold(e.code, "invalid_prompt") ||
			e.engine == "xai" && has(e.message, "usage guidelines") || e.engine == "chat" && has(e.message, "moderation")
	}, contentRefused},
	{[]int{401, 403}, func(e *apiError) bool {
		return e.says("credit", "quota", "billing", "balance", "spending")
	}, noCredit},
	{[]int{403}, func(e *apiError) bool { return strings.EqualFold(e.code, "model_not_found") }, modelNotFound},
	{[]int{403}, func(e *apiError) bool {
		return strings.EqualFold(e.code, "unsupported_country_region_territory")
	}, regionNotServed},
	{[]int{401}, nil, keyRejected},
	// A 403 of unknown form may be a firewall's, so it is a providerError.
	{[]int{403}, known, keyRejected},
	{[]int{402}, nil, paymentRequired},
	// At the right address, a 404 is about the model. Any other 404 comes from a wrong address.
	{[]int{404}, func(e *apiError) bool { return e.says("model") }, modelNotFound},
	{[]int{404, 405, 410, 415}, nil, wrongAddress},
	{[]int{400, 413, 422}, known, invalidRequest},
	{[]int{408, 504}, nil, providerTimeout},
	{[]int{429}, (*apiError).quotaUsedUp, noCredit},
	// Groq sends 498, and Anthropic 529, for a lack of capacity.
	{[]int{429, 498, 503, 529}, nil, tooManyRequests},
}

// fault returns what the error means for the job. A status below 300 is not 200 here, so it is no answer.
func (e *apiError) fault() fault {
	f := providerError
	switch i := slices.IndexFunc(errorRules, e.fits); {
	case e.status < 300:
		f = invalidResponse
	case e.status < 400:
		f = redirected
	case i >= 0:
		f = errorRules[i].fault
	}
	return f.from(e.status, e.kind, e.code).because(e.message)
}

// fits reports whether a rule applies to the error.
func (e *apiError) fits(r errorRule) bool {
	return slices.Contains(r.statuses, e.status) && (r.when == nil || r.when(e))
}

// detailOf returns the text of the form that FastAPI gives errors: a string, or a list with a msg for each problem.
func detailOf(body value) string {
	var said []string
	for _, d := range body.at("detail").list() {
		said = append(said, d.at("msg").text())
	}
	return body.at("detail").text() + strings.Join(said, "; ")
}

// quotaUsedUp reports whether a 429 is about what was paid for, and not about the rate of requests.
func (e *apiError) quotaUsedUp() bool {
	switch e.engine {
	case "anthropic":
		return e.body.at("error", "details", "error_code").text() == "enforced_spend_limit_reached"
	case "gemini":
		// A quota of 0 is one that the account does not have, such as search in the free tier.
		return e.violation(func(v value) bool { return v.at("quotaValue").word() == "0" })
	case "xai":
		return has(e.message, "credits", "spending limit")
	}
	// The message is not searched, because prose about a rate may mention quotas.
	return has(e.code+"\n"+e.kind, "quota", "billing", "credit", "spend", "balance")
}

// detail reports whether one of Google's details has a member with a value.
func (e *apiError) detail(name, text string) bool {
	return slices.ContainsFunc(e.body.at("error", "details").list(), func(d value) bool {
		return d.at(name).text() == text
	})
}

// violation reports whether a condition holds for one of Google's violated quotas.
func (e *apiError) violation(holds func(value) bool) bool {
	for _, d := range e.body.at("error", "details").list() {
		if slices.ContainsFunc(d.at("violations").list(), holds) {
			return true
		}
	}
	return false
}

// isStatus returns the status of an error that a word names. 200 is not a status of an error.
func isStatus(word string) (int, bool) {
	n, err := strconv.Atoi(word)
	return n, err == nil && len(word) == 3 && n >= 100 && n <= 599 && n != 200
}
