-- Purpose: counts a bucket's jobs and tells its limit.
-- Guarantee: changes nothing.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- Reply: waiting, delayed, in flight, cost in the bucket in millionths of a unit,
--        rate, period in µs, burst, most in flight

local b = bucket(ARGV[1])
leak(b)
return {
  redis.call('ZCARD', b.w), redis.call('ZCARD', b.d), b.flight, math.floor(b.level * 1000000),
  b.rate, b.period, b.burst, b.max,
}
