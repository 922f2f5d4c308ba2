package script

// What an operator says of keys: policies, holds, zones. Names are exact keys or
// patterns. who is for the audit trail; empty writes no entry. Instants are µs of
// the server's clock.

// A Rule is a policy as stored, under its name.
type Rule struct{ Name, Policy string }

// Policies replaces the policies of the config file. shards is the number of shards
// if policies have parents, else 0. Count tells whether something changed.
func (s *Set) Policies(shard, shards int, rules []Rule) *Call {
	args := append(make([]any, 0, 1+2*len(rules)), shards)
	for _, r := range rules {
		args = append(args, r.Name, r.Policy)
	}
	return &Call{Shard: shard, script: s.policies, args: args}
}

// Override sets a live policy, or removes it if its text is empty. Count tells
// whether something changed.
func (s *Set) Override(shard, shards int, who string, r Rule) *Call {
	return &Call{Shard: shard, script: s.override, args: []any{shards, who, r.Name, r.Policy}}
}

// What Control does.
const (
	Pause    = "pause"
	Drain    = "drain"
	CoolDown = "cooldown"
	Resume   = "resume"
)

// Control holds names or lets them go; read it with Held: whether something changed.
func (s *Set) Control(shard int, what string, till int64, who string, names []string) *Call {
	args := append(make([]any, 0, 3+len(names)), what, till, who)
	for _, n := range names {
		args = append(args, n)
	}
	return &Call{Shard: shard, script: s.control, args: args}
}

// Tidy forgets a page of holds that are long over; Cursor reads it.
func (s *Set) Tidy(shard int, cursor string) *Call {
	return &Call{Shard: shard, script: s.tidy, args: []any{cursor}}
}

// Cursor reads the reply of Tidy: "0" at the end.
func (c *Call) Cursor() string { return c.reply.string() }

// An Offset is how far local time is from UTC, from an instant on, both µs.
type Offset struct{ From, Offset int64 }

// Zone stores the offsets of a time zone.
func (s *Set) Zone(shard int, name string, offsets []Offset) *Call {
	args := append(make([]any, 0, 1+2*len(offsets)), name)
	for _, o := range offsets {
		args = append(args, o.From, o.Offset)
	}
	return &Call{Shard: shard, script: s.zone, args: args}
}

// Note writes into the audit trail.
func (s *Set) Note(shard int, who, what, name, outcome string) *Call {
	return &Call{Shard: shard, script: s.note, args: []any{who, what, name, outcome}}
}

// TrailKey names the audit trail of a shard, a stream of who, what, name, old, new.
func TrailKey(shard int) string { return ShardName(shard) + "trail" }

// FileKey and LiveKey name the hashes of stored policies of a shard, HoldKey that of
// its holds.
func FileKey(shard int) string { return ShardName(shard) + "file" }

// LiveKey is described with FileKey.
func LiveKey(shard int) string { return ShardName(shard) + "live" }

// HoldKey is described with FileKey.
func HoldKey(shard int) string { return ShardName(shard) + "hold" }

// VersionKey names the version of a shard's rules, see lua/shard.lua.
func VersionKey(shard int) string { return ShardName(shard) + "version" }

// HistoryKey names the stream of a key's departures.
func HistoryKey(shard int, key string) string { return ShardName(shard) + "h:" + key }

// BucketKey names the hash of a bucket.
func BucketKey(shard int, key string) string { return ShardName(shard) + "b:" + key }
