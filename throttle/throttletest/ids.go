package throttletest

import (
	"fmt"

	"github.com/weirq/weir/throttle"
)

// line maps the expected ids of a key to their places in line.
func line(key string, expected []string) (map[string]int, error) {
	place := make(map[string]int, len(expected))
	for i, id := range expected {
		if _, ok := place[id]; ok || id == "" {
			return nil, &throttle.InvalidError{
				Field: fmt.Sprintf("expected[%q][%d]", key, i), Value: id, Allowed: "an id that is not empty, once per key",
			}
		}
		place[id] = i
	}
	return place, nil
}

// checkIDs fills in what the ids of the events tell. Without expected ids
// (place is nil) only duplicates can be known.
func (r *Report) checkIDs(events []Event, expected []string, place map[string]int) {
	r.IDsChecked = place != nil
	times := make(map[string]int, len(events))
	furthest := -1
	for _, e := range events {
		times[e.ID]++
		if e.ID != "" && times[e.ID] == 2 {
			r.Duplicated = append(r.Duplicated, e.ID)
		}
		if !r.IDsChecked || times[e.ID] > 1 {
			continue
		}
		at, ok := place[e.ID]
		switch {
		case !ok:
			r.Unknown = append(r.Unknown, e.ID)
		case at < furthest:
			r.OutOfOrder++
		default:
			furthest = at
		}
	}
	for _, id := range expected {
		if times[id] == 0 {
			r.Lost = append(r.Lost, id)
		}
	}
}
