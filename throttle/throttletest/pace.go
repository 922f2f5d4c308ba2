package throttletest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirq/weir/throttle"
)

// A Report tells how one key kept its limit. Rates, costs and excess are in cost
// units.
//
// The paced part of a run is what comes after the burst: all cost that, from an
// idle bucket, has to wait for its slot. A burst at the start thus counts as
// neither fast nor slow.
type Report struct {
	Key   string `json:"key"`
	Limit string `json:"limit"` // in its text form

	Count int           `json:"count"`
	Cost  int64         `json:"cost"`
	From  time.Time     `json:"from"`    // the first event; zero without any
	Span  time.Duration `json:"span_ns"` // from the first event to the last

	Configured float64 `json:"configured_per_second"`
	Achieved   float64 `json:"achieved_per_second"` // Configured × Ratio
	// Ratio is achieved/configured over the paced part: the time that the limit's
	// own schedule takes from an idle bucket, divided by the real Span. It
	// supposes a backlog from the first event to the last: an idle spell looks
	// slow, so measure the parts around it on their own. It is 1 for a run that
	// lies within the burst, and 0 where nothing was seen. A Span of 0 counts as
	// a nanosecond, so that it stays finite.
	Ratio float64 `json:"ratio"`

	// Excess is the largest, over all closed windows of any length t, of cost
	// seen - (burst + rate×t): above 0 the limit was broken, below 0 it was never
	// used up. Events of one instant count together. The job that closes a window
	// counts as at most the burst, since a dearer one may leave from an empty
	// bucket.
	Excess       float64 `json:"excess"`
	ExcessWindow Window  `json:"excess_window"` // where; Cost there is all that was seen

	// The gap error is the difference between a real gap between successive
	// events and the one in the limit's own schedule, over the paced part.
	Gaps   int           `json:"gaps"` // how many were compared
	GapP50 time.Duration `json:"gap_p50_ns"`
	GapP99 time.Duration `json:"gap_p99_ns"`
	GapMax time.Duration `json:"gap_max_ns"`

	IDsChecked bool     `json:"ids_checked"`          // false if no expected ids were given: Lost, Unknown and OutOfOrder are then empty
	Lost       []string `json:"lost,omitempty"`       // expected, not seen; in the order expected
	Duplicated []string `json:"duplicated,omitempty"` // seen more than once; each once, in the order noticed
	Unknown    []string `json:"unknown,omitempty"`    // seen, not expected; each once, in the order seen
	OutOfOrder int      `json:"out_of_order"`         // jobs first seen after one that stands behind them in line
}

// Measure reports on every key of limits, sorted by key. Events are departures
// or arrivals in the order they were seen; they need not be in the order of
// time. expected holds the ids of each key in the order of their enqueueing; nil
// leaves losses, unknown ids and order unchecked, whereas in a map that is not
// nil a key without an entry expects nothing.
//
// The error is a [*throttle.InvalidError] that names the first input out of
// bounds: an invalid limit, a key without a limit, a negative cost, an event
// without an instant, or an expected id that is empty or there twice.
func Measure(limits map[string]throttle.Limit, events []Event, expected map[string][]string) (Reports, error) {
	for key := range expected {
		if _, ok := limits[key]; !ok {
			return nil, &throttle.InvalidError{Field: "expected", Value: key, Allowed: "keys that have a limit"}
		}
	}
	seen, err := byKey(limits, events)
	if err != nil {
		return nil, err
	}
	reports := make(Reports, 0, len(limits))
	for _, key := range slices.Sorted(maps.Keys(limits)) {
		if err := limits[key].Validate(); err != nil {
			return nil, fmt.Errorf("limits[%q]: %w", key, err)
		}
		r := measurePace(key, limits[key], inTime(seen[key]))
		var place map[string]int
		if expected != nil {
			if place, err = line(key, expected[key]); err != nil {
				return nil, err
			}
		}
		r.checkIDs(seen[key], expected[key], place)
		reports = append(reports, r)
	}
	return reports, nil
}

// measurePace fills in all that the instants and costs tell.
func measurePace(key string, l throttle.Limit, events []Event) Report {
	r := Report{Key: key, Limit: l.String(), Count: len(events), Configured: perSecond(l)}
	if len(events) == 0 {
		return r
	}
	for _, e := range events {
		r.Cost += e.Cost
	}
	last := events[len(events)-1]
	r.From = events[0].At
	r.Span = last.At.Sub(r.From)
	r.Ratio = 1
	if ideal := leakTime(l, demand(l, r.Cost-last.Cost, last.Cost)); ideal > 0 {
		r.Ratio = ideal / float64(max(1, r.Span))
	}
	r.Achieved = r.Configured * r.Ratio
	r.Excess, r.ExcessWindow = worstWindow(l, events)

	gaps := gapErrors(l, events)
	r.Gaps = len(gaps)
	r.GapP50, r.GapP99, r.GapMax = quantile(gaps, 0.50), quantile(gaps, 0.99), quantile(gaps, 1)
	return r
}
