package worker

import (
	"sync"
	"time"

	"github.com/weirq/weir/throttle"
)

// parents are those that the keys of this process share, each with a bucket that
// measures what leaves below it: slots are exact, but siblings that are late together
// must not leave together. A nil parents has none.
type parents struct {
	mu    sync.Mutex
	byKey map[string]*parent
}

// A parent is kept as long as a meter uses it.
type parent struct {
	key    string
	meters int

	mu     sync.Mutex
	bucket throttle.Bucket
}

// exchange gives a meter the parent of its next job for the one it has.
func (s *parents) exchange(had *parent, key string, limit throttle.Limit) *parent {
	if s == nil || had == nil && key == "" {
		return had
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if had == nil || had.key != key {
		s.drop(had)
		had = s.take(key)
	}
	if had != nil {
		had.mu.Lock()
		had.bucket.Limit = limit
		had.mu.Unlock()
	}
	return had
}

func (s *parents) take(key string) *parent {
	if key == "" {
		return nil
	}
	if s.byKey == nil {
		s.byKey = make(map[string]*parent)
	}
	p := s.byKey[key]
	if p == nil {
		p = &parent{key: key}
		s.byKey[key] = p
	}
	p.meters++
	return p
}

func (s *parents) drop(p *parent) {
	if p == nil {
		return
	}
	if p.meters--; p.meters == 0 {
		delete(s.byKey, p.key)
	}
}

func (p *parent) interval() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bucket.Limit.Interval()
}

// parentSlack is how far ahead of a parent's pace its children may leave, in cost units.
// Their timers err on their own: with less, slots are missed for nothing, and with more
// the parent's excess comes near one cost unit.
const parentSlack = 0.6

// book measures a departure at the first instant from now on that the parent's limit
// allows, and returns it; booked is false if that is later than latest, and nothing is
// measured. A nil parent lets all leave at once.
//
// Booking keeps the order in which siblings came: those that only waited and asked again
// would overtake each other.
func (p *parent) book(now, latest time.Time, cost float64) (at time.Time, booked bool) {
	if p == nil {
		return now, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at = now.Add(p.bucket.Wait(now, cost-parentSlack))
	if at.After(latest) {
		return at, false
	}
	p.bucket.Take(now, cost)
	return at, true
}

// credit takes cost out of a parent's bucket, if it is in use: less was used than was
// measured.
func (s *parents) credit(key string, cost float64) {
	s.mu.Lock()
	p := s.byKey[key]
	s.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bucket.Level = max(0, p.bucket.Level-cost)
}
