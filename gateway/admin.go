package gateway

import (
	"context"
	"net/http"
	"net/http/pprof"
	"time"
)

// Admin returns the handler of the admin listener, which is for the machine's own operators: whether the process lives,
// whether it can serve, its metrics and its profiles. ready says why the process can't serve.
func Admin(metrics *Metrics, ready func(context.Context) error) http.Handler {
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
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		header(w, "Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		metrics.WriteTo(w)
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
