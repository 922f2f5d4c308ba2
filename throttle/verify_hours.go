package throttle

import (
	"fmt"
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

func (c *check) changeHours() {
	h := c.policy.Hours
	if h == nil {
		c.hours = nil
		return
	}
	if c.hours != nil && fmt.Sprint(c.hours.hours) == fmt.Sprint(*h) {
		return
	}
	zone, err := loadZone(h.Zone)
	if err != nil {
		c.hours = nil
		c.unchecked(fmt.Sprintf("hours: the zone %s is not known here", h.Zone))
		return
	}
	c.hours = &hoursCheck{hours: *h, zone: zone, minutes: h.weekMinutes()}
}

func (h *hoursCheck) depart(c *check, d *Departure) {
	night, closed := h.at(d.At)
	if !closed {
		return
	}
	if h.current == nil || night != h.night {
		h.current, h.night = c.violation("hours"), night
		h.current.From = d.At
	}
	v := h.current
	v.To, v.Policy = d.At, c.policy
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
