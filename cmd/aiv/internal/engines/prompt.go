package engines

import (
	"bytes"
	"encoding/json"
	"strings"

	"aiv/cmd/aiv/internal/work"
)

// A prompt is what a request asks, and how.
type prompt struct {
	model, question           string
	country, language, locale string // of the run
	grounded                  bool
	limit                     int // output tokens; 0: not sent

	// Of anthropic: what the API does not take, and the turn that it has paused.
	unforced, unlocated bool
	turn
}

// newPrompt returns the prompt of a job's first request.
func newPrompt(job *work.Job, limit int) *prompt {
	return &prompt{
		model: job.Model.ProviderModel, question: job.Question.Text,
		country: job.Country, language: job.Language, locale: job.Locale,
		grounded: job.MeasurementType == "grounded", limit: limit,
	}
}

// system returns what the instructions say, because the API has no parameter for it: a change of these sentences can
// move every measurement, so CHANGELOG.md lists it. search: a search is offered, but not required. located: a parameter
// has the country.
func (p *prompt) system(search, located bool) string {
	var sentences []string
	if search {
		sentences = append(sentences, "Search the web before answering.")
	}
	if !located {
		sentences = append(sentences, "The user is in the country with the ISO 3166-1 code "+p.country+".")
	}
	sentences = append(sentences, "Answer in the language with the code "+p.language+" (locale "+p.locale+").")
	return strings.Join(sentences, " ")
}

// An object is a JSON object whose members stand in the order given.
type object []member

// A member is a name with a value that encode takes.
type member struct {
	name  string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := encode(m.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(m.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// encode is json.Marshal without escapes of <, > and &. A json.RawMessage stays as it is, but for white space.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
