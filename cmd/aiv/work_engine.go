package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"aiv/cmd/aiv/internal/engines"
	"aiv/cmd/aiv/internal/service"
	"aiv/cmd/aiv/internal/work"
)

// engineFlags are the flags of aiv work with a built-in engine. With explain or try, no worker runs: one job, which
// jobFile or model chooses, is explained or answered.
type engineFlags struct {
	*call

	name, keyFile, url    string
	timeout               time.Duration
	maxOutput, parallel   int
	resolve, explain, try bool
	jobFile, model        string
	asJSON                bool
}

// declare declares the flags. They exist without -engine too, and check then rejects them by name.
func (f *engineFlags) declare(c *call) {
	f.call = c
	names := strings.Join(engines.Names(), ", ")
	c.Flags.StringVar(&f.name, "engine", "", "ask models by the built-in client with this `NAME`, in place of COMMAND: "+names)
	c.Flags.StringVar(&f.keyFile, "engine-key-file", "", "the `FILE` with the engine's key, read again for each job (environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, PERPLEXITY_API_KEY or XAI_API_KEY)")
	c.Flags.StringVar(&f.url, "engine-url", "", "the base `URL` of the API, such as a proxy's (default: the engine's; required for chat)")
	c.DurationFlag(&f.timeout, "engine-timeout", 5*time.Minute, "the `DURATION` that all requests of a job may take, from 5s to 30m")
	c.Flags.IntVar(&f.maxOutput, "engine-max-output", 16384, "the `NUMBER` of output tokens of a request, from 256 to 128000; reasoning counts against it (default: 16384; chat: none)")
	c.Flags.BoolVar(&f.resolve, "engine-resolve-links", false, "request the redirecting links that gemini cites; see OPERATING.md first")
	c.Flags.BoolVar(&f.explain, "explain", false, "print the request of a job, and send nothing")
	c.Flags.BoolVar(&f.try, "try", false, "send the requests of a job, print its outcome, and settle nothing")
	c.Flags.StringVar(&f.jobFile, "job", "", "the `FILE` with the job of -explain or -try, as a claim returns it; -: stdin (default: a sample)")
	c.Flags.StringVar(&f.model, "model", "", "the `NAME` of the sample's model in requests")
	c.Flags.BoolVar(&f.asJSON, "json", false, "print the request of -explain as JSON")
}

// alone reports whether the command only prints a request or an outcome.
func (f *engineFlags) alone() bool { return f.explain || f.try }

// check checks the flags. What needs an engine is refused without one, so that no flag is ignored.
func (f *engineFlags) check(args []string, parallel int) error {
	f.parallel = parallel
	if f.name == "" {
		for _, name := range []string{
			"engine-key-file", "engine-url", "engine-timeout", "engine-max-output", "engine-resolve-links",
			"explain", "try", "job", "model", "json",
		} {
			if f.Given(name) {
				return f.Wrong("-%s requires -engine", name)
			}
		}
		return nil
	}
	if err := f.known("-engine", []string{f.name}, engines.Names()); err != nil {
		return err
	}
	switch {
	case len(args) > 0:
		return f.Wrong("-engine replaces COMMAND: give one of them")
	case f.explain && f.try:
		return f.Wrong("-explain and -try exclude each other")
	case f.timeout < 5*time.Second || f.timeout > 30*time.Minute:
		return f.Wrong("-engine-timeout must be from 5s to 30m")
	case f.maxOutput < 256 || f.maxOutput > 128_000:
		return f.Wrong("-engine-max-output must be from 256 to 128000")
	case f.resolve && f.name != "gemini":
		return f.Wrong("-engine-resolve-links is for gemini only")
	case !f.alone() && (f.Given("job") || f.Given("model") || f.asJSON):
		return f.Wrong("-job, -model and -json require -explain or -try")
	case f.Given("job") && f.Given("model"):
		return f.Wrong("-model is of the sample job, which -job replaces")
	case f.try && !f.Given("job") && !f.Given("model"):
		return f.Wrong("-try requires -model or -job")
	}
	if err := engines.CheckURL(f.name, f.url, f.keyFile != ""); err != nil {
		return f.Wrong("-engine-url %v", err)
	}
	// -explain sends nothing, and prints KEY in place of the key.
	variable := engines.KeyVariable(f.name)
	if !f.explain && f.keyFile == "" && variable != "" && strings.TrimSpace(f.Getenv(variable)) == "" {
		return f.Wrong("%s requires -engine-key-file or the environment variable %s", f.name, variable)
	}
	return nil
}

