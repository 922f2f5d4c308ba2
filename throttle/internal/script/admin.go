package script

// What people ask and do. Instants are µs.

// Found is what Find replies.
type Found struct {
	Home              int // shard where the key belongs
	OK                bool
	Now, ShardNow     int64
	State             string
	Position, Jobs    int64   // place in the line; jobs that leave before it
	Ahead             float64 // cost that leaves before it
	At                int64   // shard time of its slot or of the end of its delay; 0: none
	Attempts          int64
	Cost, Priority    int64
	Pool              string
	Enqueued, Expires int64 // shard time; 0: not known, none
	Last              bool  // there will be no other attempt
	Reason            string
	Job, Log, Outlook string
	Ended             int64 // shard time; 0: it has not
}

// Find looks up one job.
func (s *Set) Find(shard int, key, id string) *Call {
	return &Call{Shard: shard, script: s.find, args: []any{key, id}}
}

// Found reads the reply of Find.
func (c *Call) Found() Found {
	f := Found{Home: int(c.reply.int())}
	if f.OK = c.reply.more(); !f.OK {
		return f
	}
	f.Now, f.ShardNow, f.State = c.reply.int(), c.reply.int(), c.reply.string()
	f.Position, f.Jobs, f.Ahead = c.reply.int(), c.reply.int(), float64(c.reply.int())/1e6
	f.At, f.Attempts, f.Cost, f.Priority = c.reply.int(), c.reply.int(), c.reply.int(), c.reply.int()
	f.Pool = c.reply.string()
	f.Enqueued, f.Expires, f.Last = c.reply.int(), c.reply.int(), c.reply.int() == 1
	f.Reason, f.Job, f.Log, f.Outlook = c.reply.string(), c.reply.string(), c.reply.string(), c.reply.string()
	f.Ended = c.reply.int()
	return f
}

// Letters for the states of jobs that can be listed.
const (
	ListWaiting  = "w"
	ListDelayed  = "d"
	ListInFlight = "f"
)

// List lists jobs of a key in one state, from the one behind a score and an id on.
func (s *Set) List(shard int, key, state, score, id string, most int) *Call {
	return &Call{Shard: shard, script: s.list, args: []any{key, state, score, id, most}}
}

// A Listed job. At is its place, the end of its delay or its release.
type Listed struct {
	ID, State                string
	At, Slot                 int64 // shard time
	Attempts, Cost, Priority int64
	Enqueued                 int64 // shard time
}

// Listed reads the reply of List: the shard where the key belongs, server time less
// shard's time, the place of the first, and the jobs.
func (c *Call) Listed() (home int, toServer, first int64, jobs []Listed) {
	home, toServer, first = int(c.reply.int()), c.reply.int(), c.reply.int()
	for c.reply.more() {
		jobs = append(jobs, Listed{
			ID: c.reply.string(), State: c.reply.string(), At: c.reply.int(), Slot: c.reply.int(),
			Attempts: c.reply.int(), Cost: c.reply.int(), Priority: c.reply.int(), Enqueued: c.reply.int(),
		})
	}
	return home, toServer, first, jobs
}

// Counts of a bucket.
type Counts struct {
	Home                              int // shard where the key belongs
	Now, ShardNow                     int64
	Waiting, Delayed, InFlight, Ended int64
	MicroLevel, MicroBacklog          int64
	Oldest                            int64 // shard time at which the next job was enqueued; 0: none
	Policy                            string
	Outlook                           string
}

// Stat counts the jobs of a bucket.
func (s *Set) Stat(shard int, key string) *Call {
	return &Call{Shard: shard, script: s.stat, args: []any{key}}
}

// Counts reads the reply of Stat.
func (c *Call) Counts() Counts {
	return Counts{
		Home: int(c.reply.int()), Now: c.reply.int(), ShardNow: c.reply.int(),
		Waiting: c.reply.int(), Delayed: c.reply.int(), InFlight: c.reply.int(), Ended: c.reply.int(),
		MicroLevel: c.reply.int(), MicroBacklog: c.reply.int(), Oldest: c.reply.int(),
		Policy: c.reply.string(), Outlook: c.reply.string(),
	}
}

// Counters that a shard keeps.
var Counters = []string{
	"waiting", "delayed", "enqueued", "departed", Done, Retry, Dead, "expired", "cancelled", "purged",
	"displaced", "dropped", "refused", "replaced", "replayed", "discarded", "evicted",
}

// Count counts what a shard holds.
func (s *Set) Count(shard int) *Call {
	c := &Call{Shard: shard, script: s.count}
	for _, name := range Counters {
		c.args = append(c.args, name)
	}
	return c
}

// Totals of a shard.
type Totals struct {
	Keys, InFlight, Dead, Done int64
	Most                       int64            // jobs that may wait in all shards; 0: no bound
	Counters                   map[string]int64 // by the names in Counters
}

