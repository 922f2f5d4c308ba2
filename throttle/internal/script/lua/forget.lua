-- Purpose: removes jobs that another shard has stored.
-- Guarantee: a job that does not wait any more stays.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2..]   groups of 1: id
-- Reply: how many were removed

go_on_when_full()
local b = bucket(ARGV[1])
local removed = 0
if away(b) then
  redis.call('ZREM', SHARD .. 'arrived', '\n' .. b.key)
  for i = 2, #ARGV, 1 do
    local id = ARGV[i]
    local r = record(b, id)
    redis.call('ZREM', SHARD .. 'arrived', id .. ' ' .. int(r.seq) .. ' ' .. b.key) -- it may come back
    if take_out(b, id, r) then
      forget(b, id, r)
      removed = removed + 1
    end
  end
end
commit()
return removed
