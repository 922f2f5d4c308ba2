package script

import "fmt"

// The four moves: enqueue, release, depart and finish. Instants are µs.

// An Entry is a job to enqueue.
type Entry struct {
	Key, ID   string
	Cost      int64
	NotBefore int64 // of the server's clock; 0 means now
	Pool      string
	Policy    string // as stored, or empty
	More      *More  // nil if all of it is at its zero value
	Job       []byte // encoded
}

// More is what only some jobs have.
type More struct {
	Priority       int
	TTL, Window    int64
	Deadline       int64 // of the server's clock; 0: none
	WhileWaiting   bool  // its name counts only until its first attempt
	Repeat         string
	Debounce, Most int64
	Name           string // empty for none
}

// What a job does to the one that has its name.
const (
	Keep     = "k"
	Replace  = "r"
	Debounce = "d"
)

func (m *More) text() string {
	if m == nil {
		return ""
	}
	scope, name, repeat := "e", m.Name, m.Repeat
	if m.WhileWaiting {
		scope = "w"
	}
	if name == "" {
		name = "-"
	}
	if repeat == "" {
		repeat = Keep
	}
	return fmt.Sprintf("%d %d %d %d %s %s %d %d %s",
		m.Priority, m.TTL, m.Deadline, m.Window, scope, repeat, m.Debounce, m.Most, name)
}

// A Place is where an enqueued job stands.
type Place struct {
	How      int
	State    string
	Position int64   // the shard where it belongs, of one that was Moved
	Ahead    float64 // cost that leaves before it; the bound, of one that found none
	Wait     int64   // until its slot or the end of its delay; 0: none
	Other    string  // the job that it repeats, replaced or displaced
}

// How a job came to its place.
const (
	Added     = iota
	Known     // it was there already
	Replaced  // it took the place of Other
	Displaced // Other had to go for it
)

// States of a job that was not taken.
const (
	Moved    = "moved"    // its key belongs to another shard
	Draining = "draining" // its key takes no new jobs
	Full     = "full"     // as many wait as may
	Dropped  = "dropped"  // the same, of a key that drops the newest
)

// InAll is Place.Other of a job that the bound on all shards together kept out.
const InAll = "*"

// Enqueue puts entries of one shard into their buckets. others is the number of jobs
// that wait in the other shards, -1 if it is not known. A client that repeats the call
// repeats its token.
func (s *Set) Enqueue(shard int, others int64, entries []Entry) *Call {
	args := append(make([]any, 0, 2+8*len(entries)), newToken(), others)
	for _, e := range entries {
		args = append(args, e.Key, e.ID, e.Cost, e.NotBefore, e.Pool, e.Policy, e.More.text(), e.Job)
	}
	return &Call{Shard: shard, script: s.enqueue, args: args}
}

// Placed is what Enqueue replies.
type Placed struct {
	Now, ShardNow int64
	Places        []Place  // one an entry; none if the number of others is asked for
	Outlooks      []string // one a key, in the order of their first entries
}

// Placed reads the reply of Enqueue for n entries.
func (c *Call) Placed(n int) Placed {
	p := Placed{Now: c.reply.int(), ShardNow: c.reply.int()}
	for ; n > 0 && c.reply.more(); n-- {
		p.Places = append(p.Places, Place{
			How: int(c.reply.int()), State: c.reply.string(),
			Position: c.reply.int(), Ahead: float64(c.reply.int()) / 1e6, Wait: c.reply.int(), Other: c.reply.string(),
		})
	}
	for c.reply.more() {
		p.Outlooks = append(p.Outlooks, c.reply.string())
	}
	return p
}

// Releasing says how Release goes about it.
type Releasing struct {
	Lead, Lease      int64
	Most             int
	Round, Scheduler string
	Token            string
	Payloads         int // most bytes of expired jobs to tell of; 0 for none
}

// A Released job is on its way to a worker.
type Released struct {
	Key, ID string
	Release int64 // which release of the job this is
	Pool    string
}

// Release takes jobs that are near their slots out of the shard's buckets.
func (s *Set) Release(shard int, r Releasing) *Call {
	return &Call{Shard: shard, script: s.release, args: []any{
		r.Lead, r.Lease, r.Most, r.Round, r.Scheduler, r.Token, r.Payloads,
	}}
}

