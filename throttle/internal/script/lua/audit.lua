-- Purpose: repairs a bucket whose bookkeeping was damaged: a job in flight without
-- a lease gets one, so that the reaper finds it; a line that nobody would look at
-- is armed.
-- Guarantee: a sound bucket is left as it is.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     cursor over the bucket's records, "0" to begin
-- ARGV[3]     lease given to a job without one, µs
-- Reply: next cursor ("0": the end), number of repairs

go_on_when_full()
local key, lease = ARGV[1], tonumber(ARGV[3])
local b = bucket(key)
local repairs = 0

local page = redis.call('HSCAN', b.s, ARGV[2], 'COUNT', 256)
for i = 1, #page[2], 2 do
  local id, r = page[2][i], parse(page[2][i + 1])
  if r and (r.state == 'r' or r.state == 'g')
    and not redis.call('ZSCORE', SHARD .. 'lease', ref(key, id)) then
    redis.call('ZADD', SHARD .. 'lease', int(now + lease), ref(key, id))
    repairs = repairs + 1
  end
end
if not redis.call('ZSCORE', DUE, key) and b.flight == 0
  and redis.call('ZCARD', b.w) + redis.call('ZCARD', b.d) > 0 then
  arm(b, now)
  repairs = repairs + 1
  commit()
end
return { page[1], repairs }
