package engines

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"aiv/cmd/aiv/internal/work"
)

// A fault is how a job ends without an answer.
type fault struct {
	kind     kind
	code     string // of the job's error, or the reason of unavailable
	sentence string // for operators and customers
	status   int    // of the API's error; 0: none
	source   string // the status, the type and the code
	detail   string // prose of the API or the network, for the log only
}

// A kind is which outcome of package work a fault becomes. failed ends the job; retry counts as a try; throttled and
// unavailable do not. Both pause the provider for all workers: throttled for a time, unavailable until an operator
// resumes it.
type kind int

const (
	failed kind = iota
	retry
	throttled
	unavailable
)

// The faults. Another attempt cannot end otherwise than failed, and an unavailable provider serves no attempt until a
// person acts: so neither is repeated.
var (
	contentRefused = fault{kind: failed, code: "content_refused", sentence: "The model or the API refused to answer"}
	outputLimit    = fault{kind: failed, code: "output_limit", sentence: "The model reached its output limit before it answered"}
	invalidRequest = fault{kind: failed, code: "invalid_request", sentence: "The API rejected the request"}
	modelNotFound  = fault{kind: failed, code: "model_not_found", sentence: "The API does not have the model"}

	providerTimeout     = fault{kind: retry, code: "provider_timeout", sentence: "The API did not answer in time"}
	providerError       = fault{kind: retry, code: "provider_error", sentence: "The API failed"}
	providerUnreachable = fault{kind: retry, code: "provider_unreachable", sentence: "The API could not be reached"}
	invalidResponse     = fault{kind: retry, code: "invalid_response", sentence: "The response of the API is not valid"}
	emptyAnswer         = fault{kind: retry, code: "empty_answer", sentence: "The model answered without text"}

	tooManyRequests = fault{kind: throttled, sentence: "The API limits requests"}

	keyRejected     = fault{kind: unavailable, code: "secret", sentence: "The API rejected the key"}
	noCredit        = fault{kind: unavailable, code: "contract", sentence: "The account is out of credit or quota"}
	paymentRequired = fault{kind: unavailable, code: "contract", sentence: "The API asks for payment"}
	notConfigured   = fault{kind: unavailable, code: "configuration", sentence: "The account or region is not configured"}
	regionNotServed = fault{kind: unavailable, code: "configuration", sentence: "The region is not served"}
	wrongAddress    = fault{kind: unavailable, code: "configuration", sentence: "The address does not serve the API"}
	redirected      = fault{kind: unavailable, code: "configuration", sentence: "The address redirects, which is not followed"}
)

// because returns the fault with a detail for the log. The receiver is a copy, so that the variables above do not
// change.
func (f fault) because(detail string) fault {
	f.detail = detail
	return f
}

// from returns the fault with its source: a status, and what else is one word.
func (f fault) from(status int, words ...string) fault {
	f.status, f.source = status, strconv.Itoa(status)
	for _, w := range words {
		if oneWord.MatchString(w) {
			f.source += " " + w
		}
	}
	return f
}

// oneWord matches codes of APIs. Anything else may be prose, which could contain the question or the key.
var oneWord = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// outcome returns what the worker settles. after is the time for which the provider is throttled, if the API said it.
func (f fault) outcome(after time.Duration) work.Outcome {
	message := f.sentence + "."
	if f.source != "" {
		message += " (" + f.source + ")"
	}
	switch f.kind {
	case failed:
		return work.Failed{Code: f.code, Message: message}
	case retry:
		return work.Retry{Code: f.code, Message: message}
	case throttled:
		return work.Throttled{After: after, Message: message}
	}
	if f.source != "" {
		message = f.sentence + " (" + f.source + ")." // it precedes other sentences in notes and errors
	}
	return work.Unavailable{Reason: f.code, Message: message}
}

// prose returns what the log may have of the detail: one line of up to 300 characters without the key and the question.
// APIs repeat parts of keys in what they say about them.
func (f fault) prose(redact func(string) string) string {
	if f.code == "secret" || f.status == 401 || f.status == 403 {
		return ""
	}
	line := []rune(strings.Join(strings.Fields(work.Clean(redact(f.detail))), " "))
	return string(line[:min(len(line), 300)])
}
