package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// endpoints are what the outside watches the daemon by.
func (d *daemon) endpoints() *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.registry, promhttp.HandlerOpts{Registry: d.registry}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", d.readiness)
	return &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(d.logger.Handler(), slog.LevelWarn),
	}
}

// pingTime is how long Redis may take to answer before the process counts as not
// ready.
const pingTime = time.Second

func (d *daemon) readiness(w http.ResponseWriter, r *http.Request) {
	if d.draining.Load() {
		answer(w, http.StatusServiceUnavailable, "draining")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pingTime)
	defer cancel()
	if d.client.Ping(ctx).Err() != nil { // its text may name hosts, which are nobody's business here
		answer(w, http.StatusServiceUnavailable, "Redis does not answer")
		return
	}
	answer(w, http.StatusOK, "ready")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}

// stopEndpoints lets answers under way end, but not for long: the drain is over.
func (d *daemon) stopEndpoints(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}
