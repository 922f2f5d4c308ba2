package throttle

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxOpenings is the most openings of one policy.
const MaxOpenings = 32

const (
	minutesPerDay  = 24 * 60
	minutesPerWeek = 7 * minutesPerDay
)

// Hours are when the jobs of a key may leave. Outside them they wait.
type Hours struct {
	Zone string    // whose clocks count, an IANA name such as Europe/Berlin; empty means UTC
	Open []Opening // 1 to MaxOpenings; they may overlap
}

// An Opening is a time of day at which jobs may leave, on some days of the week. It
// goes by the clocks of its zone: where they are put forward an opening is shorter,
// and where they are put back longer.
type Opening struct {
	Days []time.Weekday // on which it begins; empty means every day

	// From and To are since midnight, in whole minutes. To is not part of the opening.
	// One that ends at or before its beginning goes on into the next day.
	From time.Duration // 0 to below 24h
	To   time.Duration // 0 to 24h, not equal to From
}

// ParseOpening reads a time of day, after the days of the week if it is not for all of
// them: "09:00-18:00", "mon-fri 09:00-18:00", "sat,sun 22:00-02:00". Days are ranges
// and single days, joined by commas; a range may run over the end of the week. A
// time that ends at midnight is written "18:00-24:00" or "18:00-00:00". The error is
// an [*InvalidError].
func ParseOpening(s string) (Opening, error) {
	const allowed = "HH:MM-HH:MM, or days before it as in mon-fri 09:00-18:00 or sat,sun 22:00-02:00"
	days, times, found := strings.Cut(s, " ")
	if !found {
		days, times = "", s
	}
	var o Opening
	ok := true
	if found {
		o.Days, ok = parseDays(days)
	}
	from, to, ranged := strings.Cut(times, "-")
	var fromOK, toOK bool
	o.From, fromOK = parseTimeOfDay(from)
	o.To, toOK = parseTimeOfDay(to)
	if !ok || !ranged || !fromOK || !toOK {
		return Opening{}, invalid("opening", s, allowed)
	}
	if o.From == o.To || o.From == day {
		return Opening{}, invalid("opening", s, "a beginning from 00:00 to 23:59 and another time as the end; a whole day is 00:00-24:00")
	}
	return o.normal(), nil
}

// parseDays reads "mon-fri,sun". No day is said twice.
func parseDays(s string) (days []time.Weekday, ok bool) {
	for part := range strings.SplitSeq(s, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, ok := parseDay(first)
		if !ok {
			return nil, false
		}
		to, ok := parseDay(last)
		if !ok {
			return nil, false
		}
		for d := from; ; d = (d + 1) % 7 {
			days = append(days, d)
			if d == to {
				break
			}
		}
	}
	return days, true
}

func parseDay(s string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(s, dayName(d)) {
			return d, true
		}
	}
	return 0, false
}

// dayName is mon, tue and so on.
func dayName(d time.Weekday) string { return strings.ToLower(d.String()[:3]) }

// sinceMonday counts the days of a week that begins on Monday.
func sinceMonday(d time.Weekday) int { return (int(d) + 6) % 7 }

// parseTimeOfDay reads 00:00 to 24:00.
func parseTimeOfDay(s string) (time.Duration, bool) {
	if len(s) != len("00:00") || s[2] != ':' {
		return 0, false
	}
	for _, i := range []int{0, 1, 3, 4} {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	hour, minute := time.Duration(s[0]-'0')*10+time.Duration(s[1]-'0'), time.Duration(s[3]-'0')*10+time.Duration(s[4]-'0')
	t := hour*time.Hour + minute*time.Minute
	return t, minute < 60 && t <= day
}

// String gives the form that [ParseOpening] reads, days in the order of the week from
// Monday, three and more in a row as a range.
func (o Opening) String() string {
	o = o.normal()
	times := timeOfDay(o.From) + "-" + timeOfDay(o.To)
	if len(o.Days) == 0 {
		return times
	}
	var parts []string
	for i := 0; i < len(o.Days); {
		n := 1
		for i+n < len(o.Days) && sinceMonday(o.Days[i+n]) == sinceMonday(o.Days[i])+n {
			n++
		}
		if n > 2 {
			parts = append(parts, dayName(o.Days[i])+"-"+dayName(o.Days[i+n-1]))
		} else {
			n = 1
			parts = append(parts, dayName(o.Days[i]))
		}
		i += n
	}
	return strings.Join(parts, ",") + " " + times
}

func timeOfDay(t time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(t.Hours()), int(t.Minutes())%60)
}

