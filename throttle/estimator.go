package throttle

import (
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// An estimator tells when jobs of one key leave, from one outlook.
type estimator struct {
	now      time.Time // by the server's clock
	start    outlook
	ok       bool
	toServer time.Duration // from the shard's time
	forecast *forecast
	ahead    float64
}

// newEstimator reads an outlook; now and shardNow are the same instant of the server's
// clock and of the shard's. Without an outlook it tells nothing.
func newEstimator(now, shardNow int64, text string) *estimator {
	o, err := readOutlook(shardNow, text)
	return &estimator{now: time.UnixMicro(now), start: o, ok: err == nil, toServer: microseconds(now - shardNow)}
}

// departure is when a job leaves that has jobs of cost ahead before it in the line, and
// is delayed until at (0: is not), by the server's clock; zero if only an event can tell.
func (e *estimator) departure(ahead float64, jobs, cost, at int64) time.Time {
	if !e.ok {
		return time.Time{}
	}
	if e.forecast == nil || ahead < e.ahead {
		e.forecast = newForecast(e.start)
	}
	e.ahead = ahead
	leaves, known := e.forecast.departure(ahead, jobs, cost)
	if !known {
		return time.Time{}
	}
	return e.server(max(leaves, at))
}

// released is when a job leaves that is on its way to a worker.
func (e *estimator) released(cost int64) time.Time {
	if !e.ok {
		return time.Time{}
	}
	o := e.start
	o.stages = append([]stage(nil), o.stages...)
	o.stages[0].out, o.stages[0].flight = 0, 0
	at, known := newForecast(o).departure(0, 0, cost)
	if !known {
		return time.Time{}
	}
	return e.server(at)
}

func (e *estimator) server(shard int64) time.Time {
	if shard-e.start.now > maxWait.Microseconds() {
		return time.Time{}
	}
	return time.UnixMicro(shard).Add(e.toServer)
}

// estimate is when a job leaves that stands as told.
func (e *estimator) estimate(state string, ahead float64, jobs, cost, at int64) time.Time {
	switch state {
	case Released:
		return e.released(cost)
	case Running:
		return e.server(at)
	case Waiting, Delayed:
		return e.departure(ahead, jobs, cost, at)
	}
	return time.Time{}
}

// expiry is when a job expires that was just enqueued with what m says of it, zero for
// never.
func (e *estimator) expiry(m *script.More) (at time.Time) {
	var ttl int64
	if m != nil {
		ttl = m.TTL
		if m.Deadline > 0 {
			at = time.UnixMicro(m.Deadline)
		}
	}
	if ttl == 0 && e.ok {
		ttl = e.start.stages[0].policy.JobTTL.Microseconds()
	}
	if end := e.now.Add(microseconds(ttl)); ttl > 0 && (at.IsZero() || end.Before(at)) {
		at = end
	}
	return at
}

// expiresFirst tells whether a job expires before it leaves.
func (e *estimator) expiresFirst(r Receipt) bool {
	switch r.State {
	case Waiting, Delayed, Released:
	default: // it has left
		return false
	}
	late := r.EstimatedDeparture.After(r.Expires) || !e.now.Before(r.Expires)
	return late && !r.Expires.IsZero()
}
