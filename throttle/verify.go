package throttle

import "time"

// MaxViolationJobs is the most ids that a [Violation] lists.
const MaxViolationJobs = 5

// A Verification tells whether what left under a key kept to the policy in force, in
// every window of time. It is a proof for the departures that are kept: nothing is known
// of what left before the first of them.
//
// In every window of length t, cost <= burst + rate×t has to hold for what departed: the
// slots that jobs were given by the clock of Redis. A departure is judged by the policy
// under which its slot was given out; around a change of the rate the faster one counts
// from the last departure under the old policy on.
type Verification struct {
	Key         string
	From, To    time.Time // the first and the last departure that was judged; zero without any
	Departures  int       // judged
	Cost        float64   // all of theirs, and what runs cost more than they were charged
	Forced      int       // departures that an operator let go: charged, but no violation
	Settlements int       // runs that cost more than they were charged
	Damaged     int       // entries of the history that could not be read
	Unjudged    int       // departures whose policy is not known
	Unchecked   []string  // rules that could not be checked, and why

	Allowed float64 // burst + rate×time from From to To
	Used    float64 // Cost / Allowed

	// Busy is the time in which jobs seem to have waited for the rate: in which the bucket
	// had to leak before the next one could leave, and it left no later after that than its
	// own cost takes to leak. Pace is the part of the rate that was used in it: the time
	// that the limit asks for, divided by Busy. It is 0 if the key was never busy.
	Busy time.Duration
	Pace float64

	Quotas     []QuotaUse
	Violations []Violation // in the order of their ends
}

// OK tells whether no window broke the policy.
func (v Verification) OK() bool { return len(v.Violations) == 0 }

// A Violation is a window in which more left than the policy in force allows. An excess
// is reported once: departures are judged as if what left too early had not left.
type Violation struct {
	What     string    // "rate", "hours", or "quota " and the quota as [Quota.String] writes it
	From, To time.Time // the window: the first one of the largest excess, both ends in it
	// Cost is what left in it, in cost units; in a fixed quota, with the debt of earlier
	// ones. Allowed is what may: for a job at its end that is dearer than the burst or the
	// quota, with what it may exceed that by.
	Cost, Allowed float64
	Early         int      // departures that should not have left when they did
	Jobs          []string // ids of the first of them, at most MaxViolationJobs
	Policy        Policy   // in force at the end of the window
}

// note counts a departure among those that left too early.
func (v *Violation) note(d *Departure) {
	v.Early++
	if len(v.Jobs) < MaxViolationJobs {
		v.Jobs = append(v.Jobs, d.ID)
	}
}

// widen makes v speak of another window if its excess is larger by more than rounding.
func (v *Violation) widen(from, to time.Time, cost, allowed, tolerance float64, p Policy) {
	if v.Early == 0 || cost-allowed > v.Cost-v.Allowed+tolerance {
		v.From, v.To, v.Cost, v.Allowed, v.Policy = from, to, cost, allowed, p
	}
}

// Rounding of slots to the microsecond, and of sums of floats.
const (
	toleranceUnits = 1e-6
	toleranceShare = 1e-9 // of the burst
	toleranceTime  = 1    // µs of the rate
)

func (l Limit) tolerance() float64 {
	return toleranceUnits + toleranceShare*float64(l.Burst) + l.leaked(toleranceTime)
}

func (l Limit) rate() Rate { return Rate{Cost: l.Rate, Per: l.Period} }

// leaked is what leaks in so many µs.
func (l Limit) leaked(us int64) float64 {
	return float64(us) * float64(l.Rate) / float64(l.Period.Microseconds())
}

// Verify proves that no window broke the policy in force, or names those that did. It
// takes a second or two for a million departures.
func (h History) Verify() Verification {
	c := check{v: Verification{Key: h.Key, Damaged: h.Damaged}}
	h.each(c.change, func(d *Departure) { c.depart(d) }, func(s *Settlement) { c.settle(s) })
	return c.finish()
}
