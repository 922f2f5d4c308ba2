package throttle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

// Keys that look alike once they are joined with something have lines, buckets, leases
// and dead letters of their own.
func TestKeysNeverShareState(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		q := d.queue(t)
		keys := []string{"a:b:c", "a:b", "b:c", "w:a", "a", "b:a", "1 a", " a", "a ", "a\x00", "A", "{00}:a", "}:b:a", "reply:s", "due", "*", "10.0.0.1", "/a|b", "/ab|"}
		s := newSimulation(t, d)
		d.policy(t, throttle.Policy{Key: throttle.AnyKey, Limit: limit(t, "1/s", 1), MaxInFlight: 10})
		s.end = func(departure) (string, time.Duration) { return script.Dead, 0 }
		s.latency = func() time.Duration { return 0 }
		from := s.now
		for _, key := range keys {
			s.enqueue(entries(key, "1", "2")...)
		}
		for _, key := range keys {
			k, err := q.Key(t.Context(), key)
			require.NoError(t, err)
			require.EqualValues(t, 2, k.Waiting, "%q", key)
		}
		s.drain(time.Minute)
		for _, key := range keys {
			require.Equal(t, []string{"1", "2"}, s.jobs(key), "%q", key)
			inDelta(t, func(i int) time.Duration { return time.Duration(i) * time.Second }, s.slots(key, from))
			dead, err := q.Jobs(t.Context(), key, throttle.Dead, throttle.Page{})
			require.NoError(t, err)
			require.Len(t, dead.Jobs, 2, "%q", key)
			require.Equal(t, key, dead.Jobs[0].Key)
		}
	})
}

// touchedLua notes the names that a script reads or writes.
const touchedLua = `
local actual = redis
local redis = {}
function redis.call(command, name, ...)
  if command ~= 'PUBLISH' and command ~= 'TIME' then actual.call('SADD', 'test:touched', name) end
  if name == nil then return actual.call(command) end
  return actual.call(command, name, ...)
end
function redis.pcall(...)
  local ok, reply = pcall(redis.call, ...)
  return ok and reply or { err = tostring(reply) }
end
local function server_time()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end
`

// Every name that a script touches begins with the name of the shard, whose braces are
// the first: that is its hash slot, whatever the key is called.
func TestScriptsStayInTheSlotOfTheirShard(t *testing.T) {
	client := throttletest.StartRedis(t).Client()
	scripts := script.NewSetWithClock(touchedLua)
	run := func(c *script.Call) *script.Call {
		t.Helper()
		require.NoError(t, script.Run(t.Context(), client, c))
		return c
	}
	const shard = 7
	for i, key := range append([]string{"a{b}c", "{x}", "{", "}", "{}", "}{", "{99}:due"}, oddKeys...) {
		run(scripts.Policies(shard, 0, rules(key, policyText(100, time.Second, 10, 10))))
		run(scripts.Enqueue(shard, -1, entries(key, "1", "2", "3", "4")))
		jobs := holds(released(run(scripts.Release(shard, releasing(fmt.Sprint(i))))))
		require.Len(t, jobs, 4)
		_, slots := run(scripts.Depart(shard, lead, lease, "1", jobs[:3])).Slots()
		going := departed(jobs, slots)
		require.Equal(t, []bool{true, true, true}, run(scripts.Extend(shard, -1, going)).Held())
		_, overdue := run(scripts.Overdue(shard, 10)).Overdue()
		require.Len(t, overdue, 3)
		run(scripts.Reap(shard, lead, lease, []script.Verdict{{Hold: overdue[0].Hold}, {Hold: overdue[1].Hold, Extend: true}}))
		run(scripts.Finish(shard, lead, append(ends(script.Retry, going[1:2]), append(ends(script.Dead, going[2:]), ends(script.Return, jobs[3:])...)...)))
		run(scripts.Find(shard, key, "1"))
		run(scripts.Stat(shard, key))
		run(scripts.Audit(shard, key, "0", lease))
		run(scripts.Ended(shard, script.Dead, key, "", "", 10))
		run(scripts.Purge(shard, script.Purging{Key: key, State: script.ListWaiting, Most: 10}))
		run(scripts.Purge(shard, script.Purging{Key: key, State: script.ListDelayed, Most: 10}))
	}
	names, err := client.SMembers(t.Context(), "test:touched").Result()
	require.NoError(t, err)
	require.Greater(t, len(names), 5*len(oddKeys))
	for _, name := range names {
		require.True(t, strings.HasPrefix(name, script.ShardName(shard)), "%q", name)
	}
}