// normal has each day once, in the order of the week, and none for all of them.
func (o Opening) normal() Opening {
	days := slices.Clone(o.Days)
	slices.SortFunc(days, func(a, b time.Weekday) int { return sinceMonday(a) - sinceMonday(b) })
	days = slices.Compact(days)
	if len(days) == 0 || len(days) == 7 {
		days = nil
	}
	o.Days = days
	return o
}

// Validate tells the first field that is out of bounds, as an [*InvalidError].
func (o Opening) Validate() error {
	for _, d := range o.Days {
		if d < time.Sunday || d > time.Saturday {
			return invalid("days", int(d), "days of the week, 0 (Sunday) to 6")
		}
	}
	if o.From < 0 || o.From >= day || o.From%time.Minute != 0 {
		return invalid("from", o.From, "whole minutes from 0 to below 24h since midnight")
	}
	if o.To < 0 || o.To > day || o.To%time.Minute != 0 {
		return invalid("to", o.To, "whole minutes from 0 to 24h since midnight")
	}
	if o.From == o.To {
		return invalid("to", o.To, "another time than the beginning; a whole day is 0 to 24h")
	}
	return nil
}

func (h Hours) withDefaults() Hours {
	h.Zone = normalZone(h.Zone)
	h.Open = slices.Clone(h.Open)
	for i, o := range h.Open {
		h.Open[i] = o.normal()
	}
	return h
}

// Validate tells the first field that is out of bounds, as an [*InvalidError].
func (h Hours) Validate() error {
	if err := h.validateValues(); err != nil {
		return err
	}
	return validateZone(h.Zone)
}

// validateValues is Validate without a look at the zones that this machine knows.
func (h Hours) validateValues() error {
	if n := len(h.Open); n < 1 || n > MaxOpenings {
		return invalid("open", n, "1 to %d openings", MaxOpenings)
	}
	for i, o := range h.Open {
		if err := o.Validate(); err != nil {
			return within(fmt.Sprintf("open[%d]", i), err)
		}
	}
	return nil
}

// weekMinutes has the openings as minutes of the week since Monday 00:00: beginning
// and end in turn, the end not included, sorted, those that meet as one, those that
// run over the end of the week as two.
func (h Hours) weekMinutes() []int {
	type span struct{ from, to int }
	var spans []span
	for _, o := range h.Open {
		from, to := int(o.From.Minutes()), int(o.To.Minutes())
		if to <= from {
			to += minutesPerDay
		}
		for d := range 7 {
			if len(o.Days) > 0 && !slices.ContainsFunc(o.Days, func(w time.Weekday) bool { return sinceMonday(w) == d }) {
				continue
			}
			s := span{d*minutesPerDay + from, d*minutesPerDay + to}
			if s.to > minutesPerWeek {
				spans = append(spans, span{0, s.to - minutesPerWeek})
				s.to = minutesPerWeek
			}
			spans = append(spans, s)
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var minutes []int
	for _, s := range spans {
		if n := len(minutes); n > 0 && s.from <= minutes[n-1] {
			minutes[n-1] = max(minutes[n-1], s.to)
		} else {
			minutes = append(minutes, s.from, s.to)
		}
	}
	return minutes
}
