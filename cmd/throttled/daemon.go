package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/cmd/throttled/internal/config"
	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/embedded"
	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/httpjob"
	"github.com/weirq/weir/worker/webhook"
)

// A daemon is one run of serve.
type daemon struct {
	settings settings
	again    func() (settings, error) // settles them anew
	hangups  <-chan os.Signal         // each asks for a reload; nil for none
	logger   *slog.Logger
	stdout   io.Writer
	registry *prometheus.Registry

	listener net.Listener // nil to listen nowhere
	redisURL string
	client   redis.UniversalClient
	queue    *throttle.Queue
	draining atomic.Bool
	closers  []func() // the last one first
}

func newDaemon(s settings, term terminal) *daemon {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &daemon{settings: s, logger: newLogger(term.err, s), stdout: term.out, registry: registry}
}

// run serves until ctx ends and then drains.
func (d *daemon) run(ctx context.Context) error {
	defer d.close()
	parts, err := d.start(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // it was asked to stop before it had begun
		}
		return err
	}
	return d.serve(ctx, parts)
}

func (d *daemon) close() {
	for i := len(d.closers) - 1; i >= 0; i-- {
		d.closers[i]()
	}
}

func (d *daemon) onClose(f func()) { d.closers = append(d.closers, f) }

// A part runs until its context ends.
type part struct {
	name string
	run  func(context.Context) error
}

// start makes everything ready. What is stored comes last: a start that fails for another
// reason has stored nothing.
func (d *daemon) start(ctx context.Context) ([]part, error) {
	if err := d.listen(); err != nil {
		return nil, err
	}
	if err := d.connect(ctx); err != nil {
		return nil, err
	}
	parts, err := d.parts()
	if err != nil {
		return nil, err
	}
	if err := d.store(ctx, &d.settings.config); err != nil {
		if errors.Is(err, throttle.ErrInvalid) {
			return nil, fail(exitInvalid, "%w", d.located(err, &d.settings.config))
		}
		return nil, fail(exitRedis, "%w", err)
	}
	d.announce(parts)
	return append(parts, part{"reload", d.reloads}), nil
}

// ownPolicies tells whether this process stores the policies of a file.
func (d *daemon) ownPolicies(c *config.Config) bool {
	return d.settings.scheduler && c.Policies != nil
}

// ownBound tells whether this process stores the bound on what waits that a file has.
func (d *daemon) ownBound(c *config.Config) bool {
	return d.settings.scheduler && c.MaxWaiting != nil
}

// store puts in force what a config file says for all processes.
func (d *daemon) store(ctx context.Context, c *config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if d.ownPolicies(c) {
		if err := d.queue.SetPolicies(ctx, c.Policies); err != nil {
			return err
		}
	}
	if d.ownBound(c) {
		return d.queue.SetMaxWaiting(ctx, *c.MaxWaiting)
	}
	return nil
}

// boundText is the bound on what waits, for the log.
func (d *daemon) boundText(c *config.Config) string {
	switch {
	case !d.ownBound(c):
		return "as stored"
	case *c.MaxWaiting == 0:
		return "none"
	}
	return strconv.FormatInt(*c.MaxWaiting, 10)
}

// located makes a refusal of policies begin with the place in the file, or with the
// file where it is of a live policy that does not go with the file.
func (d *daemon) located(err error, c *config.Config) error {
	at := c.Locate(err)
	if at == "" {
		at = d.settings.file
	}
	return fmt.Errorf("%s: %w", at, err)
}

// announce writes the one record that tells what runs here.
func (d *daemon) announce(parts []part) {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	shards, policies, listening := "as stored", "as stored", "nowhere"
	if d.embedded() { // nothing was stored in it before
		shards, policies = strconv.Itoa(throttle.DefaultShards), "0"
	}
	if n := d.settings.config.Shards; n != 0 {
		shards = strconv.Itoa(n)
	}
	if d.ownPolicies(&d.settings.config) {
		policies = strconv.Itoa(len(d.settings.config.Policies))
	}
	if d.listener != nil {
		listening = d.listener.Addr().String()
	}
	d.logger.Info("started", "redis", redacted(d.redisURL), "shards", shards,
		"policies", policies, "max_waiting", d.boundText(&d.settings.config), "parts", strings.Join(names, ","), "listen", listening)
}

func (d *daemon) listen() error {
	address := d.settings.config.HTTP.Listen
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fail(exitFailed, "%scannot listen on %s: %w; give another address by --listen, or none",
			d.origin("http.listen"), address, err)
	}
	d.onClose(func() { _ = l.Close() })
	d.listener = l
	return nil
}

func (d *daemon) connect(ctx context.Context) (err error) {
	d.redisURL = d.settings.config.Redis
	if d.embedded() {
		if err := d.embed(); err != nil {
			return err
		}
	}
	d.client, d.queue, err = target{
		url: d.redisURL, origin: d.origin, wayOut: d.wayOut(),
		config: throttle.QueueConfig{Shards: d.settings.config.Shards, Logger: d.logger},
	}.connect(ctx)
	if err == nil {
		d.onClose(func() { _ = d.client.Close() })
	}
	return err
}

