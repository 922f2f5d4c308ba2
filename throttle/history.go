package throttle

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A History is what is kept of a key's past, for as many departures as the policy's
// History says. What was earlier is not known. Instants are those of the clock that
// decided, to the microsecond.
type History struct {
	Key         string
	Departures  []Departure    // in the order of their slots
	Policies    []PolicyChange // in the order of time
	Settlements []Settlement   // in the order of time
	Damaged     int            // entries that could not be read: they were skipped
}

// A Departure is a slot that was used. Slots that a job gave up for a later one are
// not among the departures of a History.
type Departure struct {
	At      time.Time // the slot
	Key     string    // the job's key: that of a child, in the history of a parent
	ID      string
	Attempt int   // from 1
	Cost    int64 // what was charged, or what the run truly cost where that was less; 0 if it turned out to cost nothing
	Run     int64 // which of the job's departures, from 1
	Forced  bool  // an operator let it go past the limit

	place place
}

// A PolicyChange is the policy that governs what departs from an instant on.
type PolicyChange struct {
	At     time.Time // zero: from before the first departure on
	Policy Policy
	// Unknown is whether the policy could not be read. What departs under it cannot be
	// judged.
	Unknown bool

	place place
}

// A Settlement is what a run truly cost more than it was charged. It is in the bucket
// from when it was known; nothing departs for it.
type Settlement struct {
	At      time.Time
	Key, ID string // of the job
	Run     int64  // which of its departures
	Off     int64  // cost units, above 0

	place place
}

// A place is where something stands in a History: in time, and in the log. Slots are given
// out ahead, and what is logged later does not reach those that were given out.
type place struct {
	at  int64 // the instant, µs since 1970
	seq int   // place in the log, from 1; 0 for what was not read from one
}

// or is the place of what was put into a History by hand: it goes by its instant alone.
func (p place) or(at time.Time) place {
	if p.seq == 0 {
		p.at = at.UnixMicro()
	}
	return p
}

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.at, other.at), cmp.Compare(p.seq, other.seq))
}

// A runName tells which departure an entry speaks of.
type runName struct {
	key, id string
	run     int64
}

// A historyParser reads a history entry by entry.
type historyParser struct {
	out   History
	named map[runName]int // runs that later entries speak of, and where they are in out.Departures
	gone  map[int]bool    // departures that gave up their slot
	seq   int
	now   int64  // the last instant so far that was no slot ahead
	text  string // of the last policy
}

// parseHistory makes the history of a key from its entries, the oldest first. Damaged
// entries are skipped and counted; it is an error if all of them are.
func parseHistory(key string, entries []string) (History, error) {
	p := historyParser{out: History{Key: key}, gone: make(map[int]bool)}
	p.prepare(entries)
	for _, text := range entries {
		p.seq++
		e, err := parseHistoryEntry(text)
		if err == nil {
			err = p.read(e)
		}
		if err == nil {
			continue
		}
		p.out.Damaged++
		if e.letter == entryFrom {
			p.text = ""
			p.out.Policies = append(p.out.Policies, PolicyChange{
				At: time.UnixMicro(p.now).UTC(), Unknown: true, place: place{p.now, p.seq},
			})
		}
	}
	if n := len(entries); n > 0 && p.out.Damaged == n {
		err := fmt.Errorf("history of key %q: none of %d entries can be read: %w", key, n, errHistoryEntry)
		return History{Key: key, Damaged: n}, err
	}
	return p.finish(), nil
}

// prepare makes room for the departures, which may be a million, and finds out which of
// their runs other entries speak of: few, as a rule.
func (p *historyParser) prepare(entries []string) {
	departures := 0
	p.named = make(map[runName]int)
	for _, text := range entries {
		e, err := parseHistoryEntry(text)
		switch {
		case err != nil:
		case e.letter == entryDepart:
			departures++
			if e.missed > 0 {
				p.named[runName{e.key, e.id, e.missed}] = -1
			}
		case e.letter == entrySettled:
			p.named[runName{e.key, e.id, e.run}] = -1
		}
	}
	if departures > 0 {
		p.out.Departures = make([]Departure, 0, departures)
	}
}

func (p *historyParser) read(e historyEntry) error {
	at, where := time.UnixMicro(e.instant).UTC(), place{e.instant, p.seq}
	if e.letter != entryDepart {
		p.now = max(p.now, where.at)
	}
	switch e.letter {
	case entryFrom, entryUntil:
		return p.govern(e, at, where)
	case entryDepart:
		p.depart(e, at, where)
	case entrySettled:
		p.settle(e, at, where)
	}
	return nil
}

// govern reads a policy. It is told again and again.
func (p *historyParser) govern(e historyEntry, at time.Time, where place) error {
	if e.policy == p.text {
		return nil
	}
	policy, err := policyFromText(p.out.Key, e.policy)
	if err != nil {
		return err
	}
	if e.letter == entryUntil {
		p.until(policy)
		return nil
	}
	p.text = e.policy
	p.out.Policies = append(p.out.Policies, PolicyChange{At: at, Policy: policy, place: where})
	return nil
}

// until learns afterwards what governed the departures so far, where that is not known:
// the entry that told it was dropped as the oldest one, or is damaged.
func (p *historyParser) until(policy Policy) {
	switch n := len(p.out.Policies); {
	case n == 0:
		p.out.Policies = append(p.out.Policies, PolicyChange{Policy: policy})
	case p.out.Policies[n-1].Unknown:
		p.out.Policies[n-1].Policy, p.out.Policies[n-1].Unknown = policy, false
	}
}

func (p *historyParser) depart(e historyEntry, at time.Time, where place) {
	if i, ok := p.find(e.key, e.id, e.missed); ok && e.missed > 0 {
		p.gone[i] = true
	}
	if name := (runName{e.key, e.id, e.run}); len(p.named) > 0 {
		if _, ok := p.named[name]; ok {
			p.named[name] = len(p.out.Departures)
		}
	}
	p.out.Departures = append(p.out.Departures, Departure{
		At: at, Key: e.key, ID: e.id, Attempt: e.attempt, Cost: e.cost, Run: e.run, Forced: e.forced, place: where,
	})
}

func (p *historyParser) find(key, id string, run int64) (i int, ok bool) {
	i, ok = p.named[runName{key, id, run}]
	return i, ok && i >= 0
}

// settle corrects what a departure cost. What is less is so from its slot on, for that
// is what truly left.
func (p *historyParser) settle(e historyEntry, at time.Time, where place) {
	if e.off > 0 {
		p.out.Settlements = append(p.out.Settlements, Settlement{
			At: at, Key: e.key, ID: e.id, Run: e.run, Off: e.off, place: where,
		})
		return
	}
	if i, ok := p.find(e.key, e.id, e.run); ok {
		d := &p.out.Departures[i]
		d.Cost = max(0, d.Cost+e.off)
	}
}

func (p *historyParser) finish() History {
	kept := p.out.Departures
	if len(p.gone) > 0 {
		kept = kept[:0]
		for i, d := range p.out.Departures {
			if !p.gone[i] {
				kept = append(kept, d)
			}
		}
		p.out.Departures = kept
	}
	slices.SortFunc(kept, func(a, b Departure) int { return a.place.compare(b.place) })
	slices.SortFunc(p.out.Settlements, func(a, b Settlement) int { return a.place.compare(b.place) })
	slices.SortFunc(p.out.Policies, func(a, b PolicyChange) int {
		return a.place.or(a.At).compare(b.place.or(b.At))
	})
	return p.out
}
