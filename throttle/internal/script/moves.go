package script

// The four moves: enqueue, release, depart and finish. Instants are µs.

// An Entry is a job to enqueue.
type Entry struct {
	Key, ID   string
	Cost      int64
	NotBefore int64 // of the server's clock; 0 means now
	Pool      string
	Policy    string // as stored, or empty
	Job       []byte // encoded
}

// A Place is where an enqueued job stands.
type Place struct {
	Known    bool // the job was there already
	State    string
	Position int64 // the shard where it belongs, of one that was Moved
	Wait     int64
}

// States of a job that was not taken.
const (
	Moved    = "moved"    // its key belongs to another shard
	Draining = "draining" // its key takes no new jobs
)

// Enqueue puts entries of one shard into their buckets. A client that repeats the
// call repeats its token.
func (s *Set) Enqueue(shard int, entries []Entry) *Call {
	args := append(make([]any, 0, 1+7*len(entries)), newToken())
	for _, e := range entries {
		args = append(args, e.Key, e.ID, e.Cost, e.NotBefore, e.Pool, e.Policy, e.Job)
	}
	return &Call{Shard: shard, script: s.enqueue, args: args}
}

// Places reads the reply of Enqueue: the server's time, and one Place an entry.
func (c *Call) Places() (now int64, places []Place) {
	now = c.reply.int()
	for c.reply.more() {
		places = append(places, Place{
			Known: c.reply.int() == 1, State: c.reply.string(),
			Position: c.reply.int(), Wait: c.reply.int(),
		})
	}
	return now, places
}

// Releasing says how Release goes about it.
type Releasing struct {
	Lead, Lease      int64
	Most             int
	Round, Scheduler string
	Token            string
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
		r.Lead, r.Lease, r.Most, r.Round, r.Scheduler, r.Token,
	}}
}

// Released reads the reply of Release: µs until the next bucket is due and until
// the next lease ends, -1 for none, how many keys belong to another shard, and the
// jobs.
func (c *Call) Released() (due, lease, moving int64, jobs []Released) {
	due, lease, moving = c.reply.int(), c.reply.int(), c.reply.int()
	for c.reply.more() {
		jobs = append(jobs, Released{
			Key: c.reply.string(), ID: c.reply.string(),
			Release: c.reply.int(), Pool: c.reply.string(),
		})
	}
	return due, lease, moving, jobs
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
			Job:    c.reply.string(),
		})
	}
	return now, slots
}

// What becomes of a job when its run ends.
const (
	Done   = "done"   // forgotten
	Retry  = "retry"  // joins the line again after a delay
	Dead   = "dead"   // kept as a dead letter
	Return = "return" // back to its place in the line, no attempt counted
)

// An End ends the run of a job.
type End struct {
	Hold
	What   string
	Delay  int64
	Reason string
	// Cost is what the run truly cost, if Settled; else it cost what it was charged.
	Cost    int64
	Settled bool
}

// Finish ends runs.
func (s *Set) Finish(shard int, lead int64, ends []End) *Call {
	args := append(make([]any, 0, 1+8*len(ends)), lead)
	for _, e := range ends {
		cost := int64(-1)
		if e.Settled {
			cost = e.Cost
		}
		args = append(args, e.Key, e.ID, e.Release, e.Run, e.What, e.Delay, e.Reason, cost)
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
