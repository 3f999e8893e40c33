package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// AdminConfig contains what the handler of the admin listener depends on.
type AdminConfig struct {
	Metrics *Metrics
	Level   *slog.LevelVar              // of the log
	Ready   func(context.Context) error // why the process cannot serve
	Hosts   []string                    // accepted in Host besides IP addresses and localhost
}

// Admin returns the handler of the admin listener, for the operators of the machine: health, metrics, profiles and the
// log level.
func Admin(cfg AdminConfig) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		// A probe must get an answer even if the database does not respond.
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := cfg.Ready(ctx); err != nil {
			plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n")
			return
		}
		plain(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		var e Exposition
		cfg.Metrics.write(r.Context(), &e)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Write(e.page)
	})
	mux.HandleFunc("GET /log-level", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusOK, cfg.Level.Level().String()+"\n")
	})
	mux.HandleFunc("PUT /log-level", func(w http.ResponseWriter, r *http.Request) {
		// A read error is ignored: the text read so far is checked.
		text, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, 64))
		level, ok := logLevels[strings.ToLower(strings.TrimSpace(string(text)))]
		if !ok {
			plain(w, http.StatusBadRequest, "The level must be debug, info, warn or error.\n")
			return
		}
		cfg.Level.Set(level)
		plain(w, http.StatusOK, level.String()+"\n")
	})
	// Without /debug/pprof/cmdline, since the command line may contain the password of the database.
	mux.HandleFunc("/debug/pprof/cmdline", http.NotFound)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return cfg.localOnly(mux)
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// localOnly rejects what a web page in an operator's browser could send: requests for a name that its owner resolves to
// this address (DNS rebinding), and requests from another origin.
func (cfg *AdminConfig) localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site := r.Header.Get("Sec-Fetch-Site")
		origin, err := url.Parse(r.Header.Get("Origin"))
		switch {
		case !cfg.knownHost(r.Host):
			plain(w, http.StatusMisdirectedRequest, "The Host must be an IP address, localhost or a name given by -admin-host.\n")
		// Programs such as curl send neither header. A browser sends Sec-Fetch-Site none for an address that was typed
		// in.
		case site != "" && site != "same-origin" && site != "none", r.Header.Get("Origin") != "" && (err != nil || origin.Host != r.Host):
			plain(w, http.StatusForbidden, "Requests from other origins are rejected.\n")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// knownHost reports whether a Host header, with or without a port, is an IP address, localhost or one of Hosts. A page
// that uses DNS rebinding sends another name.
func (cfg *AdminConfig) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost" || slices.ContainsFunc(cfg.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write([]byte(text))
}
