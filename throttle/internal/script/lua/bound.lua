-- Purpose: bounds the jobs that may wait in all shards together.
-- Guarantee: the next call of enqueue keeps to it.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     number of jobs, 0 for no bound
-- ARGV[2]     who: for the audit trail; "" for no entry
-- Reply: 1 if it changed, else 0

local old = redis.call('GET', SHARD .. 'most') or '0'
if old == ARGV[1] then return 0 end
if ARGV[1] == '0' then
  redis.call('DEL', SHARD .. 'most')
else
  redis.call('SET', SHARD .. 'most', ARGV[1])
end
if ARGV[2] ~= '' then trail(ARGV[2], 'max_waiting', '*', old, ARGV[1]) end
return 1
