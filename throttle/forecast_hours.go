package throttle

import (
	"math"
	"sync"
	"time"
)

const (
	usPerMinute = int64(time.Minute / time.Microsecond)
	usPerDay    = int64(day / time.Microsecond)
	usPerWeek   = 7 * usPerDay
)

// A zoneClock tells what the clocks of a zone show. It remembers until when they run on
// as they do: instants mostly come in their order.
type zoneClock struct {
	zone        *time.Location // nil for UTC
	from, until int64          // µs since 1970
	offset      int64          // µs to add to UTC between them
}

// zonesInUse has the zones that forecasts needed: to load one takes longer than to
// forecast.
var zonesInUse sync.Map

// newZoneClock takes a zone that is not known here for UTC: policies name none.
func newZoneClock(name string) *zoneClock {
	utc := &zoneClock{from: math.MinInt64, until: math.MaxInt64}
	if name = normalZone(name); name == "" {
		return utc
	}
	if zone, ok := zonesInUse.Load(name); ok {
		return &zoneClock{zone: zone.(*time.Location)} //nolint:forcetypeassert // nothing else is stored
	}
	zone, err := loadZone(name)
	if err != nil {
		return utc
	}
	zonesInUse.Store(name, zone)
	return &zoneClock{zone: zone}
}

// at is the offset from UTC at an instant, and when another one begins.
func (z *zoneClock) at(at int64) (offset, until int64) {
	if at >= z.from && at < z.until {
		return z.offset, z.until
	}
	here := time.UnixMicro(at).In(z.zone)
	_, seconds := here.Zone()
	_, end := here.ZoneBounds()
	z.from, z.until, z.offset = at, math.MaxInt64, int64(seconds)*time.Second.Microseconds()
	if !end.IsZero() {
		z.until = end.UnixMicro()
	}
	// On the last day of a leap year Go may say that the end has passed; see zoneOffsets.
	if z.until <= at {
		z.until = at + time.Hour.Microseconds()
	}
	return z.offset, z.until
}

// day is the number of the zone's day that holds an instant.
func (z *zoneClock) day(at int64) int64 {
	offset, _ := z.at(at)
	return floorDiv(at+offset, usPerDay)
}

// begins is the first instant from at on that is in a day or after it.
func (z *zoneClock) begins(day, at int64) int64 {
	for {
		offset, until := z.at(at)
		if begin := max(at, day*usPerDay-offset); begin < until {
			return begin
		}
		at = until
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// A calendar is a policy's hours in a forecast.
type calendar struct {
	clock *zoneClock
	open  []int64 // µs of the week, from Monday 00:00: beginning and end of the openings in turn
	guard float64
	now   int64

	from, until float64 // the opening that was asked for last
}

func newCalendar(h Hours, guard float64, now int64) calendar {
	c := calendar{clock: newZoneClock(h.Zone), guard: guard, now: now, from: -1, until: -1}
	for _, minute := range h.weekMinutes() {
		c.open = append(c.open, int64(minute)*usPerMinute)
	}
	return c
}

// earliest is the first instant from at on at which a job may leave. It may leave a
// little after its slot, and it has to be open then.
func (c *calendar) earliest(at float64) float64 {
	for at < forever {
		if at < c.from || at+c.guard >= c.until {
			c.find(at)
		}
		at = max(at, c.from)
		if at+c.guard < c.until {
			return at
		}
		at = c.until
	}
	return at
}

func (c *calendar) most(r run) int64 {
	return r.until(c.until-c.guard, false)
}

// find finds the opening that holds an instant, or else the next one.
func (c *calendar) find(at float64) {
	instant := c.now + int64(math.Floor(at))
	opens := instant
	for {
		offset, until := c.clock.at(opens)
		wait := c.closedFor(opens + offset)
		if opens+wait < until {
			opens += wait
			break
		}
		opens = until
	}
	c.from = max(at, float64(opens-c.now))
	closes := opens
	for closes-opens < usPerWeek {
		offset, until := c.clock.at(closes)
		stays := c.openFor(closes + offset)
		if stays == 0 {
			break
		}
		closes = min(until, closes+stays)
	}
	c.until = float64(closes - c.now)
}

// closedFor is how long it is from a local instant to the next opening, 0 in one.
func (c *calendar) closedFor(local int64) int64 {
	if c.openFor(local) > 0 {
		return 0
	}
	in, wait := inWeek(local), usPerWeek
	for i := 0; i < len(c.open); i += 2 {
		wait = min(wait, (c.open[i]-in+usPerWeek)%usPerWeek)
	}
	return wait
}

// openFor is how long an opening goes on from a local instant, 0 outside of one.
func (c *calendar) openFor(local int64) int64 {
	in := inWeek(local)
	for i := 0; i < len(c.open); i += 2 {
		if in >= c.open[i] && in < c.open[i+1] {
			return c.open[i+1] - in
		}
	}
	return 0
}

// inWeek is how long it is since Monday 00:00. 1970 began on a Thursday.
func inWeek(local int64) int64 {
	in := (local + 3*usPerDay) % usPerWeek
	if in < 0 {
		in += usPerWeek
	}
	return in
}

// perOpening is how long an opening is on average.
func (c *calendar) perOpening() float64 {
	sum := int64(0)
	for i := 0; i < len(c.open); i += 2 {
		sum += c.open[i+1] - c.open[i]
	}
	return float64(sum) / float64(len(c.open)/2)
}

// nextOpening is when the first opening begins that begins after an instant.
func (c *calendar) nextOpening(at float64) float64 {
	other := *c
	other.find(at)
	if other.from <= at && other.until-other.from < float64(usPerWeek) {
		other.find(other.until)
	}
	return other.from
}
