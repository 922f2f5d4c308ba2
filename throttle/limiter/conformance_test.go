package limiter_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/throttle/throttletest/limitertest"
)

// drivenLua is the clock of a real server that a test moves: the scripts read it from a name, and what
// they let expire goes by it as well.
const drivenLua = `
local actual, redis = redis, {}
local driven = tonumber(actual.call('GET', 'test:clock'))

for _, name in ipairs(actual.call('ZRANGEBYSCORE', 'test:expiry', '-inf', driven)) do
  actual.call('DEL', name)
  actual.call('ZREM', 'test:expiry', name)
end

local function expire(name, ms) actual.call('ZADD', 'test:expiry', string.format('%.0f', driven + ms * 1000), name) end

function redis.call(command, name, ...)
  local more = { ... }
  if command == 'PEXPIRE' then return expire(name, more[1]) end
  if command == 'DEL' then actual.call('ZREM', 'test:expiry', name) end
  if command == 'SET' and more[2] == 'PX' then
    expire(name, more[3])
    more = { more[1] }
  end
  return actual.call(command, name, unpack(more))
end
function redis.pcall(...) return actual.pcall(...) end

local now = driven
`

// drivenRedis opens stores on a real server whose clock the test moves. Each finds it empty.
func drivenRedis(t *testing.T) func(t *testing.T) limitertest.Store {
	t.Helper()
	client := throttletest.StartRedis(t).Client()
	return func(t *testing.T) limitertest.Store {
		t.Helper()
		ctx := context.Background()
		require.NoError(t, client.FlushAll(ctx).Err())
		return limitertest.Store{
			Store: limiter.NewRedisWithClock(client, limiter.RedisConfig{}, drivenLua),
			Set:   func(now time.Time) { require.NoError(t, client.Set(ctx, "test:clock", now.UnixMicro(), 0).Err()) },
		}
	}
}

// drivenMini is a store on a server in this process, whose own clock the test moves.
func drivenMini(t *testing.T) limitertest.Store {
	t.Helper()
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return limitertest.Store{
		Slow:  true,
		Store: limiter.NewRedis(client, limiter.RedisConfig{}),
		Set: func(now time.Time) {
			m.SetTime(now)
			m.Exists("") // a step is taken when the next call is made: before another one is set
		},
	}
}

func drivenMemory(*testing.T) limitertest.Store {
	var now atomic.Int64
	return limitertest.Store{
		Store: limiter.NewMemory(limiter.MemoryConfig{Now: func() time.Time { return time.UnixMicro(now.Load()) }}),
		Set:   func(at time.Time) { now.Store(at.UnixMicro()) },
	}
}

func TestMemoryKeepsTheContract(t *testing.T) { limitertest.Run(t, drivenMemory) }

func TestRedisKeepsTheContract(t *testing.T) { limitertest.Run(t, drivenRedis(t)) }

func TestMiniredisKeepsTheContract(t *testing.T) { limitertest.Run(t, drivenMini) }
