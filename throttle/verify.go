package throttle

import (
	"math"
	"slices"
	"sort"
	"time"
)

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
	Cost     float64   // what left in it, in cost units; in a fixed quota, with the debt of those before
	Allowed  float64   // what may leave in it; for a job at its end that is dearer than the burst or quota, with what it may exceed that by
	Early    int       // departures that should not have left when they did
	Jobs     []string  // ids of the first of them, at most MaxViolationJobs
	Policy   Policy    // in force at the end of the window
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

// A rulebook is a policy in force, with what it takes to judge by it.
type rulebook struct {
	place  place
	known  bool // whether policy is
	policy Policy
	quotas []*quotaCheck
	hours  *hoursCheck
	leaked float64 // what could leak until it came into force: rateCheck.total by then
	cost   float64 // of the slots that were given out under it
}

// A check goes through a history and judges what departs by all rules.
type check struct {
	v          Verification
	rulebooks  []*rulebook // the last one is in force
	rate       rateCheck
	late       lateCharges
	violations []*Violation
}

// now is the rulebook in force.
func (c *check) now() *rulebook { return c.rulebooks[len(c.rulebooks)-1] }

// under is the rulebook that something was logged under, and the one that followed: nil if
// it is still in force. It is not known where the log begins without one.
func (c *check) under(p place) (book, next *rulebook) {
	n := len(c.rulebooks)
	if p.seq > 0 {
		n = sort.Search(n, func(i int) bool { return c.rulebooks[i].place.seq > p.seq })
	}
	if n < len(c.rulebooks) {
		next = c.rulebooks[n]
	}
	if n == 0 {
		return &rulebook{}, next
	}
	return c.rulebooks[n-1], next
}

func (c *check) change(p *PolicyChange) {
	book := &rulebook{place: p.place.or(p.At), known: !p.Unknown, policy: p.Policy.WithDefaults()}
	if !book.known {
		c.rate.forget()
	} else {
		c.rate.change(book)
		c.addQuotas(book)
		c.addHours(book)
	}
	c.rulebooks = append(c.rulebooks, book)
}

// depart judges a departure, if its policy is known.
func (c *check) depart(d *Departure) (judged bool) {
	where := d.place.or(d.At)
	book, next := c.under(where)
	if !book.known || next != nil && !c.now().known {
		c.v.Unjudged++
		return false
	}
	if c.v.Departures == 0 {
		c.v.From = d.At
	}
	c.v.To = d.At
	c.v.Departures++
	c.v.Cost += float64(d.Cost)
	if d.Forced {
		c.v.Forced++
	}
	spared := c.late.since(where) + c.overtaken(next)
	c.rate.depart(c, d, book, next, spared)
	for _, q := range book.quotas {
		q.depart(c, d, book, spared)
	}
	if book.hours != nil && !d.Forced {
		book.hours.depart(c, d, book)
	}
	if d.Forced {
		c.late.add(where, d.Cost)
	} else if !c.rate.early {
		book.cost += float64(d.Cost)
	}
	return true
}

// overtaken is the cost of what got an earlier slot later, under a policy that lets more
// leave: next and those that followed it.
func (c *check) overtaken(next *rulebook) (cost float64) {
	for i := len(c.rulebooks) - 1; next != nil; i-- {
		cost += c.rulebooks[i].cost
		if c.rulebooks[i] == next {
			break
		}
	}
	return cost
}

// settle charges what a run cost more, if the policy is known.
func (c *check) settle(s *Settlement) (charged bool) {
	where := s.place.or(s.At)
	book, _ := c.under(where)
	if !book.known || !c.now().known {
		return false
	}
	c.v.Settlements++
	c.v.Cost += float64(s.Off)
	c.rate.settle(s)
	for _, q := range book.quotas {
		q.settle(c, s)
	}
	c.late.add(where, s.Off)
	return true
}

// lateCharges are those that nobody waited for, in the order of the log. A departure whose
// slot had been given out by then need not make room for them.
type lateCharges struct {
	seqs []int
	sums []float64 // of all until then
}

func (l *lateCharges) add(p place, cost int64) {
	sum := float64(cost)
	if n := len(l.sums); n > 0 {
		sum += l.sums[n-1]
	}
	l.seqs, l.sums = append(l.seqs, p.seq), append(l.sums, sum)
}

// since is the sum of the charges that were logged after a departure.
func (l *lateCharges) since(p place) float64 {
	n := len(l.sums)
	if n == 0 || l.seqs[n-1] <= p.seq {
		return 0
	}
	first := sort.SearchInts(l.seqs, p.seq+1)
	if first == 0 {
		return l.sums[n-1]
	}
	return l.sums[n-1] - l.sums[first-1]
}

// violation begins a new one.
func (c *check) violation(what string) *Violation {
	v := &Violation{What: what}
	c.violations = append(c.violations, v)
	return v
}

// unchecked notes a rule that cannot be checked, once.
func (c *check) unchecked(what string) {
	if !slices.Contains(c.v.Unchecked, what) {
		c.v.Unchecked = append(c.v.Unchecked, what)
	}
}

func (c *check) finish() Verification {
	v := c.v
	if v.Departures > 0 {
		v.Allowed = c.rate.allowed
		v.Used = v.Cost / v.Allowed
	}
	v.Busy = time.Duration(math.Round(c.rate.busy)) * time.Microsecond
	if c.rate.busy > 0 {
		v.Pace = c.rate.asked / c.rate.busy
	}
	for _, found := range c.violations {
		v.Violations = append(v.Violations, *found)
	}
	slices.SortStableFunc(v.Violations, func(a, b Violation) int { return a.To.Compare(b.To) })
	return v
}
