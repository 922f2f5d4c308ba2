package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirq/weir/throttle"
)

// Config sets up a [Server]. The zero value is ready to use.
type Config struct {
	// Concurrency is how many jobs may run, or wait for their slots, at once. 0
	// means 500; 1 to 100000.
	Concurrency int
	// Pools are the asynq queues to serve, with their priorities. nil means
	// throttle.DefaultPool alone.
	Pools map[string]int
	// Lead must be that of the schedulers. 0 means throttle.DefaultLead.
	Lead time.Duration
	// Lease is how long a job stays with a worker that is not heard of any more. A
	// live worker renews it three times as often. 0 means 30s or ten leads,
	// whichever is longer; at least 1s and ten leads.
	Lease time.Duration
	// Timeout of an attempt, for jobs that do not say. 0 means 30s.
	Timeout time.Duration
	// Retry spaces the attempts of jobs that fail.
	Retry RetryPolicy
	// ShutdownTimeout is how long running jobs may take to end once the server
	// stops; the rest go back into their buckets with no attempt counted. 0 means
	// 10s.
	ShutdownTimeout time.Duration
	// OnDead is called with each job that this server gives up, the last attempt of it and the reason, before
	// it is kept as a dead letter; nil means nobody. It has ten seconds. If the server is lost meanwhile another
	// one calls again. Jobs whose deadline passes while they wait are not among them, see Queue.Events.
	OnDead func(ctx context.Context, job throttle.Job, attempt int, reason string)
	// Logger gets a record for each attempt: failed ones at level Info, dead ones
	// at Warn, the others at Debug. nil discards it.
	Logger *slog.Logger
	// Registerer takes the metrics. nil keeps none.
	Registerer prometheus.Registerer
}

func (c Config) withDefaults() Config {
	setDefault(&c.Concurrency, 500)
	if len(c.Pools) == 0 {
		c.Pools = map[string]int{throttle.DefaultPool: 1}
	}
	setDefault(&c.Lead, throttle.DefaultLead)
	setDefault(&c.Lease, max(30*time.Second, 10*c.Lead))
	setDefault(&c.Timeout, 30*time.Second)
	setDefault(&c.ShutdownTimeout, 10*time.Second)
	c.Retry = c.Retry.withDefaults()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) validate() error {
	if c.Concurrency < 1 || c.Concurrency > 100_000 {
		return fmt.Errorf("concurrency %d is not allowed: want 1 to 100000", c.Concurrency)
	}
	for pool, priority := range c.Pools {
		if pool == "" || priority < 1 {
			return fmt.Errorf("pool %q with priority %d is not allowed: want a name and at least 1", pool, priority)
		}
	}
	if c.Lease < max(time.Second, 10*c.Lead) {
		return fmt.Errorf("lease %v is not allowed: want at least 1s and ten times the lead of %v", c.Lease, c.Lead)
	}
	if c.Timeout < 0 {
		return fmt.Errorf("timeout %v is not allowed: want a positive duration", c.Timeout)
	}
	if c.ShutdownTimeout < 0 {
		return fmt.Errorf("shutdown timeout %v is not allowed: want a positive duration", c.ShutdownTimeout)
	}
	return c.Retry.validate()
}
