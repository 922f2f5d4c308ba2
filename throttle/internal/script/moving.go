package script

import "strconv"

// Jobs of a key that got another parent move to the shard of its family.

// A Moving key has jobs where it does not belong.
type Moving struct {
	Key, Level, Own string
	Counts          string // of its quotas
	Home            int
	IDs             []string
	jobs            []any
}

// Emigrate reads up to most jobs of a key that belongs to another shard.
func (s *Set) Emigrate(shard, most int) *Call {
	return &Call{Shard: shard, script: s.emigrate, args: []any{most}}
}

// Moving reads the reply of Emigrate; ok is false if there is no key to move.
func (c *Call) Moving() (m Moving, ok bool) {
	if !c.reply.more() {
		return m, false
	}
	m.Key, m.Home, m.Level, m.Own = c.reply.string(), int(c.reply.int()), c.reply.string(), c.reply.string()
	m.Counts = c.reply.string()
	for c.reply.more() {
		id, record, at, job := c.reply.string(), c.reply.string(), c.reply.string(), c.reply.string()
		if _, err := strconv.ParseInt(at, 10, 64); err != nil {
			continue
		}
		m.IDs = append(m.IDs, id)
		m.jobs = append(m.jobs, id, record, at, job)
	}
	return m, true
}

// Immigrate stores the jobs where they belong; Count tells how many are there.
func (s *Set) Immigrate(m Moving) *Call {
	args := append(make([]any, 0, 4+len(m.jobs)), m.Key, m.Level, m.Own, m.Counts)
	return &Call{Shard: m.Home, script: s.immigrate, args: append(args, m.jobs...)}
}

// Forget removes the jobs from where they were.
func (s *Set) Forget(shard int, m Moving) *Call {
	args := append(make([]any, 0, 1+len(m.IDs)), m.Key)
	for _, id := range m.IDs {
		args = append(args, id)
	}
	return &Call{Shard: shard, script: s.forget, args: args}
}
