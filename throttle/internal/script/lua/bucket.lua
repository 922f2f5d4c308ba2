-- Buckets: what is stored of a key, and the arithmetic of its level.

local buckets, touched = {}, {}

-- How many µs at the full rate the time from one instant to another is worth. After
-- a pause a ramp lets the rate grow from a fraction of it, in a straight line.
local function area(ramp, d)
  local within = math.min(d, ramp[2])
  return ramp[1] * within + (1 - ramp[1]) * within * within / (2 * ramp[2]) + d - within
end

local function worth(b, from, to)
  local start = b.ramped
  if not start or to <= start then return to - from end
  local before = math.max(0, start - from)
  return before + area(b.more.ramp, to - start) - area(b.more.ramp, math.max(0, from - start))
end

-- How long from now until so many µs at the full rate have passed.
local function time_for(b, need)
  local start = b.ramped
  if not start or now + need <= start then return need end
  local ramp, gone = b.more.ramp, math.max(0, now - start)
  local want = need - math.max(0, start - now) + area(ramp, gone)
  local full = ramp[2] * (1 + ramp[1]) / 2
  local d
  if want >= full then
    d = ramp[2] + want - full
  else
    local a = (1 - ramp[1]) / (2 * ramp[2])
    d = (math.sqrt(ramp[1] * ramp[1] + 4 * a * want) - ramp[1]) / (2 * a)
  end
  return start + d - now
end

-- Moves a bucket to now. An instant ahead of now means a clock that stepped back:
-- nothing leaks, and now becomes the base.
local function leak(b)
  if now > b.at and b.level > 0 then
    b.level = math.max(0, b.level - worth(b, b.at, now) * b.rate / b.period)
  end
  b.at = now
end

local change_parent, log_policy, log_entry

-- Loads a bucket once a call. Missing or damaged fields count as those of an idle
-- bucket; what can be counted again is counted again.
local function bucket(key)
  local b = buckets[key]
  if b then return b end
  local v = redis.call('HMGET', SHARD .. 'b:' .. key,
    'level', 'at', 'policy', 'version', 'seq', 'backlog', 'out', 'own', 'hold', 'family', 'kin', 'home', 'ahead',
    'runs', 'head', 'told', 'said')
  b = {
    key = key,
    w = SHARD .. 'w:' .. key, d = SHARD .. 'd:' .. key,
    j = SHARD .. 'j:' .. key, s = SHARD .. 's:' .. key,
    f = SHARD .. 'f:' .. key, a = SHARD .. 'a:' .. key,
    level = math.max(0, finite(v[1]) or 0), at = finite(v[2]) or now,
    version = v[4], seq = finite(v[5]), backlog = finite(v[6]),
    out = math.max(0, finite(v[7]) or 0), own = v[8] or '',
    hold = v[9] or '', family = v[10] or '', home = finite(v[12]),
    head = v[15] or '', told = v[16] or '', had_head = v[15] or '', was_told = v[16] or '',
    said = said.parse(v[17]), had_said = v[17] or '',
    resting = v[1] and not v[5], -- kept for its level alone, which expires
    below = 0,
  }
  -- What was promised to slots that lay ahead, as a bucket of its own: see settle.
  local ahead, last, changed = string.match(v[13] or '', '^(%S+) (%S+) (%S+)$')
  b.ahead, b.last_slot, b.changed = finite(ahead) or 0, finite(last) or 0, finite(changed) or 0
  b.flight = redis.call('ZCARD', b.f)
  -- How long a run takes, on average, and since when no job of those outside departed.
  local run, since = string.match(v[14] or '', '^(%S+) (%S+)$')
  b.run, b.since = math.max(0, finite(run) or 0), finite(since) or 0
  if v[11] then
    -- "below epoch vtime tag_epoch tag owed outage booked last", see family.lua
    local k = {}
    for n in string.gmatch(v[11], '%S+') do k[#k + 1] = finite(n) or 0 end
    b.kin = true
    b.below, b.epoch, b.vtime = k[1] or 0, k[2] or 0, k[3] or 0
    b.tag_epoch, b.tag, b.owed = k[4] or 0, k[5] or 0, k[6] or 0
    b.outage, b.booked, b.last = k[7] or 0, k[8] or 0, k[9] or 0
  end
  if b.home and (b.home < 0 or b.home >= rules().shards or b.home % 1 ~= 0) then b.home = nil end
  if b.seq and (b.seq < 0 or b.seq % 1 ~= 0) then b.seq = nil end
  b.seq = b.seq or 0
  b.backlog = b.backlog or redis.call('ZCARD', b.w)
  local whole = sound(v[3] or nil)
  if whole then
    set_policy(b, whole)
    adopt(b)
  end
  buckets[key] = b
  touched[#touched + 1] = b
  if not whole or b.version ~= rules().version then
    local up, rate, period = b.up, b.rate, b.period
    if whole then leak(b) end -- at the old rate until now
    resolve(b)
    adopt(b)
    b.home = nil
    if rate ~= b.rate or period ~= b.period then b.booked, b.changed = 0, whole and now or b.changed end
    if whole and up ~= b.up then change_parent(b, up, b.up) end
    if b.told ~= '' then log_policy(b) end
  end
  return b
end

-- Takes what b has outside, and all below it, from one parent to another.
change_parent = function(b, from, to)
  local out = b.out + b.below
  if out == 0 then return end
  for way, key in pairs({ [-1] = from or false, [1] = to or false }) do
    local levels = LEVELS
    while key and levels > 0 do
      local x = bucket(key)
      x.kin, x.below = true, x.below + way * out -- below 0 only until all have changed
      x.look = x.look or way < 0
      key, levels = x.up, levels - 1
    end
  end
end

-- The shard where a bucket belongs if that is another one, else nil.
local function away(b)
  if rules().shards == 0 then return nil end
  if not b.home then b.home = home_of(b.key, b.up) end
  return b.home ~= THIS and b.home or nil
end

-- How long until a job of this cost may leave a bucket that holds level. A job
-- dearer than the burst leaves when the bucket is empty.
local function wait_for(b, level, cost)
  local over = level - math.max(0, b.burst - cost)
  if over <= 0 then return 0 end
  local wait = over * b.period / b.rate
  if b.ramped then wait = time_for(b, wait) end
  return math.min(FOREVER, math.ceil(wait))
end