// So does what operators and families bring into play.
func TestScriptsOfFamiliesStayInTheirSlot(t *testing.T) {
	client := throttletest.StartRedis(t).Client()
	scripts := script.NewSetWithClock(touchedLua)
	run := func(c *script.Call) *script.Call {
		t.Helper()
		require.NoError(t, script.Run(t.Context(), client, c))
		return c
	}
	const shard, shards = 0, 1
	child := policyText(100, time.Second, 10, 10) +
		` {"q":[[50,60000000,"s",""],[500,86400000000,"f","Europe/Berlin"]],"up":"up","min":[1,1000000],"open":["Europe/Berlin",0,10080],"ramp":[0.1,60000000]}`
	for i, key := range append([]string{"a{b}c", "{x}", "{", "}", "{}", "}{", "{99}:due"}, oddKeys...) {
		run(scripts.Zone(shard, "Europe/Berlin", []script.Offset{{From: 0, Offset: 3_600_000_000}}))
		run(scripts.Policies(shard, shards, rules("up", policyText(1_000_000, time.Second, 1_000_000, 10), key, child)))
		run(scripts.Enqueue(shard, -1, entries(key, "1", "2")))
		run(scripts.Override(shard, shards, "who", script.Rule{Name: key, Policy: child}))
		for _, what := range []string{script.Pause, script.Drain, script.CoolDown, script.Resume} {
			run(scripts.Control(shard, what, 1, "who", []string{key, key + "*"}))
		}
		jobs := holds(released(run(scripts.Release(shard, releasing(fmt.Sprint(i))))))
		require.NotEmpty(t, jobs)
		_, slots := run(scripts.Depart(shard, lead, lease, "1", jobs)).Slots()
		run(scripts.Finish(shard, lead, ends(script.Done, departed(jobs, slots))))
		run(scripts.Explain(shard, key, ""))
		run(scripts.Tidy(shard, "0"))
		run(scripts.Note(shard, "who", "what", key, "outcome"))
		m, _ := run(scripts.Emigrate(shard, 10)).Moving()
		m.Key, m.Home, m.Level, m.Counts = key, shard, "0", "[]"
		run(scripts.Immigrate(m))
		run(scripts.Forget(shard, m))
		run(scripts.Purge(shard, script.Purging{Key: key, State: script.ListWaiting, Most: 10}))
		run(scripts.Override(shard, shards, "who", script.Rule{Name: key}))
	}
	names, err := client.SMembers(t.Context(), "test:touched").Result()
	require.NoError(t, err)
	require.Greater(t, len(names), 8*len(oddKeys))
	for _, name := range names {
		require.True(t, strings.HasPrefix(name, script.ShardName(shard)), "%q", name)
	}
}

func TestKeysAreBoundedAndComeBackByteForByte(t *testing.T) {
	server := throttletest.StartRedis(t)
	q := queueOn(t, server.Client())
	unlimited(t, q)
	size, err := server.Client().DBSize(t.Context()).Result()
	require.NoError(t, err)
	for _, key := range []string{"", strings.Repeat("k", 513), strings.Repeat("k", 1<<20), "\xff", "a\x80b"} {
		_, err := q.Enqueue(t.Context(), throttle.Job{Key: key, Type: "t"})
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.Less(t, len(err.Error()), 200, "the error does not repeat a long key")
	}
	after, err := server.Client().DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.Equal(t, size, after, "nothing is written")

	keys := []string{"k", strings.Repeat("k", 256), strings.Repeat("k", 512), "a\x00b", "a\r\nb", "\t", " ", "🚰 é", "\u2028", `"\`}
	var jobs []throttle.Job
	for i, key := range keys {
		jobs = append(jobs, throttle.Job{Key: key, ID: fmt.Sprint(i), Type: "t"})
	}
	receipts, err := q.EnqueueMany(t.Context(), jobs)
	require.NoError(t, err)
	out := handedOver(t, q)
	seen := make(map[string]string)
	for range keys {
		h := <-out
		seen[h.ID] = h.Key
	}
	for i, key := range keys {
		require.Equal(t, key, receipts[i].Key)
		require.Equal(t, key, seen[fmt.Sprint(i)])
		info, err := q.Job(t.Context(), key, fmt.Sprint(i))
		require.NoError(t, err)
		require.Equal(t, throttle.Released, info.State)
	}
}

func TestPayloadsAreBoundedAndBinary(t *testing.T) {
	server := throttletest.StartRedis(t)
	q := queueOn(t, server.Client())
	unlimited(t, q)
	size, err := server.Client().DBSize(t.Context()).Result()
	require.NoError(t, err)
	for _, n := range []int{throttle.DefaultMaxJobSize + 1, 100 << 20} {
		_, err := q.Enqueue(t.Context(), throttle.Job{Key: "k", Type: "t", Payload: make([]byte, n)})
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.ErrorContains(t, err, fmt.Sprintf("payload %d", n))
		require.ErrorContains(t, err, fmt.Sprintf("at most %d bytes", throttle.DefaultMaxJobSize))
	}
	after, err := server.Client().DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.Equal(t, size, after, "nothing is written")

	largest := make([]byte, throttle.DefaultMaxJobSize)
	for i := range largest {
		largest[i] = byte(i)
	}
	payloads := [][]byte{largest, {}, {0x80}, {0x00, 0xff, 0x0a, 0x0d, 0x7b}}
	for i, payload := range payloads {
		_, err := q.Enqueue(t.Context(), throttle.Job{Key: "k", ID: fmt.Sprint(i), Type: "t", Payload: payload})
		require.NoError(t, err)
	}
	out := handedOver(t, q)
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	for i, payload := range payloads {
		permits, err := p.Depart(t.Context(), time.Minute, p.NewToken(), []throttle.Hold{<-out})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), permits[0].Job.ID)
		require.Equal(t, payload, permits[0].Job.Payload)
	}
}
