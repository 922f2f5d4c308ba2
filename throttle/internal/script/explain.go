package script

// An Explanation is what explain replies.
type Explanation struct {
	Home                     int
	Now                      int64
	Waiting, Delayed, Flight int64
	ID, State                string // of the job that it is about
	Position                 int64
	Cause, Holder            string
	Wait                     int64 // -1: not known
	Paused, Draining         bool
	CoolUntil                int64 // 0: none
	Period, Burst            int64 // of the limit of the key, as it is now
	Chain                    []Link
	Candidates               []Candidate
}

// A Link is a key of a family, from the one asked for up.
type Link struct {
	Key        string
	MicroLevel int64
	Policy     string
}

// A Candidate is a policy that could govern a key; the first does.
type Candidate struct{ Source, Name, Policy string }

// Explain asks what governs a key, and what holds a job of it, the next one if id is
// empty.
func (s *Set) Explain(shard int, key, id string) *Call {
	return &Call{Shard: shard, script: s.explain, args: []any{key, id}}
}

// Explanation reads the reply of Explain.
func (c *Call) Explanation() Explanation {
	e := Explanation{
		Home: int(c.reply.int()), Now: c.reply.int(),
		Waiting: c.reply.int(), Delayed: c.reply.int(), Flight: c.reply.int(),
		ID: c.reply.string(), State: c.reply.string(), Position: c.reply.int(),
		Cause: c.reply.string(), Holder: c.reply.string(), Wait: c.reply.int(),
		Paused: c.reply.int() == 1, Draining: c.reply.int() == 1, CoolUntil: c.reply.int(),
		Period: c.reply.int(), Burst: c.reply.int(),
	}
	for n := c.reply.int() + 1; n > 0; n-- {
		e.Chain = append(e.Chain, Link{
			Key: c.reply.string(), MicroLevel: c.reply.int(), Policy: c.reply.string(),
		})
	}
	for c.reply.more() {
		e.Candidates = append(e.Candidates, Candidate{c.reply.string(), c.reply.string(), c.reply.string()})
	}
	return e
}
