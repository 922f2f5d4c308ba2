package throttle_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

// wakesLua counts the wake-up messages instead of sending them: a test sees at once
// whether a script sent one.
const wakesLua = `
local actual = redis
local redis = {}
function redis.call(name, ...)
  if name == 'PUBLISH' then return actual.call('INCR', 'test:wakes') end
  return actual.call(name, ...)
end
function redis.pcall(...)
  local ok, reply = pcall(redis.call, ...)
  return ok and reply or { err = tostring(reply) }
end
`

// drivenLua is the clock of a real server that a test moves: the scripts read it from
// a key, and what they let expire goes by it as well.
const drivenLua = `
local actual, redis = redis, {}
local driven = tonumber(actual.call('GET', 'test:clock'))

for _, name in ipairs(actual.call('ZRANGEBYSCORE', 'test:expiry', '-inf', driven)) do
  actual.call('DEL', name)
  actual.call('ZREM', 'test:expiry', name)
end

local function expire(name, ms)
  actual.call('ZADD', 'test:expiry', string.format('%.0f', driven + ms * 1000), name)
end

-- How many commands a script makes says how long it keeps others waiting, on any machine.
local commands = 0
local function count()
  commands = commands + 1
  if commands % 500 == 0 and commands > tonumber(actual.call('GET', 'test:commands') or 0) then
    actual.call('SET', 'test:commands', commands)
  end
end

function redis.call(command, name, ...)
  local more = { ... }
  count()
  if command == 'PUBLISH' then return actual.call('INCR', 'test:wakes') end
  if command == 'PEXPIRE' then return expire(name, more[1]) end
  if command == 'PERSIST' or command == 'DEL' or command == 'SET' then
    actual.call('ZREM', 'test:expiry', name)
  end
  if command == 'PERSIST' then return 1 end
  if command == 'SET' and more[2] == 'PX' then
    expire(name, more[3])
    more = { more[1] }
  end
  return actual.call(command, name, unpack(more))
end
function redis.pcall(...)
  local ok, reply = pcall(redis.call, ...)
  return ok and reply or { err = tostring(reply) }
end

local function server_time() return driven end
`

// A driven server stands still in time until the test moves it.
type driven struct {
	t       *testing.T
	client  redis.UniversalClient
	scripts *script.Set
	now     time.Time
	mini    *miniredis.Miniredis // nil for a real server
}

// onBoth runs a test on a real server and on miniredis.
func onBoth(t *testing.T, test func(d *driven)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { test(drivenRedis(t)) })
	t.Run("miniredis", func(t *testing.T) { test(drivenMini(t)) })
}

func drivenRedis(t *testing.T) *driven {
	t.Helper()
	d := &driven{t: t, client: throttletest.StartRedis(t).Client(), scripts: script.NewSetWithClock(drivenLua)}
	d.reset(t)
	return d
}

func drivenMini(t *testing.T) *driven {
	t.Helper()
	clock, err := os.ReadFile("internal/script/lua/clock.lua")
	require.NoError(t, err)
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	d := &driven{t: t, client: client, scripts: script.NewSetWithClock(wakesLua + string(clock)), mini: m}
	d.reset(t)
	return d
}

// most is n on a real server, and at most 60 on miniredis, whose scripts take
// milliseconds; few is for runs, a tenth.
func (d *driven) most(n int) int {
	if d.mini != nil {
		return min(n, 60)
	}
	return n
}

func (d *driven) few(n int) int {
	if d.mini != nil {
		return n / 10
	}
	return n
}

// reset empties the server and sets its clock to where all tests begin.
func (d *driven) reset(t require.TestingT) {
	require.NoError(t, d.client.FlushAll(context.Background()).Err())
	d.set(t, time.UnixMicro(1_700_000_000_000_000).UTC())
}

// set moves the clock, forward or back.
func (d *driven) set(t require.TestingT, now time.Time) {
	d.now = now
	if d.mini != nil {
		d.mini.SetTime(now)
		d.mini.Exists("") // a step is taken when the next call is made: before another one is set
		return
	}
	require.NoError(t, d.client.Set(context.Background(), "test:clock", now.UnixMicro(), 0).Err())
}

func (d *driven) advance(t require.TestingT, by time.Duration) { d.set(t, d.now.Add(by)) }

