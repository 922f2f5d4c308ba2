package throttle

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// MaxInFlightBound is the highest MaxInFlight.
const MaxInFlightBound = 1_000_000

// MaxWeight is the highest Weight.
const MaxWeight = 1000

// MaxWaitingBound is the highest MaxWaiting.
const MaxWaitingBound = 1_000_000_000

// A Policy is all that governs a key. Where several could, a policy for exactly the
// key comes first, then the one that its jobs bring ([Job].Policy), then the pattern
// with the most literal bytes, then AnyKey, then [DefaultPolicy].
type Policy struct {
	// Key is an exact key, a pattern (a key with one *, which stands for any text, the
	// empty one too), or AnyKey. A job's own key may have a * in it, but there is no
	// exact policy for such a key: one under its name is a pattern, which governs that
	// key and others.
	Key string

	Limit       Limit
	Quotas      []Quota // further windows, all of which must have room; at most MaxQuotas, of different windows
	MaxInFlight int     // released and running jobs at once; 0 means 100, at most MaxInFlightBound

	// Parent is the exact key of another policy, whose cap this key shares with all
	// others that name it: a job must fit both. Parents may have parents, MaxLevels in
	// all with the key itself. Empty means none.
	Parent string
	// Weight is this key's share of a parent that cannot serve all, relative to the
	// shares of the others. It needs a Parent. 0 means 1, at most MaxWeight.
	Weight int
	// Minimum is what this key gets of a parent that cannot serve all, whatever the
	// weights. It needs a Parent, and is at most the key's own rate and the parent's.
	// Zero means none. Each key of a pattern has this minimum; a parent can keep to no
	// more of them than its rate allows.
	Minimum Rate

	Hours *Hours // when jobs may leave; nil means always
	Ramp  *Ramp  // how the rate comes back after a pause, a cool-down or an outage; nil means at once

	// Ordered lets one job go at a time, whatever MaxInFlight says. One that fails holds
	// the line until it is done, dead, cancelled or expired.
	Ordered bool
	// Ageing is how long a job waits to gain one priority. 0 means DefaultAgeing;
	// MinAgeing to MaxAgeing, whole microseconds.
	Ageing time.Duration
	// JobTTL is how long a job that names no TTL may wait for its first attempt. 0 means
	// for ever; MinTTL to MaxTTL, whole microseconds.
	JobTTL time.Duration

	MaxWaiting int64    // waiting and delayed jobs at once; 0 means no bound, at most MaxWaitingBound
	Overflow   Overflow // what becomes of more jobs than that; it needs MaxWaiting, and empty means Refuse

	// Listen is what becomes of what the other side says; empty means Obey. Floor is the lowest rate of
	// Adapt; zero means a hundredth of the policy's.
	Listen  Listening
	Floor   Rate
	Circuit *Circuit // keeps calls from a key whose calls fail; nil means never

	// Events has [Queue.Events] tell what becomes of jobs, beside what becomes of keys.
	Events bool

	// History is how many departures are kept for throttled verify. 0 means none, at
	// most MaxHistory.
	History int
	// KeepDone is how long jobs that are done can be looked up and replayed. 0 means not
	// at all; MinKeepDone to MaxKeepDone, whole microseconds.
	KeepDone time.Duration
}

// DefaultPolicy governs keys when no policy says otherwise: 10/s, burst 1, 100
// in flight.
var DefaultPolicy = Policy{
	Key:         AnyKey,
	Limit:       Limit{Rate: 10, Period: 1_000_000_000, Burst: 1},
	MaxInFlight: 100,
}

// WithDefaults is the policy in the one form in which it is stored and read back. It
// shares nothing with p that could be changed.
func (p Policy) WithDefaults() Policy {
	if p.MaxInFlight == 0 {
		p.MaxInFlight = DefaultPolicy.MaxInFlight
	}
	if p.Parent != "" && p.Weight == 0 {
		p.Weight = 1
	}
	if p.MaxWaiting > 0 && p.Overflow == "" {
		p.Overflow = Refuse
	}
	quotas := p.Quotas
	p.Quotas = nil
	for _, q := range quotas {
		p.Quotas = append(p.Quotas, q.withDefaults())
	}
	if p.Hours != nil {
		h := p.Hours.withDefaults()
		p.Hours = &h
	}
	if p.Ramp != nil {
		r := *p.Ramp
		p.Ramp = &r
	}
	if p.Listen == Obey {
		p.Listen = ""
	}
	if p.Circuit != nil {
		c := p.Circuit.withDefaults()
		p.Circuit = &c
	}
	return p
}

// rate is the limit's, without the burst.
func (p Policy) rate() Rate { return Rate{Cost: p.Limit.Rate, Per: p.Limit.Period} }

