package engines

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"aiv/cmd/aiv/internal/work"
)

// Config contains what an Executor depends on.
type Config struct {
	Engine       string // one of Names
	URL          string // the base address; empty: the API's own
	Key          *Key   // nil: only Explain is called
	Timeout      time.Duration
	MaxOutput    int  // output tokens of a request
	LimitGiven   bool // the operator gave MaxOutput
	ResolveLinks bool // of gemini
	Parallel     int  // jobs at a time
}

// An Executor answers jobs by an engine. It implements [work.Executor]. Its fields do not change after New, except
// rejected, so that jobs may be executed at the same time.
type Executor struct {
	cfg           Config
	engine        *engine
	base          string
	transport     http.RoundTripper
	linkTransport http.RoundTripper // requests the links that Gemini cites
	pause         time.Duration     // before a request is repeated
	rejected      memory

	linkTime, linksTime time.Duration // longer in tests
}

// New returns an Executor. It panics if the engine is none of Names.
func New(cfg Config) *Executor {
	x := &Executor{
		cfg: cfg, engine: find(cfg.Engine), transport: newTransport(cfg.Parallel), linkTransport: newLinkTransport(),
		pause: time.Second, linkTime: linkTime, linksTime: linksTime,
	}
	x.base = strings.TrimSuffix(cfg.URL, "/")
	if x.base == "" {
		x.base = x.engine.base
	}
	return x
}

// A memory keeps what the API has rejected, until the process ends: models that cannot be forced to search, and
// countries that the search does not take. Jobs in progress may still get the same rejection.
type memory struct {
	mu        sync.Mutex
	unforced  map[string]bool // by model
	unlocated map[string]bool // by country
}

// apply makes a prompt leave out what was rejected before.
func (m *memory) apply(p *prompt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.unforced, p.unlocated = m.unforced[p.model], m.unlocated[p.country]
}

// keep records what an adapted prompt leaves out, for later jobs. It forgets nothing.
func (m *memory) keep(p *prompt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unforced == nil {
		m.unforced, m.unlocated = make(map[string]bool), make(map[string]bool)
	}
	m.unforced[p.model] = m.unforced[p.model] || p.unforced
	m.unlocated[p.country] = m.unlocated[p.country] || p.unlocated
}

// prompt returns the first prompt of a job.
func (x *Executor) prompt(job *work.Job) *prompt {
	limit := x.cfg.MaxOutput
	// 0 sends no limit: local models reject a limit beyond their context, and the default may be beyond it.
	if x.engine.optionalLimit && !x.cfg.LimitGiven {
		limit = 0
	}
	p := newPrompt(job, limit)
	x.rejected.apply(p)
	return p
}

// A course is the execution of one job. Only the goroutine of Execute uses it.
type course struct {
	x       *Executor
	job     *work.Job
	key     string
	redact  func(string) string
	started time.Time

	requests int
	repeated bool // a request after one that failed
	last     *exchange
	attrs    []any // of the log, besides what every job has
}

// Execute implements [work.Executor]. The dispatcher's retries do the work: within an attempt one request is
// repeated, once, if the API cannot have charged for it or says that it failed.
func (x *Executor) Execute(ctx context.Context, job work.Job) work.Outcome {
	c := &course{x: x, job: &job, key: x.cfg.Key.current(), started: time.Now()}
	c.redact = redactor(c.key)
	timed, cancel := context.WithTimeout(ctx, x.cfg.Timeout)
	defer cancel()
	r, f := c.converse(timed)
	// ctx is the worker's. The timeout of the job ends timed only, and is a fault.
	if f != nil && ctx.Err() != nil {
		return work.Released{} // the job is lost or canceled, or the worker ends
	}
	var o work.Outcome
	// An answer that was read in time is used, even if ctx has ended since.
	if f != nil {
		o = c.ended(*f)
	} else {
		o = c.completed(timed, r)
	}
	return work.Noted{Outcome: o, Attrs: c.line()}
}

// converse sends requests until a response is an answer or a fault. It terminates, because an engine adapts a prompt in
// each way only once, and bounds the number of further requests.
func (c *course) converse(ctx context.Context) (*reading, *fault) {
	p := c.x.prompt(c.job)
	for {
		e, f := c.request(ctx, p)
		if f != nil {
			return nil, f
		}
		if e.status != http.StatusOK {
			// A body that is not JSON is an empty value, and so an error of unknown form.
			v, _ := parse(e.body)
			problem := readError(c.x.engine.name, e.status, v)
			if adapt := c.x.engine.adapt; adapt != nil {
				if next := adapt(p, problem); next != nil {
					c.x.rejected.keep(next)
					p = next
					continue
				}
			}
			return nil, new(problem.fault())
		}
		r, f := c.read(p, e)
		if f != nil || r.next == nil {
			return r, f
		}
		p = r.next
	}
}