// wayOut tells what can be done where no Redis is. A worker alone has no use for one
// of its own.
func (d *daemon) wayOut() string {
	if !d.settings.scheduler {
		return "start one, or give the URL of another"
	}
	setting := d.settings.config.Origin("redis")
	if setting != "--redis" && setting != "WEIR_REDIS" {
		setting = "redis" // of the file, whose place the error begins with
	}
	return "start one, or leave " + setting + " out for one inside of the process"
}

// embedded tells whether the Redis is one inside of this process.
func (d *daemon) embedded() bool { return d.settings.config.Redis == "" }

func (d *daemon) embed() error {
	server, err := embedded.Start()
	if err != nil {
		return fail(exitFailed, "%w", err)
	}
	d.onClose(server.Close)
	d.redisURL = server.URL()
	d.logger.Warn("no Redis is set: using one inside of this process, which KEEPS NOTHING once it ends",
		"redis", d.redisURL, "try", "enqueue --redis "+d.redisURL)
	fmt.Fprintln(d.stdout, d.redisURL)
	return nil
}

// origin is where a setting was given, to begin an error with; empty for a default.
func (d *daemon) origin(path string) string {
	if from := d.settings.config.Origin(path); from != "" {
		return from + ": "
	}
	return ""
}

// parts makes the ones that this process was set to run.
func (d *daemon) parts() (parts []part, err error) {
	if err := d.registry.Register(worker.NewStoredCollector(d.queue)); err != nil {
		return nil, fail(exitFailed, "metrics: %w", err)
	}
	if d.settings.scheduler {
		scheduler, err := throttle.NewScheduler(d.queue, worker.NewDispatcher(d.client), throttle.SchedulerConfig{
			DeadLetters: d.settings.config.DeadLetters,
		})
		if err != nil {
			return nil, fail(exitFailed, "scheduler: %w", err)
		}
		parts = append(parts, part{"scheduler", scheduler.Run})
	}
	if d.settings.worker {
		c := d.settings.config.Worker.Server()
		c.Logger, c.Registerer, c.OnDead = d.logger, d.registry, d.onDead()
		server, err := worker.NewServer(d.client, d.queue, c)
		if err != nil {
			return nil, fail(exitFailed, "worker: %w", err)
		}
		calls := httpjob.NewHandler(d.settings.config.HTTP.Handler())
		d.onClose(calls.CloseIdleConnections)
		handlers := asynq.NewServeMux()
		handlers.Handle(httpjob.Type, calls)
		endpoints, err := webhook.NewEndpoints(d.client, d.queue)
		if err != nil {
			return nil, fail(exitFailed, "webhooks: %w", err)
		}
		deliveries, err := webhook.NewHandler(webhook.Config{Endpoints: endpoints, Caller: calls})
		if err != nil {
			return nil, fail(exitFailed, "webhooks: %w", err)
		}
		handlers.Handle(webhook.Type, deliveries)
		parts = append(parts, part{"worker", func(ctx context.Context) error { return server.Run(ctx, handlers) }})
	}
	return parts, nil
}

// drainSlack is what a drain may take beyond the shutdown timeout: for jobs to heed
// the end of their contexts and for their places in line to be written.
const drainSlack = 750 * time.Millisecond

// serve runs the parts until ctx ends or one of them fails, then drains. The
// endpoints stay until all else has ended, so that the drain can be watched.
func (d *daemon) serve(ctx context.Context, parts []part) error {
	working, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	ended, broken := make(chan error, len(parts)), make(chan error, 1)
	for _, p := range parts {
		go func() { ended <- p.await(working) }()
	}
	if d.listener != nil {
		endpoints := d.endpoints()
		d.onClose(func() { d.stopEndpoints(endpoints) })
		go func() {
			if err := endpoints.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
				broken <- fmt.Errorf("endpoints: %w", err)
			}
		}()
	}

	running := len(parts)
	var failed error
	select {
	case <-ctx.Done():
		d.logger.Info("draining", "cause", context.Cause(ctx), "shutdown_timeout", d.settings.config.Worker.ShutdownTimeout)
	case failed = <-ended:
		running--
	case failed = <-broken:
	}
	if failed != nil {
		d.logger.Error("draining after a failure", "error", failed)
	}
	d.draining.Store(true)
	halt()
	late := time.NewTimer(d.settings.config.Worker.ShutdownTimeout + drainSlack)
	defer late.Stop()
	for ; running > 0; running-- {
		select {
		case err := <-ended:
			failed = errors.Join(failed, err)
		case <-late.C:
			d.closers = nil // what still runs would panic without its client; the end of the process closes all
			return fail(exitFailed, "not drained in time, as Redis does not answer or the machine is too slow: jobs that were running are run again once their leases are over")
		}
	}
	if failed != nil {
		return fail(exitFailed, "%w", failed)
	}
	d.logger.Info("stopped")
	return nil
}

// await runs a part. To end on its own is a failure.
func (p part) await(ctx context.Context) error {
	err := p.run(ctx)
	if err == nil && ctx.Err() == nil {
		err = errors.New("it ended on its own")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}
