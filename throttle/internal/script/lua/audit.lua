-- Purpose: repairs a bucket whose bookkeeping was damaged: a job in flight without
-- a lease gets one, so that the reaper finds it; counts of what is in flight that are
-- wrong are put right, those of parents too; a line that nobody would look at is armed.
-- Guarantee: a sound bucket is left as it is.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     cursor over the bucket's records, "0" to begin
-- ARGV[3]     lease given to a job without one, µs
-- Reply: next cursor ("0": the end), number of repairs

local ATONCE = 1000 -- records that are counted in one call

go_on_when_full()
local key, lease = ARGV[1], tonumber(ARGV[3])
local b = bucket(key)
local repairs, flight, out = 0, 0, 0
local missing = false -- whether a job in flight is not where it is looked for

local function look(records)
  for i = 1, #records, 2 do
    local id, r = records[i], parse(records[i + 1])
    if r and (r.state == 'r' or r.state == 'g') then
      flight = flight + 1
      if r.state == 'r' then out = out + r.cost end
      if redis.call('ZADD', b.f, 'NX', int(r.release * 1000), id) == 1 then missing = true end
      if not redis.call('ZSCORE', SHARD .. 'lease', ref(key, id)) then
        redis.call('ZADD', SHARD .. 'lease', int(now + lease), ref(key, id))
        repairs = repairs + 1
      end
    end
  end
end

local cursor = ARGV[2]
local records = redis.call('HLEN', b.s)
if cursor == '0' and records <= ATONCE then
  look(redis.call('HGETALL', b.s))
  if redis.call('ZCARD', b.f) ~= flight then
    for _, id in ipairs(redis.call('ZRANGE', b.f, 0, ATONCE)) do
      local r = parse(redis.call('HGET', b.s, id))
      if not r or r.state == 'w' or r.state == 'd' then
        redis.call('ZREM', b.f, id)
        missing = true
      end
    end
  end
  b.flight = redis.call('ZCARD', b.f)
  if missing or b.out ~= out then
    count_below(b, out - b.out)
    b.out = out
    arm(b, now)
    repairs = repairs + 1
    commit()
  end
else
  local page = redis.call('HSCAN', b.s, cursor, 'COUNT', 256)
  look(page[2])
  cursor = page[1]
end

-- What the descendants of a parent have released, which is known by their leases.
if b.below > 0 and redis.call('ZCARD', SHARD .. 'lease') <= ATONCE then
  local below = 0
  for _, name in ipairs(redis.call('ZRANGE', SHARD .. 'lease', 0, ATONCE - 1)) do
    local id, other = string.match(name, '^(%S+) (.*)$')
    local x = bucket(other or '')
    for i, link in ipairs(chain(x)) do
      local r = i > 1 and link == b and parse(redis.call('HGET', x.s, id))
      if r and r.state == 'r' then below = below + r.cost end
    end
  end
  if below ~= b.below then
    b.below = below
    arm(b, now)
    repairs = repairs + 1
    commit()
  end
end

-- Whether something will look at the bucket, or is to let it know.
local function attended()
  local at = tonumber(redis.call('ZSCORE', DUE, key) or '')
  if at and at < FAR or b.paused then return true end
  if b.up and redis.call('ZSCORE', SHARD .. 'r:' .. b.up, key) then
    local p = bucket(b.up)
    local up = tonumber(redis.call('ZSCORE', DUE, p.key) or '')
    return up and up < FAR or p.below + p.out > 0 or p.paused
      or p.up and redis.call('ZSCORE', SHARD .. 'r:' .. p.up, p.key)
  end
  if has_children(b) then return b.below + b.out > 0 end
  return b.flight > 0 or redis.call('ZCARD', b.w) + redis.call('ZCARD', b.d) == 0
end

-- Where it belongs is remembered; that may have been damaged as well.
if rules().shards > 0 then
  local stored = b.home
  b.home = nil
  away(b)
  if stored and stored ~= b.home then
    repairs = repairs + 1
    arm(b, now)
    commit()
  end
end

if not attended() then
  arm(b, now)
  repairs = repairs + 1
  commit()
end
return { cursor, repairs }
