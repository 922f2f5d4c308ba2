package throttle

import "time"

// DefaultAgeing is how long a job waits to gain one priority, unless its policy says
// otherwise.
const DefaultAgeing = time.Minute

// Bounds of the ageing of a policy.
const (
	MinAgeing = time.Millisecond
	MaxAgeing = 24 * time.Hour
)

// Bounds of a time to live.
const (
	MinTTL = time.Millisecond
	MaxTTL = 10 * 365 * 24 * time.Hour
)

// MaxHistory is the most departures of a key that are kept.
const MaxHistory = 1_000_000

// Bounds of the time for which done jobs are kept.
const (
	MinKeepDone = time.Second
	MaxKeepDone = 30 * 24 * time.Hour
)

// validateLifetimes checks how long jobs wait and what is kept of them.
func (p Policy) validateLifetimes() error {
	const (
		bounds = "whole microseconds from %v to %v, or 0 for "
		orNone = bounds + "none"
	)
	if !isSpan(p.Ageing, MinAgeing, MaxAgeing) {
		return invalid("ageing", p.Ageing, bounds+"the default of %v", MinAgeing, MaxAgeing, DefaultAgeing)
	}
	if !isSpan(p.JobTTL, MinTTL, MaxTTL) {
		return invalid("job_ttl", p.JobTTL, orNone, MinTTL, MaxTTL)
	}
	if p.History < 0 || p.History > MaxHistory {
		return invalid("history", p.History, "1 to %d, or 0 for none", MaxHistory)
	}
	if !isSpan(p.KeepDone, MinKeepDone, MaxKeepDone) {
		return invalid("keep_done", p.KeepDone, orNone, MinKeepDone, MaxKeepDone)
	}
	return nil
}

// isSpan tells whether d is left out, or within bounds and whole microseconds.
func isSpan(d, shortest, longest time.Duration) bool {
	return d == 0 || d >= shortest && d <= longest && d%time.Microsecond == 0
}
