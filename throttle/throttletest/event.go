package throttletest

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirq/weir/throttle"
)

// An Event is one departure or one arrival. The instants of a run must all come
// from one clock.
type Event struct {
	Key string
	// ID is checked against the expected ids and for duplicates. Attempts of one
	// job are calls of their own: give them ids of their own ("j1#2") where
	// retries are part of the run. An empty ID is never a duplicate, and unknown
	// where ids are expected.
	ID   string
	At   time.Time
	Cost int64 // cost units; 0 means 1
}

// byKey checks the events and sorts them into their keys, in the order seen,
// with every cost set.
func byKey(limits map[string]throttle.Limit, events []Event) (map[string][]Event, error) {
	seen := make(map[string][]Event, len(limits))
	for i, e := range events {
		if _, ok := limits[e.Key]; !ok {
			return nil, &throttle.InvalidError{
				Field: fmt.Sprintf("events[%d].key", i), Value: e.Key, Allowed: "a key that has a limit",
			}
		}
		if e.Cost < 0 {
			return nil, &throttle.InvalidError{
				Field: fmt.Sprintf("events[%d].cost", i), Value: e.Cost, Allowed: "a positive cost, or 0 for 1",
			}
		}
		if e.At.IsZero() {
			return nil, &throttle.InvalidError{
				Field: fmt.Sprintf("events[%d].at", i), Value: e.At, Allowed: "the instant it was seen at",
			}
		}
		e.Cost = max(1, e.Cost)
		seen[e.Key] = append(seen[e.Key], e)
	}
	return seen, nil
}

// inTime sorts a copy by instant. Events of one instant keep the order seen.
func inTime(events []Event) []Event {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, func(a, b Event) int { return a.At.Compare(b.At) })
	return sorted
}
