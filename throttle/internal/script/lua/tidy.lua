-- Purpose: forgets holds that have been over for a day, a page of them.
-- Guarantee: a hold that is in force, or that a ramp may still count from, stays.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     cursor, "0" to begin
-- Reply: next cursor ("0": the end)

local page = redis.call('HSCAN', SHARD .. 'hold', ARGV[1], 'COUNT', 256)
for i = 1, #page[2], 2 do
  local paused, draining, cool, resumed = parse_hold(page[2][i + 1])
  if paused == 0 and draining == 0 and math.max(cool, resumed) < now - DAY then
    redis.call('HDEL', SHARD .. 'hold', page[2][i])
    list_pattern(page[2][i])
  end
end
return page[1]
