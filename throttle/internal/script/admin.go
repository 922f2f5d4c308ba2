package script

import "fmt"

// PolicyText is a policy as the scripts store it.
func PolicyText(rate, periodMicros, burst int64, maxInFlight int) string {
	return fmt.Sprintf("%d %d %d %d", rate, periodMicros, burst, maxInFlight)
}

// Policies replaces the policies of a shard: pairs of key and PolicyText.
func (s *Set) Policies(shard int, pairs []string) *Call {
	args := make([]any, len(pairs))
	for i, p := range pairs {
		args[i] = p
	}
	return &Call{Shard: shard, script: s.policies, args: args}
}

// Find looks up one job.
func (s *Set) Find(shard int, key, id string) *Call {
	return &Call{Shard: shard, script: s.find, args: []any{key, id}}
}

// Found reads the reply of Find.
func (c *Call) Found() (now int64, at Place, attempt int64, ok bool) {
	if !c.reply.more() {
		return 0, Place{}, 0, false
	}
	now = c.reply.int()
	at = Place{Known: true, State: c.reply.string(), Position: c.reply.int(), Wait: c.reply.int()}
	return now, at, c.reply.int(), true
}

// Counts of a bucket.
type Counts struct {
	Waiting, Delayed, InFlight, MicroLevel int64
	Rate, Period, Burst, MaxInFlight       int64
}

// Stat counts the jobs of a bucket.
func (s *Set) Stat(shard int, key string) *Call {
	return &Call{Shard: shard, script: s.stat, args: []any{key}}
}

// Counts reads the reply of Stat.
func (c *Call) Counts() Counts {
	return Counts{
		Waiting: c.reply.int(), Delayed: c.reply.int(), InFlight: c.reply.int(), MicroLevel: c.reply.int(),
		Rate: c.reply.int(), Period: c.reply.int(), Burst: c.reply.int(), MaxInFlight: c.reply.int(),
	}
}

// Dead lists dead letters, oldest first.
func (s *Set) Dead(shard, from, most int) *Call {
	return &Call{Shard: shard, script: s.dead, args: []any{from, most}}
}

// A Letter is a dead job as stored.
type Letter struct {
	Ref string // "id key"
	At  int64  // server time
	Why string // "attempts reason"
	Job string // encoded
}

// Letters reads the reply of Dead.
func (c *Call) Letters() (letters []Letter) {
	toServer := c.reply.int()
	for c.reply.more() {
		letters = append(letters, Letter{
			Ref: c.reply.string(), At: c.reply.int() + toServer,
			Why: c.reply.string(), Job: c.reply.string(),
		})
	}
	return letters
}

// Purge removes waiting and delayed jobs of a key.
func (s *Set) Purge(shard int, key string, most int) *Call {
	return &Call{Shard: shard, script: s.purge, args: []any{key, most}}
}

// Count reads a reply of one number.
func (c *Call) Count() int64 { return c.reply.int() }