// executor returns the Executor of the engine.
func (f *engineFlags) executor(log *slog.Logger) (*engines.Executor, error) {
	cfg := f.config()
	var err error
	switch variable := engines.KeyVariable(f.name); {
	// A file takes precedence over the environment. It is read again for each job.
	case f.keyFile != "":
		if cfg.Key, err = engines.ReadKey(f.keyFile, log); err != nil {
			return nil, fmt.Errorf("-engine-key-file: %w", err)
		}
	case variable != "":
		if cfg.Key, err = engines.NewKey(f.Getenv(variable)); err != nil {
			return nil, fmt.Errorf("%s does not contain a key: %w", variable, err)
		}
	// The engine chat needs no key; its key comes from a file only.
	default:
		cfg.Key, _ = engines.NewKey("")
	}
	return engines.New(cfg), nil
}

// config returns all but the key, which -explain does not need.
func (f *engineFlags) config() engines.Config {
	return engines.Config{
		Engine: f.name, URL: f.url, Timeout: f.timeout, Parallel: f.parallel,
		MaxOutput: f.maxOutput, LimitGiven: f.Given("engine-max-output"), ResolveLinks: f.resolve,
	}
}

// tryOrExplain prints the request of a job, or sends it and prints its outcome. The exit code of a try tells whether
// the job would be completed.
func (f *engineFlags) tryOrExplain(ctx context.Context) error {
	job, err := f.job(ctx)
	if err != nil {
		return err
	}
	if f.explain {
		withKey := engines.KeyVariable(f.name) != "" || f.keyFile != ""
		return engines.New(f.config()).Explain(f.Stdout, job, withKey, f.asJSON)
	}
	log, logs := service.NewLog(f.Call, slog.LevelInfo)
	defer logs.Close()
	x, err := f.executor(log)
	if err != nil {
		return err
	}
	// Without a claim there is no time of the database, so the clock of this machine is used (see Job.Now).
	job.ReceivedAt = time.Now()
	job.ClaimedAt = job.ReceivedAt
	outcome := x.Execute(ctx, job)
	// A worker would log the attributes when it settles the job.
	if n, ok := outcome.(work.Noted); ok {
		log.Info("tried", n.Attrs...)
		outcome = n.Outcome
	}
	if _, err := fmt.Fprintf(f.Stdout, "%s\n", work.Encode(outcome)); err != nil {
		return err
	}
	if _, ok := outcome.(work.Completed); !ok {
		return errors.New("the job would not be completed; see its outcome")
	}
	return nil
}

// job returns the job of -job, or a sample.
func (f *engineFlags) job(ctx context.Context) (job work.Job, err error) {
	if f.jobFile == "" {
		return engines.SampleJob(cmp.Or(f.model, "MODEL")), nil
	}
	file, err := f.Input(ctx, f.jobFile)
	if err != nil {
		return job, fmt.Errorf("-job: %w", err)
	}
	defer file.Close()
	// A longer file is cut, and is then not valid JSON.
	text, err := io.ReadAll(io.LimitReader(file, maxJob))
	if err != nil {
		return job, fmt.Errorf("-job: %w", err)
	}
	if err := json.Unmarshal(text, &job); err != nil {
		return job, fmt.Errorf("%s does not contain a job as a claim returns it: %w", f.jobFile, err)
	}
	// Without one of these members, a request would ask something else.
	needed := []string{
		job.MeasurementType, job.Model.ProviderModel, job.Question.Text, job.Locale, job.Country, job.Language,
	}
	if slices.Contains(needed, "") {
		return job, fmt.Errorf("%s does not contain a job as a claim returns it: it lacks a member", f.jobFile)
	}
	return job, nil
}

// maxJob is more than a job takes.
const maxJob = 1 << 20
