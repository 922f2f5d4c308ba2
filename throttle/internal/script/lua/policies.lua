-- Purpose: replaces the policies of the config file that the shard holds.
-- Guarantee: the version moves only if something changed; release then looks at all
-- buckets again, page by page, so that jobs that wait feel the change. Live policies
-- stay.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     number of shards if policies have parents, else 0
-- ARGV[2..]   groups of 2: name, policy
-- Reply: 1 if something changed, else 0

local shards = tonumber(ARGV[1])
local old = redis.call('HGETALL', SHARD .. 'file')
local had, count = {}, 0
for i = 1, #old, 2 do
  had[old[i]] = old[i + 1]
  count = count + 1
end
local changed, new = false, 0
for i = 2, #ARGV, 2 do
  if had[ARGV[i]] ~= ARGV[i + 1] then changed = true end
  new = new + 1
end
if not changed and count == new and shards <= rules().shards then return 0 end
redis.call('DEL', SHARD .. 'file')
for i = 2, #ARGV, 2 do
  redis.call('HSET', SHARD .. 'file', ARGV[i], ARGV[i + 1])
  list_pattern(ARGV[i])
end
for name in pairs(had) do list_pattern(name) end
changed_rules(math.max(shards, rules().shards), true)
return 1
