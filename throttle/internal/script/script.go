// Package script holds the Lua scripts that make every change to the stored
// state, and the typed calls around them.
//
// A script is what all of them share, see shared, followed by the file of its own.
// Its one declared key is the due set of a shard; all other names are built from
// that one's prefix, as shard.lua lists them, so a call stays within one hash slot.
// Calls on many shards go in one pipeline.
package script

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var files embed.FS

// WakeChannel carries the name of a shard whose earliest due instant moved forward.
const WakeChannel = "weir:wake"

// CoolChannel carries the name of a key that rests from now on: slots that were given do not count any more.
const CoolChannel = "weir:cool"

// MetaKey is the hash of what must be the same for every process.
const MetaKey = "weir:meta"

// DueKey names the due set of a shard: KEYS[1] of every script.
func DueKey(shard int) string { return ShardName(shard) + "due" }

// EventsKey names the stream of events of a shard.
func EventsKey(shard int) string { return ShardName(shard) + "events" }

// ShardName is the prefix of all names of a shard.
func ShardName(shard int) string { return fmt.Sprintf("weir:{%02d}:", shard) }

// A Set is all scripts on one clock.
type Set struct {
	enqueue, release, depart, finish, extend *redis.Script
	overdue, reap, audit                     *redis.Script
	policies, override, control, zone        *redis.Script
	note, tidy                               *redis.Script
	find, list, stat, count, explain         *redis.Script
	act, purge, bound                        *redis.Script
	ended, revive, evict                     *redis.Script
	emigrate, immigrate, forget              *redis.Script
}

// shared is what every script begins with, in this order.
var shared = []string{"shard", "heed", "policy", "calendar", "bucket", "quota", "chain", "store", "names", "record", "told"}

// NewSet returns the scripts on the clock of the server.
func NewSet() *Set { return NewSetWithClock(source("clock")) }

// NewSetWithClock returns the scripts on a clock of the caller's: Lua that defines
// a local function server_time returning whole microseconds, and may use KEYS[1].
func NewSetWithClock(clock string) *Set {
	prelude := clock
	for _, name := range shared {
		prelude += "\n" + source(name)
	}
	load := func(names ...string) *redis.Script {
		text := prelude
		for _, name := range names {
			text += "\n" + source(name)
		}
		return redis.NewScript(text)
	}
	return &Set{
		enqueue: load("outlook", "enqueue"), release: load("event", "family", "release"), depart: load("history", "depart"),
		finish: load("history", "event", "listen", "finish"), extend: load("extend"),
		overdue: load("overdue"), reap: load("reap"), audit: load("audit"),
		policies: load("rules", "policies"), override: load("trail", "rules", "override"),
		control: load("trail", "rules", "control"), zone: load("zone"),
		note: load("trail", "note"), tidy: load("rules", "tidy"),
		find: load("outlook", "find"), list: load("list"), stat: load("outlook", "stat"), count: load("count"),
		explain: load("explain"), act: load("trail", "act"), purge: load("purge"), bound: load("trail", "bound"),
		ended: load("ended"), revive: load("revive"), evict: load("evict"),
		emigrate: load("emigrate"), immigrate: load("immigrate"), forget: load("forget"),
	}
}

func source(name string) string {
	b, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the name is a constant of this package
	}
	return string(b)
}

// A Call is one script on one shard. After Run its reply or its error is set.
type Call struct {
	Shard  int
	Err    error
	script *redis.Script
	args   []any
	reply  reply
}

// Run makes the calls in one pipeline. Each call has its own error; Run returns
// the first of them. A script the server has forgotten is sent again.
func Run(ctx context.Context, client redis.UniversalClient, calls ...*Call) error {
	exec(ctx, client, calls, (*redis.Script).EvalSha)
	var forgotten []*Call
	for _, c := range calls {
		if c.Err != nil && strings.HasPrefix(c.Err.Error(), "NOSCRIPT") {
			forgotten = append(forgotten, c)
		}
	}
	if len(forgotten) > 0 {
		exec(ctx, client, forgotten, (*redis.Script).Eval)
	}
	for _, c := range calls {
		if c.Err != nil {
			return c.Err
		}
	}
	return nil
}

type evaluate func(s *redis.Script, ctx context.Context, c redis.Scripter, keys []string, args ...any) *redis.Cmd

func exec(ctx context.Context, client redis.UniversalClient, calls []*Call, eval evaluate) {
	if len(calls) == 1 {
		c := calls[0]
		c.set(eval(c.script, ctx, client, []string{DueKey(c.Shard)}, c.args...))
		return
	}
	pipe := client.Pipeline()
	cmds := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		cmds[i] = eval(c.script, ctx, pipe, []string{DueKey(c.Shard)}, c.args...)
	}
	_, err := pipe.Exec(ctx)
	for i, c := range calls {
		c.set(cmds[i])
		if c.Err == nil && err != nil && cmds[i].Val() == nil {
			c.Err = err
		}
	}
}

func (c *Call) set(cmd *redis.Cmd) {
	c.reply = reply{}
	v, err := cmd.Result()
	if c.Err = err; err != nil {
		return
	}
	switch v := v.(type) {
	case []any:
		c.reply.values = v
	default:
		c.reply.values = []any{v}
	}
}

// A reply is read from front to back; a value of the wrong kind is an error of the
// script, and reads as zero.
type reply struct{ values []any }

func (r *reply) more() bool { return len(r.values) > 0 }

func (r *reply) next() any {
	if len(r.values) == 0 {
		return nil
	}
	v := r.values[0]
	r.values = r.values[1:]
	return v
}

func (r *reply) int() int64 {
	n, _ := r.next().(int64)
	return n
}

func (r *reply) string() string {
	s, _ := r.next().(string)
	return s
}

var (
	process = rand.Text() // no other process uses these tokens
	tokens  atomic.Int64
)

func newToken() string { return process + "." + strconv.FormatInt(tokens.Add(1), 36) }
