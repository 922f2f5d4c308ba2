-- Purpose: replaces the stored policies of the shard.
-- Guarantee: the version moves only if something changed; release then looks at all
-- buckets again, page by page, so that jobs that wait feel the change.
--
-- KEYS[1]     due set of the shard
-- ARGV[1..]   groups of 2: key or '*', policy as "rate period burst max"
-- Reply: 1 if something changed, else 0

local old = redis.call('HGETALL', SHARD .. 'policies')
local had = {}
for i = 1, #old, 2 do had[old[i]] = old[i + 1] end
local changed = #old ~= #ARGV
for i = 1, #ARGV, 2 do
  if had[ARGV[i]] ~= ARGV[i + 1] then changed = true end
end
if not changed then return 0 end
redis.call('DEL', SHARD .. 'policies')
for i = 1, #ARGV, 2 do redis.call('HSET', SHARD .. 'policies', ARGV[i], ARGV[i + 1]) end
redis.call('INCR', SHARD .. 'version')
redis.call('SET', SHARD .. 'sweep', '0')
redis.call('PUBLISH', WAKE, SHARD)
return 1
