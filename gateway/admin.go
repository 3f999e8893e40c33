package gateway

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"
)

// Admin returns the handler of the admin listener, which is for the machine's own operators: whether the process lives,
// whether it can serve, its metrics, its profiles and the level of its log. ready says why the process can't serve.
func Admin(metrics *Metrics, level *slog.LevelVar, ready func(context.Context) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := ready(ctx); err != nil {
			plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n")
			return
		}
		plain(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		var e Exposition
		metrics.write(r.Context(), &e)
		header(w, "Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Write(e.page)
	})
	mux.HandleFunc("GET /log-level", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, level.Level().String()+"\n") })
	mux.HandleFunc("PUT /log-level", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64))
		if err == nil {
			err = level.UnmarshalText(bytes.TrimSpace(text))
		}
		if err != nil {
			plain(w, http.StatusBadRequest, "The level is debug, info, warn or error, or one of them and an offset, such as info+2.\n")
			return
		}
		plain(w, http.StatusOK, level.Level().String()+"\n")
	})
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func plain(w http.ResponseWriter, status int, text string) {
	header(w, "Content-Type", "text/plain; charset=utf-8")
	header(w, "Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write([]byte(text))
}