// request sends a request, and once more if it failed and there is time.
func (c *course) request(ctx context.Context, p *prompt) (*exchange, *fault) {
	for {
		// The log shows the status of the last request, or none if that had no response.
		c.requests, c.last = c.requests+1, nil
		e, err := c.x.send(ctx, p, c.key)
		if err != nil && ctx.Err() != nil { // what came in time is used: it may be billed
			return nil, &providerTimeout
		}
		// Other errors are not repeated here: their outcomes tell the dispatcher when to try again, if at all.
		failed := err != nil || e.status == http.StatusInternalServerError || e.status == http.StatusBadGateway
		// There is always a deadline (see Execute). A job may repeat one request: after that, none of its later
		// requests is repeated.
		if deadline, _ := ctx.Deadline(); failed && !c.repeated && time.Until(deadline) >= 5*time.Second {
			c.repeated = true
			wait(ctx, c.x.pause)
			continue
		}
		if err != nil {
			return nil, new(providerUnreachable.because(withoutResponse(err)))
		}
		c.last = e
		return e, nil
	}
}

// wait returns after d, or when ctx is done.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// read reads a response with the status 200.
func (c *course) read(p *prompt, e *exchange) (*reading, *fault) {
	// An invalid response is retried, because the next one may be valid.
	if e.tooLong {
		return nil, new(invalidResponse.because("the body is too long"))
	}
	v, err := parse(e.body)
	if err != nil {
		return nil, new(invalidResponse.because(err.Error()))
	}
	if _, ok := v.any.(map[string]any); !ok {
		return nil, new(invalidResponse.because("the body is not an object"))
	}
	r, err := c.x.engine.read(p, response{v, e.body})
	if err != nil {
		return nil, new(invalidResponse.because(err.Error()))
	}
	switch {
	// A reading that needs another request is no answer yet.
	case r.next != nil:
	case r.fault != nil:
		return nil, r.fault
	case blank(r.text) && r.truncated:
		return nil, &outputLimit
	case blank(r.text):
		return nil, &emptyAnswer
	}
	// Without grounding, the request offered no search.
	if !p.grounded {
		r.searched = new(false)
	}
	return &r, nil
}

// completed returns the outcome of a job with an answer.
func (c *course) completed(ctx context.Context, r *reading) work.Outcome {
	at := c.job.Now() // before links are requested
	if c.x.engine.links {
		c.x.nameLinks(ctx, r.citations)
	}
	a, dropped := r.answer(at, c.redact)
	c.attrs = append(c.attrs, "searched", a.Searched, "citations", len(a.Citations), "dropped", dropped,
		"truncated", a.Truncated)
	if u := a.Usage; u != nil {
		c.attrs = append(c.attrs, "input_tokens", u.InputTokens, "output_tokens", u.OutputTokens, "searches", u.Searches)
	}
	return work.Completed{Answer: a}
}

// ended returns the outcome of a job without an answer.
func (c *course) ended(f fault) work.Outcome {
	var after time.Duration
	// A throttled fault is read from a response, so that c.last is not nil.
	if f.kind == throttled {
		v, _ := parse(c.last.body)
		after = retryAfter(c.x.engine.name, c.last.header, readError(c.x.engine.name, c.last.status, v))
	}
	if detail := f.prose(c.withoutQuestion); detail != "" {
		c.attrs = append(c.attrs, "detail", detail)
	}
	f.source = c.redact(f.source)
	return f.outcome(after)
}

// withoutQuestion removes the key and the question from prose: an API may repeat both. Some quote the request, as JSON
// or as Python writes it, and a gateway may quote that again: so both are also looked for behind escapes.
func (c *course) withoutQuestion(text string) string {
	question := inAnyCase(c.job.Question.Text)
	hide := func(text string) string { return question.ReplaceAllLiteralString(c.redact(text), "[question]") }
	text = hide(text)
	plain := text
	// Two levels of quoting. The text is replaced only where something was hidden, so that other prose keeps its
	// escapes.
	for range 2 {
		plain = escapes.ReplaceAllStringFunc(plain, unescaped)
		if hidden := hide(plain); hidden != plain {
			plain, text = hidden, hidden
		}
	}
	return text
}

// inAnyCase matches a text in any case, and with other white space.
func inAnyCase(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	return regexp.MustCompile(`(?i)` + strings.Join(words, `[\s\x{85}\p{Z}]+`))
}

// escapes match adjacent \u escapes together, because two may be one character.
var escapes = regexp.MustCompile(`(?:\\u[0-9A-Fa-f]{4})+|\\x[0-9A-Fa-f]{2}|\\.`)

// unescaped decodes one match of escapes.
func unescaped(escape string) string {
	if digits, ok := strings.CutPrefix(escape, `\x`); ok && digits != "" { // of Python, for a no-break space for example
		escape = `\u00` + digits
	}
	var text string
	if json.Unmarshal([]byte(`"`+escape+`"`), &text) == nil {
		return text
	}
	return escape[1:] // such as \' of Python
}

// line returns the attributes of the job's line in the log.
func (c *course) line() []any {
	line := []any{"model", c.job.Model.ProviderModel, "ms", time.Since(c.started).Milliseconds(), "requests", c.requests}
	if c.last != nil {
		line = append(line, "status", c.last.status)
		if id := c.last.requestID(); id != "" {
			line = append(line, "provider_request_id", first(work.Clean(c.redact(id)), 128))
		}
	}
	return append(line, c.attrs...)
}
