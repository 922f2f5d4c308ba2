package throttle

import (
	"math"
	"slices"
	"sort"
	"time"
)

// A rulebook is a policy in force, with what it takes to judge by it.
type rulebook struct {
	place  place
	known  bool // whether policy is
	policy Policy
	quotas []*quotaCheck
	hours  *hoursCheck
	leaked float64 // what could leak until it came into force: rateCheck.total by then
	unused float64 // and rateCheck.unused
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