// Totals reads the reply of Count.
func (c *Call) Totals() Totals {
	t := Totals{
		Keys: c.reply.int(), InFlight: c.reply.int(), Dead: c.reply.int(), Done: c.reply.int(), Most: c.reply.int(),
		Counters: make(map[string]int64),
	}
	for _, name := range Counters {
		t.Counters[name] = c.reply.int()
	}
	return t
}

// Purging says which jobs of a key to remove.
type Purging struct {
	Key, State   string // ListWaiting or ListDelayed
	From, Most   int64  // how many to pass over, and to look at
	Type, Prefix string // empty for any
	Before       int64  // enqueued earlier, server time; 0 for any
}

// Purge removes jobs.
func (s *Set) Purge(shard int, p Purging) *Call {
	return &Call{Shard: shard, script: s.purge, args: []any{p.Key, p.State, p.From, p.Most, p.Type, p.Prefix, p.Before}}
}

// Purged reads the reply of Purge: how many were looked at, and removed.
func (c *Call) Purged() (looked, removed int64) { return c.reply.int(), c.reply.int() }

// Bound bounds what may wait in all shards together; 0 for no bound.
func (s *Set) Bound(shard int, most int64, who string) *Call {
	return &Call{Shard: shard, script: s.bound, args: []any{most, who}}
}

// A Ref names a job.
type Ref struct{ Key, ID string }

// What Act does.
const (
	Cancel      = "cancel"
	ToFront     = "front"
	SetPriority = "priority"
	ReleaseNow  = "release"
)

// Acting says what Act does.
type Acting struct {
	Lead      int64
	What, Who string
	Priority  int  // of SetPriority
	Moving    bool // jobs that are on their way to another shard are meant as well
}

// Act does something to jobs of one shard.
func (s *Set) Act(shard int, a Acting, jobs []Ref) *Call {
	moving := 0
	if a.Moving {
		moving = 1
	}
	return &Call{Shard: shard, script: s.act, args: withRefs([]any{a.Lead, a.What, a.Priority, a.Who, moving}, jobs)}
}

func withRefs(args []any, jobs []Ref) []any {
	for _, j := range jobs {
		args = append(args, j.Key, j.ID)
	}
	return args
}

// Acted reads the reply of Act: for each job the shard where its key belongs and the
// state in which it was, empty if it was not there.
func (c *Call) Acted() (homes []int, states []string) {
	for c.reply.more() {
		homes, states = append(homes, int(c.reply.int())), append(states, c.reply.string())
	}
	return homes, states
}

// Ended lists jobs that are dead or done, oldest first, of a key or, if that is empty,
// of the shard, from the one behind a score and a name on.
func (s *Set) Ended(shard int, what, key, score, name string, most int) *Call {
	return &Call{Shard: shard, script: s.ended, args: []any{what, key, score, name, most}}
}

// A Letter is a job that ended.
type Letter struct {
	Name string // its id if it was listed by key, else "id key"
	At   int64  // shard time
	Why  string // "what attempts cost priority pool reason"
}

// Letters reads the reply of Ended: server time less shard's time, whether there may
// be more, and the jobs.
func (c *Call) Letters() (toServer int64, more bool, letters []Letter) {
	toServer, more = c.reply.int(), c.reply.int() == 1
	for c.reply.more() {
		letters = append(letters, Letter{Name: c.reply.string(), At: c.reply.int(), Why: c.reply.string()})
	}
	return toServer, more, letters
}

// What Revive does.
const (
	Replay  = "replay"
	Discard = "discard"
)

// What becomes of a job that is to be revived.
const (
	NotRevived = iota // there is none
	Revived
	Alive  // another job has its id
	Closed // its key takes no new jobs
)

// Revive puts jobs that ended back into their buckets, or discards them.
func (s *Set) Revive(shard int, what string, jobs []Ref) *Call {
	return &Call{Shard: shard, script: s.revive, args: withRefs([]any{what}, jobs)}
}

// Ints reads a reply of one number a job.
func (c *Call) Ints() []int {
	var list []int
	for c.reply.more() {
		list = append(list, int(c.reply.int()))
	}
	return list
}

// Evict removes dead letters: so many whatever their age, and those older than age.
func (s *Set) Evict(shard int, surplus, age int64, most int) *Call {
	return &Call{Shard: shard, script: s.evict, args: []any{surplus, age, most}}
}

// Evicted reads the reply of Evict: dead letters left, server time of the oldest one's
// death (0: none), dead letters and done jobs removed.
func (c *Call) Evicted() (left, oldest, dead, done int64) {
	return c.reply.int(), c.reply.int(), c.reply.int(), c.reply.int()
}

// Count reads a reply of one number.
func (c *Call) Count() int64 { return c.reply.int() }
