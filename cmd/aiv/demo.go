package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"aiv/cmd/aiv/internal/database"
	"aiv/cmd/aiv/internal/demo"
	"aiv/cmd/aiv/internal/service"
	"aiv/gateway"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/schema"
)

// demoCommand serves both services in one process on one private PostgreSQL, with sample data. Everything is
// prepared, and both services listen, before the instructions are written: what they print works at once.
func demoCommand(ctx context.Context, c *call) error {
	var o service.Serve
	dir, workerAddr, leave, err := c.readDemo(&o)
	if err != nil {
		return err
	}
	dir, release, err := demo.PrepareFolder(dir)
	if err != nil {
		return err
	}
	// The folder stays locked until the databases are closed.
	defer release()
	ctx, stop := service.EndOnHangup(ctx)
	defer stop()
	service.SurvivePipe()
	log, endLog := o.Logger(c.Call)
	defer endLog()
	pool, closeDatabase, err := database.Source{Dir: dir}.OpenHot(ctx, o.WriteConns(), log)
	if err != nil {
		return err
	}
	defer closeDatabase()
	if _, err := schema.Migrate(ctx, pool); err != nil {
		return adviseOnFolder(err, dir)
	}
	// The data of an earlier start is kept; its key and its token are revoked.
	secrets, err := demo.Fill(ctx, pool, leave...)
	if err != nil {
		return err
	}
	l, err := o.ListenOnFreePorts(ctx)
	if err != nil {
		return err
	}
	dispatch := service.SampleDispatch(&o, workerAddr)
	dispatch.Beside = func(ctx context.Context, d *jobs.Dispatcher) { demo.Work(ctx, d, leave) }
	workers, err := dispatch.ListenOnFreePorts(ctx)
	if err != nil {
		return err
	}
	if err := writeInstructions(c.Stdout, l, workers, o.TLS(), demo.Service{Secrets: secrets, Data: dir, Leave: leave}); err != nil {
		return err
	}
	// The dispatcher has its own pool, as it has in its own process: its claims and settlements do not take
	// connections of requests.
	dispatchPool, err := store.OpenHot(ctx, pool.Config().ConnString(), dispatch.Conns())
	if err != nil {
		return err
	}
	defer dispatchPool.Close()
	service.TuneServe(pool)
	log = slog.New(withoutRequests{log.Handler()})
	return runBoth(ctx,
		func(ctx context.Context) error { return dispatch.Run(ctx, dispatchPool, log, workers) },
		func(ctx context.Context) error { return o.Run(ctx, pool, log, l) })
}

// adviseOnFolder adds to an error of the migrations that the database is not needed.
func adviseOnFolder(err error, dir string) error {
	// Another error, such as a newer database, says itself what to do.
	if _, changed := errors.AsType[*schema.ChangedError](err); !changed {
		return err
	}
	return fmt.Errorf("%w, delete the sample data in %s, or choose another folder with -data-dir", err, filepath.Dir(dir))
}

// readDemo reads the command line. It returns the folder of the sample data, the address for workers, empty: the
// default, and the providers whose jobs the sample worker leaves.
func (c *call) readDemo(o *service.Serve) (dir, workerAddr string, leave []string, err error) {
	c.Flags.StringVar(&dir, "data-dir", "", "the `FOLDER` of the sample data: a new or empty one, or one that aiv demo made (environment: AIV_DATA_DIR; default: $XDG_DATA_HOME/aiv-demo, else ~/.local/share/aiv-demo; for root /var/lib/aiv-demo)")
	// The flag is declared only so that its rejection can give the reason.
	c.Flags.String("database-url", "", "rejected: aiv demo writes only to its own database, whatever the `URL`")
	c.Flags.StringVar(&workerAddr, "worker-addr", "", "listen for workers on this `HOST:PORT` (environment: AIV_WORKER_ADDR; default: 127.0.0.1:8081)")
	c.Flags.Func("leave", "leave the jobs of the provider with this `CODE` to another worker, such as aiv work -engine; may be given more than once", func(code string) error {
		if !slices.Contains(demo.Providers(), code) {
			return fmt.Errorf("must be one of %s", strings.Join(demo.Providers(), ", "))
		}
		leave = append(leave, code)
		return nil
	})
	check := o.SampleFlags(c.Call)
	if _, err := c.Parse(); err != nil {
		return "", "", nil, err
	}
	if err := check(); err != nil {
		return "", "", nil, err
	}
	// A flag takes precedence over the environment. If neither is given, the address stays empty, and the service may
	// move to a free port.
	workerAddr = cmp.Or(workerAddr, c.Getenv("AIV_WORKER_ADDR"))
	if workerAddr != "" {
		if err := service.CheckAddress(c.Call, service.WorkerAddrFlag, workerAddr); err != nil {
			return "", "", nil, err
		}
	}
	if c.Given("database-url") || c.Getenv("DATABASE_URL") != "" {
		return "", "", nil, c.Wrong("aiv demo never writes to another database; unset DATABASE_URL and leave -database-url out, or run aiv serve")
	}
	dir = cmp.Or(dir, c.Getenv("AIV_DATA_DIR"))
	if dir == "" {
		operators, err := database.DefaultDir()
		if err != nil {
			return "", "", nil, err
		}
		// A sibling of the folder of the operator's private PostgreSQL, never a folder inside it.
		dir = operators + "-demo"
	}
	slices.Sort(leave)
	return dir, workerAddr, slices.Compact(leave), nil
}

// writeInstructions adds the addresses and the program to s, and writes how to use the demonstration.
func writeInstructions(w io.Writer, l, workers service.Listeners, tls bool, s demo.Service) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	if s.Program, s.Folder, err = demo.Program(executable); err != nil {
		return err
	}
	scheme := "http"
	if tls {
		scheme = "https"
	}
	s.Base = scheme + "://" + localAddress(l.Main) + gateway.Base
	s.Admin = "http://" + localAddress(l.Admin)
	s.Workers = "http://" + localAddress(workers.Main)
	return demo.WriteText(w, s)
}

// localAddress returns an address to which commands on this machine can connect. An unspecified address, such as
// 0.0.0.0, is replaced by the loopback address.
func localAddress(l net.Listener) string {
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port))
	}
	return l.Addr().String()
}

// runBoth runs two services. Both end when one of them does, or ctx is done. That is no failure of a service that is
// still starting.
func runBoth(ctx context.Context, a, b func(context.Context) error) error {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	for _, run := range []func(context.Context) error{a, b} {
		go func() {
			err := run(both)
			if ctx.Err() != nil && errors.Is(err, context.Canceled) {
				err = nil
			}
			ended <- err
		}()
	}
	// The error of the service that ended first comes first: it is the cause.
	first := <-ended
	cancel()
	return errors.Join(first, <-ended)
}

// withoutRequests drops the log lines of requests, except lines of internal errors, so that the printed instructions
// stay visible.
type withoutRequests struct{ slog.Handler }

// Handle implements slog.Handler.
func (h withoutRequests) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn && r.Message == "request" {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
