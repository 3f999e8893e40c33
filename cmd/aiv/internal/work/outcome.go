package work

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// An Outcome is what has become of a job: Completed, Failed, Retry, Throttled, Unavailable, Released or Fatal, or one
// of them that is Noted.
type Outcome interface{ outcome() }

type (
	// Completed ends the job with an answer.
	Completed struct {
		Answer Answer

		// Raw is sent in place of Answer if it is not nil. It is valid JSON. If the dispatcher rejects it, as it
		// rejects an Answer that exceeds the bounds of the worker interface, the job is failed with the code
		// invalid_answer.
		Raw json.RawMessage
	}

	// Failed ends the job with an error. Another attempt would end the same way.
	Failed struct {
		Code    string // [a-z][a-z0-9_]{0,63}
		Message string
	}

	// Retry returns the job, which counts as a try. The fourth try fails the job with this error.
	Retry struct {
		Code    string
		Message string
		After   time.Duration // until the job is claimable; 0: the dispatcher chooses
	}

	// Throttled returns the job, because its provider limits requests or is unavailable. No worker gets jobs of the
	// provider for the time After. It does not count as a try.
	Throttled struct {
		After   time.Duration // 0: 30 s
		Message string        // for the log of this worker
	}

	// Unavailable returns the job, because its provider does not serve this operator until a person acts. No worker
	// gets jobs of the provider until it is resumed, and the worker ends with an error. It does not count as a try.
	Unavailable struct {
		Reason  string // secret, contract or configuration
		Message string // not blank
	}

	// Released returns the job at once, to any worker. It does not count as a try.
	Released struct{}

	// Fatal releases the job and ends the worker with an error: it cannot execute any job, such as without a program or
	// valid credentials.
	Fatal struct{ Err error }

	// Noted is an outcome with attributes for the line that the worker logs when the job is settled.
	Noted struct {
		Outcome
		Attrs []any // as slog.Logger.Info takes them
	}
)

func (Completed) outcome()   {}
func (Failed) outcome()      {}
func (Retry) outcome()       {}
func (Throttled) outcome()   {}
func (Unavailable) outcome() {}
func (Released) outcome()    {}
func (Fatal) outcome()       {}

// An Answer is what a model answered. The worker interface documents the bounds of its members.
type Answer struct {
	Text          string     `json:"text"`
	Citations     []Citation `json:"citations"`
	SearchQueries []string   `json:"search_queries"`
	ModelVersion  *string    `json:"model_version"`
	AnsweredAt    time.Time  `json:"answered_at"` // by the clock of Job.Now
	Searched      *bool      `json:"searched"`    // nil: not known
	Truncated     bool       `json:"truncated"`
	Usage         *Usage     `json:"usage"` // nil: not known
}

// Usage is what the provider charges an answer by. A nil number is not known.
type Usage struct {
	InputTokens  *int64 `json:"input_tokens"`
	OutputTokens *int64 `json:"output_tokens"`
	Searches     *int64 `json:"searches"`
}

// A Citation is a page that an answer refers to.
type Citation struct {
	URL   string  `json:"url"`
	Title *string `json:"title"`
}

// failure is the error of a settlement.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// newSettlement encodes an outcome with the members that the worker interface requires for it, and no others.
func newSettlement(t *task, o Outcome) settlement {
	s := settle(new(t.id()), o)
	s.task = t
	return s
}

// Encode returns what the settlement of a job with an outcome has besides the id and the attempt.
func Encode(o Outcome) json.RawMessage { return settle(nil, o).body }

// settle encodes an outcome with the id and the attempt of a job, if they are given.
func settle(id *attempt, o Outcome) (s settlement) {
	if n, ok := o.(Noted); ok {
		s = settle(id, n.Outcome)
		s.attrs = n.Attrs
		return s
	}
	// head also sets s.outcome, which is logged.
	head := func(outcome string) header {
		s.outcome = outcome
		return header{id, outcome}
	}
	var body any
	switch o := o.(type) {
	case Completed:
		body = struct {
			header
			Answer any `json:"answer"`
		}{head("completed"), o.answer()}
	case Failed:
		s.failure = failure{o.Code, printable(o.Message)}
		body = struct {
			header
			Error failure `json:"error"`
		}{head("failed"), s.failure}
	case Retry:
		s.failure = failure{o.Code, printable(o.Message)}
		body = struct {
			header
			Error failure `json:"error"`
			After *int    `json:"after_seconds"`
		}{head("retry"), s.failure, seconds(o.After)}
	case Throttled:
		s.failure.Message = o.Message // only for the log
		body = struct {
			header
			After *int `json:"after_seconds"`
		}{head("throttled"), seconds(o.After)}
	case Unavailable:
		s.failure = failure{o.Reason, printable(o.Message)}
		body = struct {
			header
			Reason  string `json:"reason"`
			Message string `json:"message"`
		}{head("unavailable"), s.failure.Code, s.failure.Message}
	default: // Released and Fatal
		body = head("released")
	}
	var err error
	if s.body, err = json.Marshal(body); err != nil { // a Raw that is not JSON, or a year that RFC 3339 does not have
		return settle(id, invalidAnswer("the answer cannot be encoded: "+err.Error()))
	}
	if len(s.body) > maxOutput { // the encoding of <, > and & takes six bytes
		return settle(id, invalidAnswer(fmt.Sprintf("the answer takes more than %d bytes when it is encoded", maxOutput)))
	}
	return s
}

// header has the members that all settlements have. A nil attempt leaves out id and attempt.
type header struct {
	*attempt
	Outcome string `json:"outcome"`
}

// answer returns what is encoded. Lists are never null.
func (c Completed) answer() any {
	if c.Raw != nil {
		return c.Raw
	}
	a := c.Answer
	if a.Citations == nil {
		a.Citations = []Citation{}
	}
	if a.SearchQueries == nil {
		a.SearchQueries = []string{}
	}
	return a
}

// invalidAnswer returns the outcome of a job whose answer the worker interface does not accept.
func invalidAnswer(message string) Outcome { return Failed{"invalid_answer", message} }

// seconds returns a time as the worker interface requires it: whole seconds from 1 to 3600, rounded up, or nil for the
// dispatcher's choice.
func seconds(d time.Duration) *int {
	if d <= 0 {
		return nil
	}
	return new(int(min((d+time.Second-1)/time.Second, 3600)))
}

const maxMessage = 2048 // characters

// printable returns what the worker interface accepts of a message: a Clean text of bounded length.
func printable(text string) string {
	text = Clean(text)
	if r := []rune(text); len(r) > maxMessage {
		return string(r[:maxMessage])
	}
	return text
}

// Clean returns what the worker interface accepts of a text: UTF-8 without U+0000 and noncharacters.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == 0 || r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}
