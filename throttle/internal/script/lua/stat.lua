-- Purpose: counts a bucket's jobs and tells its policy.
-- Guarantee: changes nothing.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- Reply: shard where the key belongs, server time and shard's time in µs, waiting,
--        delayed, in flight, jobs that ended and are kept, cost in the bucket and cost
--        that waits, both in millionths of a unit, instant at which the next job of the
--        line was enqueued (0: none), policy, outlook

local b = bucket(ARGV[1])
leak(b)
local first = redis.call('ZRANGE', b.w, 0, 0)[1]
return {
  away(b) or THIS, real, now, redis.call('ZCARD', b.w), redis.call('ZCARD', b.d), b.flight,
  redis.call('ZCARD', SHARD .. 'x:' .. b.key), math.floor(b.level * 1000000), b.backlog * 1000000,
  first and record(b, first).seq or 0, b.policy, outlook(b),
}
