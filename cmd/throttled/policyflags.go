package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weirq/weir/cmd/throttled/internal/config"
	"github.com/weirq/weir/throttle"
)

// policyFlags are those of policy set.
type policyFlags struct {
	rate, parent, minimum, zone, ramp string
	burst                             int64
	inFlight, weight                  int
	quotas, open                      []string

	waiting   waitingFlags
	listening listeningFlags

	noQuotas, noParent, noMinimum, noHours, noRamp bool
}

func (f *policyFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.rate, "rate", "", "`RATE` in cost units, such as 100/s, 5/m or 1/24h")
	set.Int64Var(&f.burst, "burst", 0, "`UNITS` of cost that may leave at once from an idle key")
	set.IntVar(&f.inFlight, "max-in-flight", 0, "`N` jobs on their way to a worker or running, at once")
	set.StringArrayVar(&f.quotas, "quota", nil, "`'LIMIT/PER [sliding|fixed] [ZONE]'`: a further window that a job must fit; ZONE makes windows of 24h its calendar days")
	set.StringVar(&f.parent, "parent", "", "`KEY` with a policy of its own, whose cap this one shares")
	set.IntVar(&f.weight, "weight", 0, fmt.Sprintf("`N`, the share of a parent that cannot serve all, 1 to %d", throttle.MaxWeight))
	set.StringVar(&f.minimum, "minimum", "", "`RATE` that each key gets of such a parent in any case")
	set.StringArrayVar(&f.open, "open", nil, "`'[DAYS] HH:MM-HH:MM'` at which jobs may leave, such as 'mon-fri 09:00-18:00'")
	set.StringVar(&f.zone, "zone", "", "time `ZONE` whose clocks --open goes by, such as Europe/Berlin (default that of the present hours, or UTC)")
	set.StringVar(&f.ramp, "ramp", "", "`'PERCENT DURATION'`, such as '10% 5m': the share of the rate that jobs leave at after a pause, a cool-down or an outage, and how long until it is all of it")
	f.waiting.register(set)
	f.listening.register(set)
	set.BoolVar(&f.noQuotas, "no-quotas", false, "have no quotas")
	set.BoolVar(&f.noParent, "no-parent", false, "have no parent, and so no weight and no minimum")
	set.BoolVar(&f.noMinimum, "no-minimum", false, "have no minimum")
	set.BoolVar(&f.noHours, "no-hours", false, "let jobs leave at all hours")
	set.BoolVar(&f.noRamp, "no-ramp", false, "have the full rate at once")
}

// exclusive are flags that cannot go together.
var exclusive = [][2]string{
	{"quota", "no-quotas"}, {"parent", "no-parent"}, {"weight", "no-parent"}, {"minimum", "no-parent"},
	{"minimum", "no-minimum"}, {"open", "no-hours"}, {"zone", "no-hours"}, {"ramp", "no-ramp"}, {"floor", "no-floor"},
	{"circuit-failures", "no-circuit"}, {"circuit-ratio", "no-circuit"}, {"circuit-rest", "no-circuit"}, {"circuit-disable", "no-circuit"},
}

// An edit is a change to a policy that flags ask for.
type edit func(*throttle.Policy) error

// A flagEdit makes the edit that a flag asks for.
type flagEdit struct {
	flag string
	edit func() (edit, error)
}

// edits reads the flags that were given. It refuses what can be told without knowing
// the policy that they change.
func (f *policyFlags) edits(changed func(flag string) bool) (edits []edit, err error) {
	for _, pair := range exclusive {
		if changed(pair[0]) && changed(pair[1]) {
			return nil, fmt.Errorf("--%s and --%s exclude each other: give one of them", pair[0], pair[1])
		}
	}
	for _, read := range append(append(f.waiting.edits(), f.listening.edits()...), []flagEdit{
		{"rate", f.editRate}, {"burst", f.editBurst}, {"max-in-flight", f.editInFlight},
		{"quota", f.editQuotas}, {"parent", f.editParent}, {"weight", f.editWeight}, {"minimum", f.editMinimum},
		{"open", f.editOpen}, {"zone", f.editZone}, {"ramp", f.editRamp},
		{"no-quotas", unset(f.noQuotas, func(p *throttle.Policy) { p.Quotas = nil })},
		{"no-parent", unset(f.noParent, func(p *throttle.Policy) { p.Parent, p.Weight, p.Minimum = "", 0, throttle.Rate{} })},
		{"no-minimum", unset(f.noMinimum, func(p *throttle.Policy) { p.Minimum = throttle.Rate{} })},
		{"no-hours", unset(f.noHours, func(p *throttle.Policy) { p.Hours = nil })},
		{"no-ramp", unset(f.noRamp, func(p *throttle.Policy) { p.Ramp = nil })},
	}...) {
		if !changed(read.flag) {
			continue
		}
		e, err := read.edit()
		if err != nil {
			return nil, calledArgument("--"+read.flag, err)
		}
		edits = append(edits, e)
	}
	if len(edits) == 0 {
		return nil, errors.New("there is nothing to set: give --rate or another flag")
	}
	return edits, nil
}

