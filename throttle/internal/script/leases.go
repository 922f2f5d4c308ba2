package script

// Leases: who dies holding a job loses it. Instants are µs.

// Extend renews the leases of held jobs; read it with Held.
func (s *Set) Extend(shard int, lease int64, holds []Hold) *Call {
	args := append(make([]any, 0, 1+4*len(holds)), lease)
	for _, h := range holds {
		args = append(args, h.Key, h.ID, h.Release, h.Run)
	}
	return &Call{Shard: shard, script: s.extend, args: args}
}

// An Overdue job is in flight with its lease run out.
type Overdue struct {
	Hold
	Departed    bool
	Round, Pool string
}

// Overdue lists overdue jobs.
func (s *Set) Overdue(shard, most int) *Call {
	return &Call{Shard: shard, script: s.overdue, args: []any{most}}
}

// Overdue reads the reply of Set.Overdue: µs until the next lease ends, -1 for none,
// and the jobs.
func (c *Call) Overdue() (next int64, jobs []Overdue) {
	next = c.reply.int()
	for c.reply.more() {
		jobs = append(jobs, Overdue{
			Hold: Hold{
				Key: c.reply.string(), ID: c.reply.string(),
				Release: c.reply.int(), Run: c.reply.int(),
			},
			Departed: c.reply.int() == 1, Round: c.reply.string(), Pool: c.reply.string(),
		})
	}
	return next, jobs
}

// A Verdict is what the reaper decided about an overdue job.
type Verdict struct {
	Hold
	Extend bool // its holder was seen alive; else it goes back into the line
}

// Reap carries out verdicts on jobs that are still overdue; read it with Held.
func (s *Set) Reap(shard int, lead, lease int64, verdicts []Verdict) *Call {
	args := append(make([]any, 0, 2+5*len(verdicts)), lead, lease)
	for _, v := range verdicts {
		what := "return"
		if v.Extend {
			what = "extend"
		}
		args = append(args, v.Key, v.ID, v.Release, v.Run, what)
	}
	return &Call{Shard: shard, script: s.reap, args: args}
}

// Audit repairs a page of a bucket's bookkeeping.
func (s *Set) Audit(shard int, key, cursor string, lease int64) *Call {
	return &Call{Shard: shard, script: s.audit, args: []any{key, cursor, lease}}
}

// Audited reads the reply of Audit.
func (c *Call) Audited() (cursor string, repairs int64) {
	return c.reply.string(), c.reply.int()
}
