package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"aiv/auth"
	"aiv/cmd/aiv/internal/service"
	"aiv/cmd/aiv/internal/work"
)

// workCommand runs a worker until a signal, or an error after which it cannot go on. It needs no database. A command or
// a built-in engine answers the jobs. With -explain or -try there is one job, which is not claimed.
func workCommand(ctx context.Context, c *call) error {
	var cfg work.Config
	c.Flags.StringVar(&cfg.URL, "url", "", "the `URL` of aiv dispatch, such as http://127.0.0.1:8081")
	tokenFile := c.Flags.String("token-file", "", "the `FILE` with the worker's token")
	c.FuncFlag("provider", "claim only jobs of the provider with this `CODE`; may be given more than once (default: of all providers of the token; required with -engine)", func(code string) error {
		cfg.Providers = append(cfg.Providers, code)
		return nil
	})
	c.Flags.IntVar(&cfg.Parallel, "parallel", 1, "the `NUMBER` of jobs that are executed at a time, from 1 to 10000")
	c.DurationFlag(&cfg.Lease, "lease", time.Minute, "the `DURATION` after which the jobs of a lost worker are handed out again, from 10s to 15m")
	c.DurationFlag(&cfg.Drain, "drain", 30*time.Second, "the `DURATION` that jobs in progress may take to end after SIGTERM; those that are still in progress are released")
	var engine engineFlags
	engine.declare(c)
	args, err := c.Parse("[COMMAND...]")
	if err != nil {
		return err
	}
	if err := engine.check(args, cfg.Parallel); err != nil {
		return err
	}
	if engine.alone() {
		return engine.tryOrExplain(ctx)
	}
	// What the worker requires is checked only here, because -explain and -try require none of it.
	required := []string{"-url", "-token-file", "COMMAND..."}
	if engine.name != "" {
		required[2] = "-provider"
	}
	if _, _, err := c.Require(args, required...); err != nil {
		return err
	}
	at, err := checkWork(c, &cfg)
	if err != nil {
		return err
	}
	if cfg.Token, err = readSecret("-token-file", *tokenFile); err != nil {
		return err
	}
	// The checksum of the token reveals a wrong file before the first claim. The hash is not needed.
	if _, err := auth.HashWorkerToken(cfg.Token); err != nil {
		return fmt.Errorf("%s does not contain a worker's token: want aiv_work_… and nothing else", *tokenFile)
	}
	service.SurvivePipe()
	log, logs := service.NewLog(c.Call, slog.LevelInfo)
	defer logs.Close()
	cfg.Log = log
	started := []any{"dispatcher", at.Redacted(), "parallel", cfg.Parallel}
	if cfg.Providers != nil { // an empty list would mean none
		started = append(started, "providers", cfg.Providers)
	}
	if engine.name != "" {
		x, err := engine.executor(log)
		if err != nil {
			return err
		}
		cfg.Executor, started = x, append(started, "engine", engine.name, "address", x.Address())
	} else {
		// The command is looked up once, so that a missing program is one error at the start instead of one for each
		// job.
		if args[0], err = exec.LookPath(args[0]); err != nil {
			return fmt.Errorf("the command cannot be started: %w", err)
		}
		cfg.Executor = work.Command{Args: args}
	}
	ctx, stop := service.EndOnHangup(ctx)
	defer stop()
	// running says in the log what a second signal kills.
	running := "running commands"
	if engine.name != "" {
		running = "requests in progress"
	}
	kill, endKill := killOnSecondSignal(ctx, log, running)
	defer endKill()
	cfg.Kill = kill
	log.Info("worker started", started...)
	return work.Run(ctx, cfg)
}

// checkWork checks flags of aiv work and returns the dispatcher's address.
func checkWork(c *call, cfg *work.Config) (*url.URL, error) {
	at, err := url.Parse(cfg.URL)
	switch {
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" || at.User != nil || strings.Trim(at.Path, "/") != "" ||
		at.RawQuery != "" || at.ForceQuery || at.Fragment != "":
		return nil, c.Wrong("-url must be http://HOST[:PORT] or https://HOST[:PORT], not %q", cfg.URL)
	case cfg.Parallel < 1 || cfg.Parallel > 10_000:
		return nil, c.Wrong("-parallel must be from 1 to 10000")
	case cfg.Lease < 10*time.Second || cfg.Lease > 15*time.Minute || cfg.Lease%time.Second != 0:
		return nil, c.Wrong("-lease must be whole seconds from 10s to 15m")
	case cfg.Drain < 0:
		return nil, c.Wrong("-drain must not be negative")
	}
	return at, nil
}

// killOnSecondSignal returns a context that ends with the second signal, which ends what is running. Only a third
// signal ends this process.
func killOnSecondSignal(ctx context.Context, log *slog.Logger, running string) (kill context.Context, stop func()) {
	// kill must outlive ctx, which the first signal ends.
	kill, end := context.WithCancel(context.WithoutCancel(ctx))
	// main gives up its handler after the first signal. While this one is registered, a signal does not end the
	// process.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		log.Info("shutting down; signal again to kill " + running)
		<-signals
		end()
		// The next signal has its default effect.
		signal.Stop(signals)
	}()
	return kill, func() {
		signal.Stop(signals)
		end()
	}
}