// set is an edit that cannot fail.
func set(do func(*throttle.Policy)) edit {
	return func(p *throttle.Policy) error {
		do(p)
		return nil
	}
}

// unset takes a field away, unless its flag was given as false.
func unset(given bool, do func(*throttle.Policy)) func() (edit, error) {
	return func() (edit, error) {
		if !given {
			do = func(*throttle.Policy) {}
		}
		return set(do), nil
	}
}

func (f *policyFlags) editRate() (edit, error) {
	n, per, err := throttle.ParseRate(f.rate)
	return set(func(p *throttle.Policy) { p.Limit.Rate, p.Limit.Period = n, per }), err
}

func (f *policyFlags) editBurst() (edit, error) {
	return set(func(p *throttle.Policy) { p.Limit.Burst = f.burst }), bounded("burst", f.burst, throttle.MaxBurst)
}

func (f *policyFlags) editInFlight() (edit, error) {
	return set(func(p *throttle.Policy) { p.MaxInFlight = f.inFlight }), bounded("max-in-flight", f.inFlight, throttle.MaxInFlightBound)
}

func (f *policyFlags) editWeight() (edit, error) {
	return set(func(p *throttle.Policy) { p.Weight = f.weight }), bounded("weight", f.weight, throttle.MaxWeight)
}

func bounded[T int | int64](flag string, n, most T) error {
	if n < 1 || n > most {
		return fmt.Errorf("--%s %d is not allowed: want a whole number from 1 to %d", flag, n, most)
	}
	return nil
}

func (f *policyFlags) editParent() (edit, error) {
	err := throttle.ValidateKey(f.parent)
	return set(func(p *throttle.Policy) { p.Parent = f.parent }), err
}

func (f *policyFlags) editMinimum() (edit, error) {
	n, per, err := throttle.ParseRate(f.minimum)
	return set(func(p *throttle.Policy) { p.Minimum = throttle.Rate{Cost: n, Per: per} }), err
}

func (f *policyFlags) editQuotas() (edit, error) {
	quotas := make([]throttle.Quota, len(f.quotas))
	for i, text := range f.quotas {
		var err error
		if quotas[i], err = parseQuota(text); err != nil {
			return nil, err
		}
	}
	return set(func(p *throttle.Policy) { p.Quotas = quotas }), nil
}

// parseQuota reads "1000/h", "1000/h fixed" or "9000/d fixed Europe/Berlin".
func parseQuota(text string) (q throttle.Quota, err error) {
	words := strings.Fields(text)
	if len(words) < 1 || len(words) > 3 {
		return q, badQuota(text)
	}
	if q.Limit, q.Per, err = throttle.ParseRate(words[0]); err != nil {
		return q, badQuota(text)
	}
	if len(words) > 1 {
		q.Window = throttle.Window(words[1])
	}
	if len(words) > 2 {
		q.Zone = words[2]
	}
	err = q.Validate()
	var refused *throttle.InvalidError
	if errors.As(err, &refused) {
		// Plain from here on: the field is a part of the flag.
		return q, fmt.Errorf("--quota %q: %s", text, refused.Error())
	}
	return q, err
}

// badQuota tells how a quota is written.
func badQuota(text string) error {
	return fmt.Errorf("--quota %q is not allowed: want 'LIMIT/PER [sliding|fixed] [ZONE]', such as '1000/h' or '9000/d fixed Europe/Berlin', "+
		"with LIMIT a whole number from 1 to %d, and PER s, m, h, d or a duration from %s to %s",
		text, throttle.MaxRate, brief(throttle.MinQuotaPeriod), brief(throttle.MaxQuotaPeriod))
}

func (f *policyFlags) editOpen() (edit, error) {
	open := make([]throttle.Opening, len(f.open))
	for i, text := range f.open {
		var err error
		if open[i], err = throttle.ParseOpening(text); err != nil {
			return nil, err
		}
	}
	return func(p *throttle.Policy) error {
		if p.Hours == nil {
			p.Hours = &throttle.Hours{}
		}
		p.Hours.Open = open
		return nil
	}, nil
}

func (f *policyFlags) editZone() (edit, error) {
	all := []throttle.Opening{{To: 24 * time.Hour}}
	err := throttle.Hours{Zone: f.zone, Open: all}.Validate()
	return func(p *throttle.Policy) error {
		if p.Hours == nil {
			return fmt.Errorf("--zone needs hours, and %q has none: give --open beside it", p.Key)
		}
		p.Hours.Zone = f.zone
		return nil
	}, err
}

func (f *policyFlags) editRamp() (edit, error) {
	words := strings.Fields(f.ramp)
	var ramp throttle.Ramp
	ok := len(words) == 2
	if ok {
		ramp.From, ok = config.ParsePercent(words[0])
	}
	if ok {
		var err error
		ramp.Over, err = time.ParseDuration(words[1])
		ok = err == nil && ramp.Validate() == nil
	}
	if !ok {
		return nil, fmt.Errorf("--ramp %q is not allowed: want a percentage above 0%% and below 100%% and a duration from %s to %s, such as '10%% 5m'",
			f.ramp, brief(throttle.MinRamp), brief(throttle.MaxRamp))
	}
	return set(func(p *throttle.Policy) { p.Ramp = &ramp }), nil
}
