-- Purpose: sets or removes a live policy.
-- Guarantee: the version moves only if something changed. The jobs that wait feel it:
-- those of an exact key at once, those of others page by page.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     number of shards if it has a parent or is one, else 0
-- ARGV[2]     who: for the audit trail; "" for no entry
-- ARGV[3]     name
-- ARGV[4]     policy, "" to remove it
-- Reply: 1 if something changed, else 0

local shards, who, name, text = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local old = redis.call('HGET', SHARD .. 'live', name) or ''
if old == text then return 0 end
if text == '' then
  redis.call('HDEL', SHARD .. 'live', name)
else
  redis.call('HSET', SHARD .. 'live', name, text)
end
list_pattern(name)
changed_rules(math.max(shards, rules().shards), shards > 0 or is_pattern(name))
if who ~= '' then trail(who, 'policy', name, old, text) end
feel(name)
commit()
return 1