// An Expired job waited too long.
type Expired struct{ Key, ID, Job string }

// A Round is what Release replies.
type Round struct {
	Due, Lease int64 // µs until the next bucket is due and until the next lease ends; -1: none
	Moving     int64 // keys that belong to another shard
	Expired    []Expired
	Jobs       []Released
}

// Released reads the reply of Release.
func (c *Call) Released() Round {
	r := Round{Due: c.reply.int(), Lease: c.reply.int(), Moving: c.reply.int()}
	for n := c.reply.int(); n > 0; n-- {
		r.Expired = append(r.Expired, Expired{Key: c.reply.string(), ID: c.reply.string(), Job: c.reply.string()})
	}
	for c.reply.more() {
		r.Jobs = append(r.Jobs, Released{
			Key: c.reply.string(), ID: c.reply.string(),
			Release: c.reply.int(), Pool: c.reply.string(),
		})
	}
	return r
}

// A Hold names a job in somebody's hands. The numbers fence off whoever held it
// before.
type Hold struct {
	Key, ID      string
	Release, Run int64 // Run 0: released, not departed
}

// What depart answers.
const (
	Gone = iota
	Go
	Parked
)

// A Slot is depart's answer for one job.
type Slot struct {
	Status              int
	At                  int64 // shard time
	Run, Attempt        int64
	Rate, Period, Burst int64
	Parent              Parent
	Forced              bool   // it leaves past the limit
	Deadline            int64  // shard time; 0: none
	Job                 string // encoded; empty unless it departs for the first time
}

// A Parent is the one with the shortest interval above a key; its Key is empty if there
// is none.
type Parent struct {
	Key                 string
	Rate, Period, Burst int64
}

// Depart charges the buckets and gives each job its slot.
func (s *Set) Depart(shard int, lead, lease int64, token string, holds []Hold) *Call {
	args := append(make([]any, 0, 3+4*len(holds)), lead, lease, token)
	for _, h := range holds {
		args = append(args, h.Key, h.ID, h.Release, h.Run)
	}
	return &Call{Shard: shard, script: s.depart, args: args}
}

// Slots reads the reply of Depart: the shard's time, and one Slot a job.
func (c *Call) Slots() (now int64, slots []Slot) {
	now = c.reply.int()
	for c.reply.more() {
		slots = append(slots, Slot{
			Status: int(c.reply.int()), At: c.reply.int(), Run: c.reply.int(), Attempt: c.reply.int(),
			Rate: c.reply.int(), Period: c.reply.int(), Burst: c.reply.int(),
			Parent: Parent{Key: c.reply.string(), Rate: c.reply.int(), Period: c.reply.int(), Burst: c.reply.int()},
			Forced: c.reply.int() == 1, Deadline: c.reply.int(),
			Job: c.reply.string(),
		})
	}
	return now, slots
}

// What becomes of a job when its run ends.
const (
	Done        = "done"         // forgotten
	Retry       = "retry"        // joins the line again after a delay
	Dead        = "dead"         // kept as a dead letter
	Refused     = "refused"      // the other side would not take it now: back to its place, no attempt counted
	RefusedLast = "refused_last" // the same of the last attempt, should it count as one
	Return      = "return"       // back to its place in the line, no attempt counted
)

// An End ends the run of a job.
type End struct {
	Hold
	What   string
	Delay  int64
	Reason string // of a failure
	// Cost is what the run truly cost, if Settled; else it cost what it was charged.
	Cost    int64
	Settled bool
	Fared   string // one of the verdicts, or empty
	Rest    int64  // how long the key should rest, 0: not told
}

// Finish ends runs.
func (s *Set) Finish(shard int, lead int64, ends []End) *Call {
	args := append(make([]any, 0, 1+10*len(ends)), lead)
	for _, e := range ends {
		cost := int64(-1)
		if e.Settled {
			cost = e.Cost
		}
		args = append(args, e.Key, e.ID, e.Release, e.Run, e.What, e.Delay, e.Reason, cost, e.Fared, e.Rest)
	}
	return &Call{Shard: shard, script: s.finish, args: args}
}

// Held reads a reply of one flag a job: whether it was held as named.
func (c *Call) Held() []bool {
	held := make([]bool, 0, len(c.reply.values))
	for c.reply.more() {
		held = append(held, c.reply.int() == 1)
	}
	return held
}
