package throttle

import (
	"fmt"
	"reflect"
	"sort"
	"time"
)

// An hoursCheck judges departures by the hours of a policy.
type hoursCheck struct {
	hours   Hours
	zone    *time.Location
	minutes []int // see Hours.weekMinutes
	current *Violation
	night   closing // the one that current is in
}

// A closing is a time between two openings.
type closing struct {
	week  int64
	edges int // of openings that have passed in the week
}

// addHours has a rulebook know the hours of its policy. Those that stay are one check.
func (c *check) addHours(book *rulebook) {
	h := book.policy.Hours
	if h == nil {
		return
	}
	if n := len(c.rulebooks); n > 0 && c.now().hours != nil && reflect.DeepEqual(c.now().hours.hours, *h) {
		book.hours = c.now().hours
		return
	}
	zone, err := loadZone(h.Zone)
	if err != nil {
		c.unchecked(fmt.Sprintf("hours: the zone %s is not known here", h.Zone))
		return
	}
	book.hours = &hoursCheck{hours: *h, zone: zone, minutes: h.weekMinutes()}
}

func (h *hoursCheck) depart(c *check, d *Departure, book *rulebook) {
	night, closed := h.at(d.At)
	if !closed {
		return
	}
	if h.current == nil || night != h.night {
		h.current, h.night = c.violation("hours"), night
		h.current.From = d.At
	}
	v := h.current
	v.To, v.Policy = d.At, book.policy
	v.Cost += float64(d.Cost)
	v.note(d)
}

// at tells whether it is closed at an instant, and which closing that is.
func (h *hoursCheck) at(at time.Time) (night closing, closed bool) {
	_, offset := at.In(h.zone).Zone()
	const perMinute = int64(time.Minute / time.Microsecond)
	us := at.UnixMicro() + int64(offset)*time.Second.Microseconds()
	// 1970 began on a Thursday.
	us += 3 * minutesPerDay * perMinute
	week := us / (minutesPerWeek * perMinute)
	minute := int(us / perMinute % minutesPerWeek)
	edges := sort.SearchInts(h.minutes, minute+1)
	if edges == len(h.minutes) { // the closing goes on into the next week
		return closing{week: week + 1}, true
	}
	return closing{week, edges}, edges%2 == 0
}
