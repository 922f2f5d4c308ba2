package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// bounds are what every key must keep at the receiver: in no window of time more
// than one job above its limit, and under a backlog its rate. They leave room for a
// machine that is busy with other things as well.
var bounds = throttletest.Bounds{MaxExcess: 1, MinRatio: 0.95, MaxRatio: 1.05}

// judgedFrom is the shortest span whose rate is judged. In a shorter one the few
// milliseconds that a call takes, now more, now less, are too large a part.
const judgedFrom = time.Second

// A verdict is what the arrivals of a run came to.
type verdict struct {
	Events   int       `json:"events"`
	Attempts int       `json:"attempts"`
	Seconds  float64   `json:"seconds"` // from the first arrival to the last
	Keys     []figures `json:"keys"`
	Broken   []string  `json:"broken"` // bounds, in words; none if all were kept
}

// figures are those of one key.
type figures struct {
	Key      string `json:"key"`
	Limit    string `json:"limit"`
	Jobs     int    `json:"jobs"`
	Attempts int    `json:"attempts"`

	// While jobs were waiting, retries included.
	BacklogSeconds float64 `json:"backlog_seconds"`
	Configured     float64 `json:"configured_per_second"`
	Achieved       float64 `json:"achieved_per_second"`
	Ratio          float64 `json:"ratio"`
	GapP50         float64 `json:"gap_error_p50_ms"`
	GapP99         float64 `json:"gap_error_p99_ms"`

	// Over the whole run.
	Excess     float64 `json:"excess_jobs"` // the most above burst + rate × time, over all windows of time
	Lost       int     `json:"lost"`        // events that were never accepted
	Duplicated int     `json:"duplicated"`  // calls for events that were accepted before
	Damaged    int     `json:"damaged"`     // calls with another body than was sent
}

// judge holds the arrivals, in the order of their instants, against the limits.
func judge(destinations []destination, arrivals []arrival) (verdict, error) {
	v := verdict{Attempts: len(arrivals), Broken: []string{}}
	if len(arrivals) > 0 {
		v.Seconds = arrivals[len(arrivals)-1].at.Sub(arrivals[0].at).Seconds()
	}
	byKey := make(map[string][]arrival)
	strays := 0
	for _, a := range arrivals {
		if a.attempt == 0 {
			strays++
			continue
		}
		byKey[a.key] = append(byKey[a.key], a)
	}
	if strays > 0 {
		v.Broken = append(v.Broken, fmt.Sprintf("%d calls for events that nobody sent", strays))
	}
	for _, d := range destinations {
		f, err := d.judge(byKey[d.key], &v)
		if err != nil {
			return verdict{}, err
		}
		v.Events += len(d.events)
		v.Keys = append(v.Keys, f)
	}
	return v, nil
}

// judge measures one key and adds the bounds that it broke to v.
func (d *destination) judge(arrivals []arrival, v *verdict) (figures, error) {
	whole, err := measure(d.key, d.limit, arrivals)
	if err != nil {
		return figures{}, err
	}
	paced, err := measure(d.key, d.limit, underBacklog(arrivals))
	if err != nil {
		return figures{}, err
	}
	f := figures{
		Key: d.key, Limit: d.limit.String(), Jobs: len(d.events), Attempts: len(arrivals),
		BacklogSeconds: paced.Span.Seconds(), Configured: paced.Configured, Achieved: paced.Achieved, Ratio: paced.Ratio,
		GapP50: milliseconds(paced.GapP50), GapP99: milliseconds(paced.GapP99),
		Excess: whole.Excess, Lost: len(d.events),
	}
	for _, a := range arrivals {
		switch {
		case a.again:
			f.Duplicated++
		case a.accepted:
			f.Lost--
		}
		if !a.intact {
			f.Damaged++
		}
	}
	v.add(whole.Check(throttletest.Bounds{MaxExcess: bounds.MaxExcess}))
	if paced.Span >= judgedFrom {
		v.add(paced.Check(throttletest.Bounds{MaxExcess: math.Inf(1), MinRatio: bounds.MinRatio, MaxRatio: bounds.MaxRatio}))
	}
	for _, count := range []struct {
		n    int
		what string
	}{{f.Lost, "lost"}, {f.Duplicated, "duplicated"}, {f.Damaged, "damaged"}} {
		if count.n > 0 {
			v.add(fmt.Errorf("key %q: %d %s, allowed 0", d.key, count.n, count.what))
		}
	}
	return f, nil
}

func (v *verdict) add(err error) {
	if err != nil {
		v.Broken = append(v.Broken, err.Error())
	}
}

// failure is the error of a run that broke a bound.
func (v *verdict) failure() error {
	if len(v.Broken) == 0 {
		return nil
	}
	return &failure{exitBroken, errors.New("bounds are broken:\n  " + strings.Join(v.Broken, "\n  "))}
}

// underBacklog are the arrivals of a key from the first one to the last first
// attempt. Up to then at least that job was waiting, so the key had to go at its
// full rate, whatever part of it went to retries. After it only retries are left,
// which come when their delays are over and owe the rate nothing.
func underBacklog(arrivals []arrival) []arrival {
	for i := len(arrivals) - 1; i >= 0; i-- {
		if arrivals[i].attempt == 1 {
			return arrivals[:i+1]
		}
	}
	return nil
}

// measure leaves the ids out: attempts of one event are calls of their own.
func measure(key string, limit throttle.Limit, arrivals []arrival) (throttletest.Report, error) {
	events := make([]throttletest.Event, len(arrivals))
	for i, a := range arrivals {
		events[i] = throttletest.Event{Key: key, At: a.at}
	}
	reports, err := throttletest.Measure(map[string]throttle.Limit{key: limit}, events, nil)
	if err != nil {
		return throttletest.Report{}, err
	}
	return reports[0], nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
