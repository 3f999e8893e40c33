package service

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/systemd"
	"aiv/gateway/telemetry"
)

// Options are the options that all services have.
type Options struct {
	addr, adminAddr string
	mayMove         struct{ addr, adminAddr bool } // to a free port, because the address is the default
	tlsCert, tlsKey string
	maxConns        int // to the database
	maxConnections  int // of clients; 0: as descriptors allow
	maxPerAddress   int // of those, of one address; 0: half
	adminHosts      []string
	waiting         int // in each batcher
	drain           time.Duration
	outgoing        int // the most connections to servers other than the database
	webhooks        webhookOptions

	addrFlag string         // the flag and the variable of addr, in errors
	level    *slog.LevelVar // of the log
	notifier *systemd.Notifier
	logs     *telemetry.LogWriter
	requests *telemetry.LogWriter // nil: requests are logged by slog
}

// defaults are the values of options that are not given, the environment variable of the address, and the usage of
// -max-conns.
type defaults struct {
	Addr, AdminAddr string
	AddrVariable    string
	MaxConns        int
	MaxConnsUsage   string
}

// flags declares the flags of the options. After they are parsed, the function returned reads and checks them.
func (o *Options) flags(c *cli.Call, d defaults, minConns int) func() error {
	// The zero Notifier sends nothing. UseSystemd replaces it.
	o.level, o.notifier = new(slog.LevelVar), &systemd.Notifier{}
	o.addrFlag = "-addr (" + d.AddrVariable + ")"
	c.Flags.StringVar(&o.addr, "addr", "", "listen on this `HOST:PORT` (environment: "+d.AddrVariable+"; default: "+d.Addr+")")
	c.Flags.StringVar(&o.adminAddr, "admin-addr", "", "serve health, metrics and profiles on this `HOST:PORT` (environment: AIV_ADMIN_ADDR; default: "+d.AdminAddr+")")
	c.Flags.StringVar(&o.tlsCert, "tls-cert", "", "serve TLS with the certificate in this PEM `FILE`, read again when it changes (environment: AIV_TLS_CERT)")
	c.Flags.StringVar(&o.tlsKey, "tls-key", "", "the private key of -tls-cert, a PEM `FILE` (environment: AIV_TLS_KEY)")
	c.Flags.IntVar(&o.maxConns, "max-conns", d.MaxConns, fmt.Sprintf("%s; at least %d", d.MaxConnsUsage, minConns))
	c.Flags.IntVar(&o.maxConnections, "max-connections", 0, "the maximum `NUMBER` of client connections; further ones are closed at once (default: 16384, or what the limit of descriptors allows)")
	c.Flags.IntVar(&o.maxPerAddress, "max-connections-per-address", 0, "the maximum `NUMBER` of connections of one client address, or IPv6 /64 network (default: half of -max-connections)")
	c.FuncFlag("admin-host", "accept this `NAME` in the Host header of admin requests, besides IP addresses and localhost; may be given more than once", func(name string) error {
		o.adminHosts = append(o.adminHosts, name)
		return nil
	})
	c.Flags.IntVar(&o.waiting, "waiting", maxWaiting, "the `NUMBER` of requests that may wait for each kind of database work; further ones get 503 overloaded; at least 1")
	c.DurationFlag(&o.drain, "drain", 30*time.Second, "the `DURATION` that requests in progress may take to end after SIGTERM")
	o.webhooks.flags(c)
	return func() error {
		o.addr, o.adminAddr = cmp.Or(o.addr, c.Getenv(d.AddrVariable)), cmp.Or(o.adminAddr, c.Getenv("AIV_ADMIN_ADDR"))
		// This precedes the line that fills in the defaults, because only a default address may move.
		o.mayMove.addr, o.mayMove.adminAddr = o.addr == "", o.adminAddr == ""
		o.addr, o.adminAddr = cmp.Or(o.addr, d.Addr), cmp.Or(o.adminAddr, d.AdminAddr)
		o.tlsCert = cmp.Or(o.tlsCert, c.Getenv("AIV_TLS_CERT"))
		o.tlsKey = cmp.Or(o.tlsKey, c.Getenv("AIV_TLS_KEY"))
		switch {
		case (o.tlsCert == "") != (o.tlsKey == ""):
			return c.Wrong("-tls-cert and -tls-key must be given together")
		case o.maxConns < minConns:
			return c.Wrong("-max-conns must be at least %d", minConns)
		case c.Given("max-connections") && o.maxConnections < 1:
			return c.Wrong("-max-connections must be at least 1")
		case c.Given("max-connections-per-address") && o.maxPerAddress < 1:
			return c.Wrong("-max-connections-per-address must be at least 1")
		case o.waiting < 1:
			return c.Wrong("-waiting must be at least 1")
		case o.drain < 0:
			return c.Wrong("-drain must not be negative")
		}
		if err := CheckAddress(c, o.addrFlag, o.addr); err != nil {
			return err
		}
		if err := CheckAddress(c, adminAddrFlag, o.adminAddr); err != nil {
			return err
		}
		if !o.TLS() {
			return nil
		}
		// Before the database is opened. What the files contain is checked when they are used.
		if err := readable(tlsCertFlag, o.tlsCert); err != nil {
			return err
		}
		return readable(tlsKeyFlag, o.tlsKey)
	}
}

// Flags and their variables, in errors.
const (
	adminAddrFlag = "-admin-addr (AIV_ADMIN_ADDR)"
	tlsCertFlag   = "-tls-cert (AIV_TLS_CERT)"
	tlsKeyFlag    = "-tls-key (AIV_TLS_KEY)"
)

// CheckAddress refuses the value of a flag that is not an address to listen at.
func CheckAddress(c *cli.Call, flag, addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return c.Wrong("%s must be HOST:PORT, not %q", flag, addr)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return c.Wrong("the port of %s must be from 0 to 65535 or the name of a service, not %q", flag, port)
	}
	return nil
}

// readable refuses the value of a flag that is not a file that can be read.
func readable(flag, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return f.Close()
}

// TLS reports whether the service serves TLS.
func (o *Options) TLS() bool { return o.tlsCert != "" }

// Logger returns the log of a service, whose level can be changed while it is used. The function returned writes the
// lines that are not written yet.
func (o *Options) Logger(c *cli.Call) (*slog.Logger, func()) {
	log, writer := NewLog(c, o.level)
	o.logs = writer
	return log, writer.Close
}

// LogRequests makes the service log requests without slog, which is faster. Call it after Logger.
func (o *Options) LogRequests() { o.requests = o.logs }

// NewLog returns the log of a command that runs for long: text on a terminal, else JSON, written in the background, so
// that the command does not depend on the reader of stderr.
func NewLog(c *cli.Call, level slog.Leveler) (*slog.Logger, *telemetry.LogWriter) {
	w := telemetry.NewLogWriter(c.Stderr)
	options := &slog.HandlerOptions{Level: level}
	if cli.IsTerminal(c.Stderr) {
		return slog.New(slog.NewTextHandler(w, options)), w
	}
	return slog.New(slog.NewJSONHandler(w, options)), w
}

// UseSystemd makes the service report to systemd.
func (o *Options) UseSystemd() (err error) {
	o.notifier, err = systemd.NewNotifier()
	return err
}
