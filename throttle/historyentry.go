package throttle

import (
	"errors"
	"strconv"
	"strings"
)

// The letters that the entries of a history begin with: see history.lua.
const (
	entryUntil   = "o" // a policy that was in force until then
	entryFrom    = "p" // a policy that is in force from then on
	entryDepart  = "d" // a departure
	entrySettled = "s" // what a run truly cost
)

// maxInstant is the last instant of an entry, µs since 1970: what a Lua number holds
// exactly. Sums and differences of instants are far from overflowing.
const maxInstant = 1 << 53

// A historyEntry is an entry of a history as it is stored. Only the fields of its
// letter count.
type historyEntry struct {
	letter  string
	instant int64  // the slot of a departure, else when it was written; µs since 1970 by the shard's clock
	policy  string // as stored

	cost    int64  // charged
	off     int64  // to add to what was charged
	run     int64  // number of this departure among those of the job
	missed  int64  // the run whose slot it gave up, 0 for none
	attempt int    // from 1
	forced  bool   // an operator let it go past the limit
	id, key string // of the job
}

var errHistoryEntry = errors.New("the entry is damaged, or written by a newer version")

// parseHistoryEntry reads one entry of a history. Its letter is given even where the
// rest is damaged.
func parseHistoryEntry(text string) (e historyEntry, err error) {
	r := fieldReader{rest: text}
	e.letter = r.word()
	e.instant = r.number(0, maxInstant)
	switch e.letter {
	case entryUntil, entryFrom:
		e.policy = r.all()
	case entryDepart:
		e.cost = r.number(0, MaxCost)
		e.run = r.number(0, maxInstant)
		e.missed = r.number(0, maxInstant)
		e.attempt = int(r.number(0, maxInstant))
		mark := r.word()
		e.forced = mark == "f"
		r.bad = r.bad || mark != "f" && mark != "-"
		e.id, e.key = r.word(), r.all()
	case entrySettled:
		e.off = r.number(-MaxCost, MaxCost)
		e.run = r.number(0, maxInstant)
		e.id, e.key = r.word(), r.all()
	default:
		r.bad = true
	}
	if r.bad {
		return historyEntry{letter: e.letter}, errHistoryEntry
	}
	return e, nil
}

// A fieldReader takes fields that are set apart by single spaces off a text.
type fieldReader struct {
	rest string
	bad  bool // a field was missing or out of bounds
}

// word is the next field, which must not be empty.
func (r *fieldReader) word() string {
	var field string
	field, r.rest, _ = strings.Cut(r.rest, " ")
	r.bad = r.bad || field == ""
	return field
}

func (r *fieldReader) number(low, high int64) int64 {
	n, err := strconv.ParseInt(r.word(), 10, 64)
	if err != nil || n < low || n > high {
		r.bad = true
		return 0
	}
	return n
}

// all is the rest with its spaces.
func (r *fieldReader) all() string {
	r.bad = r.bad || r.rest == ""
	return r.rest
}
