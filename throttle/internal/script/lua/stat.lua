-- Purpose: counts a bucket's jobs and tells its policy.
-- Guarantee: changes nothing.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- Reply: shard where the key belongs, waiting, delayed, in flight, cost in the bucket
--        in millionths of a unit, policy

local b = bucket(ARGV[1])
leak(b)
return {
  away(b) or THIS, redis.call('ZCARD', b.w), redis.call('ZCARD', b.d), b.flight, math.floor(b.level * 1000000), b.policy,
}
