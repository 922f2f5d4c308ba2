package limiter

import "time"

// A Result is an answer to one call. All times count from the instant of the decision.
type Result struct {
	Allowed bool

	// Limit is the most that can pass at once: the burst, or the limit of the window.
	// With several rules it is, as are Remaining and ResetAfter, that of the rule which
	// leaves least.
	Limit int64
	// Remaining is how much cost would be allowed after this call; 0 to Limit.
	Remaining int64
	// RetryAfter is when the same call would be allowed if nothing else came, rounded up
	// to a whole microsecond; 0 if it was allowed.
	RetryAfter time.Duration
	// ResetAfter is when Remaining will be Limit again if nothing else comes.
	ResetAfter time.Duration
	// Delay is how long what is allowed must wait for its turn: in a [LeakyQueue], and
	// behind a [Reservation]. It is 0 otherwise.
	Delay time.Duration

	// Rules is how each rule stands, in their order; nil if there is only one.
	Rules []RuleResult
}

// A RuleResult is how one of several rules stands after a call.
type RuleResult struct {
	Limit, Remaining int64
	ResetAfter       time.Duration
}

// tell makes a result of meters. If it was allowed and they were charged, at the slot, they are
// those after that.
func tell(meters []meter, d decision) Result {
	r := Result{Allowed: d.allowed}
	if d.allowed {
		r.Delay = since(d.now, d.slot)
	} else {
		r.RetryAfter = since(d.now, d.slot)
	}
	if len(meters) > 1 {
		r.Rules = make([]RuleResult, len(meters))
	}
	for i, m := range meters {
		one := RuleResult{m.most(), m.remaining(d.now), since(d.now, m.fresh())}
		if d.charged {
			r.Delay = max(r.Delay, since(d.now, m.leave(d.slot, d.cost)))
		}
		if i == 0 || one.Remaining < r.Remaining || one.Remaining == r.Remaining && one.ResetAfter > r.ResetAfter {
			r.Limit, r.Remaining, r.ResetAfter = one.Limit, one.Remaining, one.ResetAfter
		}
		if len(meters) > 1 {
			r.Rules[i] = one
		}
	}
	return r
}

// since is how long after now an instant is; 0 if it is over.
func since(now, at int64) time.Duration { return time.Duration(max(0, at-now)) * time.Microsecond }
