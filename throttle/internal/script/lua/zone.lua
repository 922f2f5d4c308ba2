-- Purpose: stores the offsets of a time zone.
-- Guarantee: replaces those that were stored.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     zone
-- ARGV[2..]   groups of 2: instant in µs, offset from UTC in µs from then on
-- Reply: 1

local name = SHARD .. 'zone:' .. ARGV[1]
redis.call('DEL', name)
for i = 2, #ARGV, 2 do redis.call('ZADD', name, ARGV[i], ARGV[i] .. ' ' .. ARGV[i + 1]) end
return 1
