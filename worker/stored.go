package worker

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirq/weir/throttle"
)

// NewStoredCollector returns a collector of what is stored in Redis and of what became of
// jobs there, see [throttle.Queue.Stats]. Whichever process tells of it, the figures are
// those of all: gather them from one, or take the highest. A Redis that does not answer
// within a second is left out, and counted.
func NewStoredCollector(q *throttle.Queue) prometheus.Collector {
	return &storedCollector{queue: q, failures: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "weir_stored_failures_total", Help: "Times that the stored state could not be counted.",
	})}
}

type storedCollector struct {
	queue    *throttle.Queue
	failures prometheus.Counter
}

var (
	storedKeys  = prometheus.NewDesc("weir_keys", "Keys that have jobs.", nil, nil)
	storedJobs  = prometheus.NewDesc("weir_jobs", "Jobs that are stored, by state.", []string{"state"}, nil)
	storedTotal = prometheus.NewDesc("weir_stored_events_total",
		"What happened to jobs and their attempts, for all processes together.", []string{"event"}, nil)
)

// Describe implements prometheus.Collector.
func (c *storedCollector) Describe(to chan<- *prometheus.Desc) {
	to <- storedKeys
	to <- storedJobs
	to <- storedTotal
	c.failures.Describe(to)
}

// Collect implements prometheus.Collector.
func (c *storedCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s, err := c.queue.Stats(ctx)
	if err != nil {
		c.failures.Inc()
		c.failures.Collect(to)
		return
	}
	c.failures.Collect(to)
	gauge := func(d *prometheus.Desc, n int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(storedKeys, s.Keys)
	for state, n := range map[string]int64{
		throttle.Waiting: s.Waiting, throttle.Delayed: s.Delayed, throttle.InFlight: s.InFlight,
		throttle.Dead: s.Dead, throttle.Done: s.Done,
	} {
		gauge(storedJobs, n, state)
	}
	t := s.Totals
	for event, n := range map[string]int64{
		"enqueued": t.Enqueued, "departed": t.Departed, "done": t.Done, "retried": t.Retried, "dead": t.Dead,
		"expired": t.Expired, "cancelled": t.Cancelled, "purged": t.Purged, "displaced": t.Displaced,
		"dropped": t.Dropped, "refused": t.Refused, "replaced": t.Replaced, "replayed": t.Replayed,
		"discarded": t.Discarded, "dead_evicted": t.Evicted,
	} {
		to <- prometheus.MustNewConstMetric(storedTotal, prometheus.CounterValue, float64(n), event)
	}
}