// run makes a call that must not fail.
func (d *driven) run(t require.TestingT, c *script.Call) *script.Call {
	require.NoError(t, script.Run(context.Background(), d.client, c))
	return c
}

// commands is the most that one script has made so far, to the last 500.
func (d *driven) commands(t require.TestingT) int {
	n, err := d.client.Get(context.Background(), "test:commands").Int()
	if err != redis.Nil { //nolint:errorlint // go-redis returns it bare
		require.NoError(t, err)
	}
	return n
}

// wakes is the number of wake-up messages so far.
func (d *driven) wakes(t require.TestingT) int {
	n, err := d.client.Get(context.Background(), "test:wakes").Int()
	if err != redis.Nil { //nolint:errorlint // go-redis returns it bare
		require.NoError(t, err)
	}
	return n
}

// names lists what a shard's state is made of, once what is to expire has expired.
func (d *driven) names(t require.TestingT) []string {
	d.run(t, d.scripts.Find(0, "nobody", "nothing"))
	names, err := d.client.Keys(context.Background(), "weir:*").Result()
	require.NoError(t, err)
	return names
}

// queue is a Queue on the driven clock, with one shard.
func (d *driven) queue(t require.TestingT) *throttle.Queue {
	q, err := throttle.NewQueueOn(context.Background(), d.client, throttle.QueueConfig{Shards: 1}, d.scripts)
	require.NoError(t, err)
	return q
}

// policy sets the default policy of the shard.
func (d *driven) policy(t require.TestingT, p throttle.Policy) {
	d.run(t, d.policies(p.Key, throttle.PolicyText(p)))
}

// policies is the call that stores policies: pairs of name and text.
func (d *driven) policies(pairs ...string) *script.Call {
	return d.scripts.Policies(0, 0, rules(pairs...))
}

func rules(pairs ...string) []script.Rule {
	var out []script.Rule
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, script.Rule{Name: pairs[i], Policy: pairs[i+1]})
	}
	return out
}

func policyText(rate int64, period time.Duration, burst int64, max int) string {
	return fmt.Sprintf("%d %d %d %d", rate, period.Microseconds(), burst, max)
}

func limit(t require.TestingT, rate string, burst int64) throttle.Limit {
	l, err := throttle.ParseLimit(rate, burst)
	require.NoError(t, err)
	return l
}

// ids are the numbers from 1 to n as job ids that sort as they count.
func ids(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%06d", i+1)
	}
	return out
}

// entries are jobs of cost 1 for a key.
func entries(key string, ids ...string) []script.Entry {
	out := make([]script.Entry, len(ids))
	for i, id := range ids {
		out[i] = script.Entry{Key: key, ID: id, Cost: 1, Pool: throttle.DefaultPool, Job: []byte(`{"type":"t","at":0}` + "\n" + id)}
	}
	return out
}

func TestDrivenClockMovesTimeAndExpiryTogether(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1/4s", 1), MaxInFlight: 10})
		d.run(t, d.scripts.Enqueue(0, -1, entries("k", "a")))
		released := released(d.run(t, d.scripts.Release(0, releasing("1"))))
		require.Len(t, released, 1)
		_, slots := d.run(t, d.scripts.Depart(0, lead, lease, "1", holds(released))).Slots()
		d.run(t, d.scripts.Finish(0, lead, ends(script.Done, departed(holds(released), slots))))

		bucket := script.ShardName(0) + "b:k" // kept for 4 s until it is empty, and a second more
		require.Contains(t, d.names(t), bucket)
		d.advance(t, 4900*time.Millisecond)
		require.Contains(t, d.names(t), bucket)
		d.advance(t, 100*time.Millisecond)
		require.NotContains(t, d.names(t), bucket)
		placed := d.run(t, d.scripts.Enqueue(0, -1, entries("k", "b"))).Placed(1)
		require.Equal(t, d.now.UnixMicro(), placed.Now)
	})
}

func TestMiniredisKeepsTTLAndTimeTogether(t *testing.T) {
	d, ctx := drivenMini(t), context.Background()
	require.NoError(t, d.client.Set(ctx, "k", "v", 5*time.Second).Err())
	before := d.client.Time(ctx).Val()
	d.advance(t, 10*time.Second)
	require.Equal(t, 10*time.Second, d.client.Time(ctx).Val().Sub(before))
	require.Zero(t, d.client.Exists(ctx, "k").Val())
}
