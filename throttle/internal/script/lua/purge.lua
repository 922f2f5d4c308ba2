-- Purpose: removes waiting and delayed jobs of a key.
-- Guarantee: jobs in flight stay. Removes at most the given number a call.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     most jobs to remove
-- Reply: how many were removed

go_on_when_full()
local b = bucket(ARGV[1])
local budget, removed = tonumber(ARGV[2]), 0
for _, line in ipairs({ b.w, b.d }) do
  local left = budget - removed
  local ids = left > 0 and redis.call('ZRANGE', line, 0, left - 1) or {}
  for _, id in ipairs(ids) do
    local r = parse(redis.call('HGET', b.s, id)) or fresh(0)
    if line == b.w then b.backlog = math.max(0, b.backlog - r.cost) end
    redis.call('ZREM', line, id)
    forget(b, id)
    removed = removed + 1
  end
end
if removed > 0 then commit() end
return removed
