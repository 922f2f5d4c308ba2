package script

// Find looks up one job.
func (s *Set) Find(shard int, key, id string) *Call {
	return &Call{Shard: shard, script: s.find, args: []any{key, id}}
}

// Found reads the reply of Find. If there is no such job, home is the shard where
// its key belongs.
func (c *Call) Found() (home int, now int64, at Place, attempt int64, ok bool) {
	home = int(c.reply.int())
	if !c.reply.more() {
		return home, 0, Place{}, 0, false
	}
	now = c.reply.int()
	at = Place{Known: true, State: c.reply.string(), Position: c.reply.int(), Wait: c.reply.int()}
	return home, now, at, c.reply.int(), true
}

// Counts of a bucket.
type Counts struct {
	Home                                   int // shard where the key belongs
	Waiting, Delayed, InFlight, MicroLevel int64
	Policy                                 string // as stored
}

// Stat counts the jobs of a bucket.
func (s *Set) Stat(shard int, key string) *Call {
	return &Call{Shard: shard, script: s.stat, args: []any{key}}
}

// Counts reads the reply of Stat.
func (c *Call) Counts() Counts {
	return Counts{
		Home: int(c.reply.int()), Waiting: c.reply.int(), Delayed: c.reply.int(), InFlight: c.reply.int(),
		MicroLevel: c.reply.int(), Policy: c.reply.string(),
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
