package worker

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics has labels of few values only: no key, URL or job id.
type metrics struct {
	attempts *prometheus.CounterVec
	duration prometheus.Histogram
	lateness prometheus.Histogram
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_attempts_total", Help: "Jobs that reached a worker, by what became of them.",
		}, []string{"outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weir_attempt_duration_seconds", Help: "Time that handlers took.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weir_departure_lateness_seconds", Help: "Time between a job's slot and its departure.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 3, 9),
		}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.attempts, m.duration, m.lateness} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) attempted(o Outcome, took time.Duration) {
	m.attempts.WithLabelValues(string(o)).Inc()
	if took > 0 {
		m.duration.Observe(took.Seconds())
	}
}

func (m *metrics) departed(late time.Duration) { m.lateness.Observe(max(0, late.Seconds())) }
