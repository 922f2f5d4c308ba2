package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/weirq/weir/cmd/throttled/internal/config"
	"github.com/weirq/weir/throttle"
)

// listeningFlags are those of policy set about what the other side of calls says, and about calls that fail.
type listeningFlags struct {
	listen, floor, ratio string
	failures             int
	rest, disable        time.Duration
	noFloor, noCircuit   bool
	events               bool
}

func (f *listeningFlags) register(set *pflag.FlagSet) {
	set.BoolVar(&f.events, "events", false, "have throttled events tell what becomes of jobs; --events=false ends that")
	set.StringVar(&f.listen, "listen", "", fmt.Sprintf(
		"`MODE` of what the other side says with 429, Retry-After and its like: %s rests when told to (the default), %s lowers the rate as well "+
			"until it finds the limit of the other side, %s takes a refused call for a failed one", throttle.Obey, throttle.Adapt, throttle.Ignore))
	set.StringVar(&f.floor, "floor", "", "lowest `RATE` that --listen adapt goes down to (default a hundredth of --rate)")
	set.BoolVar(&f.noFloor, "no-floor", false, "have the default floor")
	set.IntVar(&f.failures, "circuit-failures", 0, fmt.Sprintf("`N` failed calls in a row that keep further ones back for --circuit-rest, up to %d; 0 for the ratio alone", throttle.MaxFailures))
	set.StringVar(&f.ratio, "circuit-ratio", "", "`PERCENT` of failed calls among the last 50 that do so, such as 50%")
	set.DurationVar(&f.rest, "circuit-rest", 0, fmt.Sprintf("`DURATION` until one call at a time is tried again, %s to %s, twice as long after each trial that fails (default 30s)", brief(throttle.MinRest), brief(throttle.MaxRest)))
	set.DurationVar(&f.disable, "circuit-disable", 0, fmt.Sprintf("`DURATION` without one call that succeeds after which the key is paused, up to %s; 0 for never", brief(throttle.MaxDisable)))
	set.BoolVar(&f.noCircuit, "no-circuit", false, "have calls go whether they fail or not")
}

func (f *listeningFlags) edits() []flagEdit {
	circuit := func(do func(*throttle.Circuit)) func() (edit, error) {
		return func() (edit, error) { return onCircuit(do), nil }
	}
	return []flagEdit{
		{"events", alone(func(p *throttle.Policy) { p.Events = f.events })},
		{"listen", f.editListen}, {"floor", f.editFloor},
		{"no-floor", unset(f.noFloor, func(p *throttle.Policy) { p.Floor = throttle.Rate{} })},
		{"circuit-failures", circuit(func(c *throttle.Circuit) { c.Failures = f.failures })},
		{"circuit-ratio", f.editRatio},
		{"circuit-rest", circuit(func(c *throttle.Circuit) { c.Rest = f.rest })},
		{"circuit-disable", circuit(func(c *throttle.Circuit) { c.Disable = f.disable })},
		{"no-circuit", unset(f.noCircuit, func(p *throttle.Policy) { p.Circuit = nil })},
	}
}

// editListen takes the floor away together with what it is about.
func (f *listeningFlags) editListen() (edit, error) {
	listen := throttle.Listening(f.listen)
	p := throttle.DefaultPolicy
	p.Listen = listen
	return set(func(p *throttle.Policy) {
		if p.Listen = listen; listen != throttle.Adapt {
			p.Floor = throttle.Rate{}
		}
	}), p.Validate()
}

func (f *listeningFlags) editFloor() (edit, error) {
	n, per, err := throttle.ParseRate(f.floor)
	return set(func(p *throttle.Policy) { p.Floor = throttle.Rate{Cost: n, Per: per} }), err
}

func (f *listeningFlags) editRatio() (edit, error) {
	ratio, ok := config.ParsePercent(f.ratio)
	if !ok {
		return nil, fmt.Errorf("--circuit-ratio %q is not allowed: want a percentage above 0%% and below 100%%, such as 50%%", f.ratio)
	}
	return onCircuit(func(c *throttle.Circuit) { c.Ratio = ratio }), nil
}

// onCircuit is an edit of the circuit, a new one if there is none.
func onCircuit(do func(*throttle.Circuit)) edit {
	return set(func(p *throttle.Policy) {
		c := throttle.Circuit{}
		if p.Circuit != nil {
			c = *p.Circuit
		}
		do(&c)
		p.Circuit = &c
	})
}