// zones lists the time zones that a policy names, each once, without UTC.
func (p Policy) zones() []string {
	var names []string
	add := func(name string) {
		if name = normalZone(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, q := range p.Quotas {
		add(q.Zone)
	}
	if p.Hours != nil {
		add(p.Hours.Zone)
	}
	return names
}

// Validate tells the first field that is out of bounds, as an [*InvalidError] whose
// Field is a path such as "quotas[1].per". What depends on other policies is checked
// where all of them are known, by [Queue.SetPolicies].
func (p Policy) Validate() error {
	if err := ValidatePolicyName(p.Key); err != nil {
		return err
	}
	if err := p.validateValues(); err != nil {
		return err
	}
	return p.validateZones()
}

// validateBrought is Validate for the policy that a job brings. Its Key does not
// count, and it has no parent: jobs do not decide who shares what.
func (p Policy) validateBrought() error {
	const allowed = "none in the policy of a job: only stored policies have one"
	switch {
	case p.Parent != "":
		return invalid("parent", p.Parent, allowed)
	case p.Weight != 0:
		return invalid("weight", p.Weight, allowed)
	case p.Minimum != Rate{}:
		return invalid("minimum", p.Minimum.String(), allowed)
	}
	if err := p.validateValues(); err != nil {
		return err
	}
	for i, q := range p.Quotas {
		if q.Zone != "" {
			return invalid(fmt.Sprintf("quotas[%d].zone", i), q.Zone, allowedZone)
		}
	}
	if p.Hours != nil && p.Hours.Zone != "" {
		return invalid("hours.zone", p.Hours.Zone, allowedZone)
	}
	return nil
}

const allowedZone = "UTC in the policy of a job: only stored policies know other zones"

// validateValues checks all but the name and the zones, which depend on what this
// machine knows.
func (p Policy) validateValues() error {
	if err := p.Limit.Validate(); err != nil {
		return err
	}
	if err := p.validateQuotas(); err != nil {
		return err
	}
	if p.MaxInFlight < 0 || p.MaxInFlight > MaxInFlightBound {
		return invalid("max_in_flight", p.MaxInFlight, "1 to %d, or 0 for the default of %d", MaxInFlightBound, DefaultPolicy.MaxInFlight)
	}
	if err := p.validateShare(); err != nil {
		return err
	}
	if p.Hours != nil {
		if err := p.Hours.validateValues(); err != nil {
			return within("hours", err)
		}
	}
	if p.Ramp != nil {
		if err := p.Ramp.Validate(); err != nil {
			return within("ramp", err)
		}
	}
	if err := p.validateListening(); err != nil {
		return err
	}
	if err := p.validateWaiting(); err != nil {
		return err
	}
	return p.validateLifetimes()
}

func (p Policy) validateQuotas() error {
	if n := len(p.Quotas); n > MaxQuotas {
		return invalid("quotas", n, "at most %d", MaxQuotas)
	}
	for i, q := range p.Quotas {
		place := fmt.Sprintf("quotas[%d]", i)
		if err := q.validateValues(); err != nil {
			return within(place, err)
		}
		q = q.withDefaults()
		for _, other := range p.Quotas[:i] {
			other = other.withDefaults()
			other.Limit = q.Limit
			if other == q {
				return invalid(place, q.String(), "one quota for each window, period and zone")
			}
		}
	}
	return nil
}

// validateShare checks how a policy shares its parent's cap.
func (p Policy) validateShare() error {
	if p.Parent == "" {
		const allowed = "none without a parent"
		switch {
		case p.Weight != 0:
			return invalid("weight", p.Weight, allowed)
		case p.Minimum != Rate{}:
			return invalid("minimum", p.Minimum.String(), allowed)
		}
		return nil
	}
	if err := validateParent(p.Parent); err != nil {
		return err
	}
	if p.Parent == p.Key {
		return invalid("parent", p.Parent, "another key than the policy's own")
	}
	if p.Weight < 0 || p.Weight > MaxWeight {
		return invalid("weight", p.Weight, "1 to %d, or 0 for the default of 1", MaxWeight)
	}
	if p.Minimum == (Rate{}) {
		return nil
	}
	if p.Minimum.Validate() != nil {
		return invalid("minimum", p.Minimum.String(), "1 to %d cost units per period of whole microseconds from %v to %v", int64(MaxRate), MinPeriod, MaxPeriod)
	}
	if p.Minimum.above(p.rate()) {
		return invalid("minimum", p.Minimum.String(), "at most the policy's own rate of %v", p.rate())
	}
	return nil
}

func validateParent(parent string) error {
	switch {
	case len(parent) > MaxKeyBytes:
		return invalid("parent", len(parent), "at most %d bytes", MaxKeyBytes)
	case !utf8.ValidString(parent):
		return invalid("parent", parent, "valid UTF-8")
	case isPattern(parent):
		return invalid("parent", parent, "an exact key, without *")
	}
	return nil
}

func (p Policy) validateZones() error {
	for i, q := range p.Quotas {
		if err := validateZone(q.Zone); err != nil {
			return within(fmt.Sprintf("quotas[%d]", i), err)
		}
	}
	if p.Hours != nil {
		if err := validateZone(p.Hours.Zone); err != nil {
			return within("hours", err)
		}
	}
	return nil
}
