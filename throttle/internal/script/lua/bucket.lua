-- What every script stands on: the names of a shard's keys, its clock, its
-- buckets and the records of its jobs. KEYS[1] is always the shard's due set; its
-- name up to 'due' is the prefix of all that the script touches, so everything is
-- in the hash slot of KEYS[1].
--
--   due            sorted set: bucket -> instant at which it is next worth looking at
--   clock          "last offset grace": see shard_time
--   sweep          cursor over due while a change of policies is being passed on
--   policies       hash: key or '*' -> "rate period burst max"
--   version        counts the changes of policies
--   lease          sorted set: "id key" of a job in flight -> end of its lease
--   dead           sorted set: "id key" of a dead job -> instant of its death
--   dead:job       hash: "id key" -> encoded job
--   dead:why       hash: "id key" -> "attempts reason"
--   b:KEY          hash: the bucket
--   w:KEY          sorted set: waiting job -> its place in the line
--   d:KEY          sorted set: delayed job -> instant at which it joins the line again
--   j:KEY          hash: job -> encoded job
--   s:KEY          hash: job -> record (see parse); a waiting job of cost 1 in the
--                  default pool that was never released has none
--
-- Instants are microseconds of the shard's time. Cost is in cost units.

local DUE = KEYS[1]
local SHARD = string.sub(DUE, 1, -4)
local WAKE = 'weir:wake'
local DEFAULT_POLICY = '10 1000000 1 100'
local DEFAULT_POOL = 'weir'

local function int(n) return string.format('%.0f', n) end

local real = server_time()

-- Bookkeeping must go on when memory is full, or nothing could end and make room.
-- Redis refuses a script's writes only until it has made one that cannot grow.
local function go_on_when_full() redis.call('DEL', SHARD .. 'none') end

-- The shard's time never steps back. When the server's clock does, the offset
-- takes up the difference: nothing leaks for the step and nothing waits for the
-- clock to catch up. After a gap, a jump forward or an outage, leases are held good
-- for the time in grace, so that live holders can renew them.
-- Written once in 50 ms at most; within those an instant may lie ahead, which leak()
-- takes care of, and what is due after a step back comes that much later.
local GAP, GRACE = 60000000, 30000000
local grace = 0
local function shard_time()
  local last, offset, until_ = string.match(redis.call('GET', SHARD .. 'clock') or '', '^(%d+) (%d+) (%d+)$')
  last, offset, grace = tonumber(last or 0), tonumber(offset or 0), tonumber(until_ or 0)
  local t = real + offset
  if t < last then
    offset = last - real
    t = last
  end
  if last > 0 and t - last > GAP then grace = t + GRACE end
  if t - last >= 50000 or t == last then
    -- A full server refuses this; the next call that goes through makes up for it.
    redis.pcall('SET', SHARD .. 'clock', int(t) .. ' ' .. int(offset) .. ' ' .. int(grace))
  end
  return t
end

local now = shard_time()

local function ref(key, id) return id .. ' ' .. key end

-- How long until the first instant of a sorted set, -1 if it is empty.
local function time_to_first(name)
  local head = redis.call('ZRANGE', name, 0, 0, 'WITHSCORES')
  if not head[2] then return -1 end
  return math.max(0, tonumber(head[2]) - now)
end

-- ── policies ────────────────────────────────────────────────────────────────

local version

local function policy_version()
  version = version or redis.call('GET', SHARD .. 'version') or '0'
  return version
end

-- A text that is not one of this version's leaves the bucket to the next source.
local function set_policy(b, text)
  local rate, period, burst, max = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+)$')
  if not rate then return false end
  b.rate, b.period = tonumber(rate), tonumber(period)
  b.burst, b.max = tonumber(burst), tonumber(max)
  return true
end

-- An exact policy wins over the one a job brought along, which wins over the
-- default.
local function resolve(b)
  local policies = SHARD .. 'policies'
  local found = set_policy(b, redis.call('HGET', policies, b.key)) or set_policy(b, b.own)
    or set_policy(b, redis.call('HGET', policies, '*')) or set_policy(b, DEFAULT_POLICY)
  b.version = policy_version()
  return found
end

-- ── buckets ─────────────────────────────────────────────────────────────────

local buckets, touched = {}, {}

-- Moves a bucket to now. An instant ahead of now means a clock that stepped back:
-- nothing leaks, and now becomes the base.
local function leak(b)
  if now > b.at and b.level > 0 then
    b.level = math.max(0, b.level - (now - b.at) * b.rate / b.period)
  end
  b.at = now
end

-- Loads a bucket once a call. Missing or damaged fields count as those of an idle
-- bucket; what can be counted again is counted again.
local function bucket(key)
  local b = buckets[key]
  if b then return b end
  local v = redis.call('HMGET', SHARD .. 'b:' .. key,
    'level', 'at', 'rate', 'period', 'burst', 'max', 'version', 'seq', 'backlog', 'out', 'flight', 'own')
  b = {
    key = key,
    w = SHARD .. 'w:' .. key, d = SHARD .. 'd:' .. key,
    j = SHARD .. 'j:' .. key, s = SHARD .. 's:' .. key,
    level = tonumber(v[1] or '') or 0, at = tonumber(v[2] or '') or now,
    rate = tonumber(v[3] or ''), period = tonumber(v[4] or ''),
    burst = tonumber(v[5] or ''), max = tonumber(v[6] or ''),
    version = v[7], seq = tonumber(v[8] or ''), backlog = tonumber(v[9] or ''),
    out = tonumber(v[10] or '') or 0, flight = tonumber(v[11] or '') or 0, own = v[12] or '',
  }
  if not b.seq then
    local last = redis.call('ZRANGE', b.w, -1, -1, 'WITHSCORES')
    b.seq = tonumber(last[2] or '') or 0
  end
  b.backlog = b.backlog or redis.call('ZCARD', b.w)
  local whole = b.rate and b.period and b.burst and b.max
  if not whole or b.version ~= policy_version() then
    if whole then leak(b) end -- at the old rate until now
    resolve(b)
  end
  buckets[key] = b
  touched[#touched + 1] = b
  return b
end

-- Stands for every longer wait, µs: 158 years. Sums with an instant stay exact, and
-- no command refuses it as out of range.
local FOREVER = 5000000000000000

-- How long until a job of this cost may leave a bucket that holds level. A job
-- dearer than the burst leaves when the bucket is empty.
local function wait_for(b, level, cost)
  local over = level - math.max(0, b.burst - cost)
  if over <= 0 then return 0 end
  return math.min(FOREVER, math.ceil(over * b.period / b.rate))
end

local function store(b)
  if redis.call('HLEN', b.j) > 0 then
    redis.call('HSET', SHARD .. 'b:' .. b.key,
      'level', string.format('%.17g', b.level), 'at', int(b.at),
      'rate', int(b.rate), 'period', int(b.period), 'burst', int(b.burst), 'max', int(b.max),
      'version', b.version, 'seq', int(b.seq), 'backlog', int(b.backlog),
      'out', int(b.out), 'flight', int(b.flight), 'own', b.own)
    return true
  end
  -- Without jobs only the level is worth keeping, and only until it has leaked.
  leak(b)
  redis.call('DEL', SHARD .. 'b:' .. b.key, b.w, b.d, b.s)
  redis.call('ZREM', DUE, b.key)
  if b.level > 0 then
    redis.call('HSET', SHARD .. 'b:' .. b.key,
      'level', string.format('%.17g', b.level), 'at', int(b.at), 'own', b.own)
    local empty = math.min(FOREVER, b.level * b.period / b.rate)
    redis.call('PEXPIRE', SHARD .. 'b:' .. b.key, int(math.ceil(empty / 1000) + 1000))
  end
  return false
end

-- ── the due set ─────────────────────────────────────────────────────────────

local earliest

-- Makes the scheduler look at b at the given instant, or earlier if it was going to.
local function arm(b, at)
  if not earliest then
    local head = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
    earliest = tonumber(head[2] or '') or math.huge
  end
  local set = tonumber(redis.call('ZSCORE', DUE, b.key) or '')
  if set and set <= at then return end
  redis.call('ZADD', DUE, int(at), b.key)
  if at < earliest then
    earliest = at
    b.wake = true
  end
end

-- Looking is done half a lead before the slot, so that a busy key is served in
-- batches, and on a common grid, so that many keys share a round.
local function look_at(lead, wait)
  local grid = math.max(1, math.floor(lead / 10))
  local at = now + math.max(0, wait - lead / 2)
  if at <= now then return now end
  return math.ceil(at / grid) * grid
end

-- Arms a bucket that may have something to release now that a job departed or
-- ended. One that is looked at soon enough anyway is left as it is.
local function rearm(b, lead)
  if b.flight >= b.max or redis.call('ZCARD', b.w) == 0 then return end
  leak(b)
  local at = look_at(lead, wait_for(b, b.level + b.out, 1))
  local set = tonumber(redis.call('ZSCORE', DUE, b.key) or '')
  if set and set <= at + lead / 10 then return end
  arm(b, at)
end

-- Stores what changed and wakes the schedulers when an earlier instant was armed.
local function commit()
  local wake = false
  for _, b in ipairs(touched) do
    if store(b) and b.wake then wake = true end
  end
  if wake then redis.call('PUBLISH', WAKE, SHARD) end
end

-- ── records ─────────────────────────────────────────────────────────────────
--
-- "state cost seq attempt release run token slot round pool", where state is
-- w(aiting), d(elayed), r(eleased) or g(oing); release is the ms of the job's last
-- release, made to grow, and run counts its departures: together they fence off
-- whoever held it before, an earlier job of the same id included.

local RECORD = '^([wdrg]) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%d+) (%S+) (%S+)$'

local function parse(text)
  local state, cost, seq, attempt, release, run, token, slot, round, pool = string.match(text or '', RECORD)
  if not state then return nil end
  return {
    state = state, cost = tonumber(cost), seq = tonumber(seq), attempt = tonumber(attempt),
    release = tonumber(release), run = tonumber(run), token = token, slot = tonumber(slot),
    round = round, pool = pool,
  }
end

local function fresh(seq, cost, pool)
  return {
    state = 'w', cost = cost or 1, seq = seq, attempt = 0, release = 0, run = 0,
    token = '-', slot = 0, round = '-', pool = pool or DEFAULT_POOL,
  }
end

local function encode(r)
  return string.format('%s %.0f %.0f %.0f %.0f %.0f %s %.0f %s %s',
    r.state, r.cost, r.seq, r.attempt, r.release, r.run, r.token, r.slot, r.round, r.pool)
end

local function put(b, id, r) redis.call('HSET', b.s, id, encode(r)) end

-- ── moves that several scripts make ─────────────────────────────────────────

-- Takes a job out of flight. The caller decides what becomes of it.
local function land(b, id, r)
  b.flight = math.max(0, b.flight - 1)
  if r.state == 'r' then b.out = math.max(0, b.out - r.cost) end
  if b.flight == 0 then b.out = 0 end
  redis.call('ZREM', SHARD .. 'lease', ref(b.key, id))
end

-- Gives a job back its old place in the line.
local function rejoin(b, id, r)
  r.state, r.token, r.slot, r.round = 'w', '-', 0, '-'
  redis.call('ZADD', b.w, int(r.seq), id)
  b.backlog = b.backlog + r.cost
  put(b, id, r)
end

local function forget(b, id)
  redis.call('HDEL', b.j, id)
  redis.call('HDEL', b.s, id)
end

local function bury(b, id, r, reason)
  local name = ref(b.key, id)
  redis.call('ZADD', SHARD .. 'dead', int(now), name)
  redis.call('HSET', SHARD .. 'dead:job', name, redis.call('HGET', b.j, id) or '')
  redis.call('HSET', SHARD .. 'dead:why', name, int(r.attempt) .. ' ' .. reason)
  forget(b, id)
end

-- State, place in the line and wait of one job, for receipts and look-ups. The
-- wait counts every job ahead as one cost unit unless the whole line is ahead.
local function whereabouts(b, id)
  leak(b)
  local r = parse(redis.call('HGET', b.s, id)) or fresh(0)
  if r.state == 'r' then return 'released', 0, wait_for(b, b.level, r.cost), r.attempt end
  if r.state == 'g' then return 'running', 0, math.max(0, r.slot - now), r.attempt end
  if r.state == 'd' then
    local at = tonumber(redis.call('ZSCORE', b.d, id) or '') or now
    return 'delayed', 0, math.max(at - now, wait_for(b, b.level + b.out + b.backlog, r.cost)), r.attempt
  end
  local rank = redis.call('ZRANK', b.w, id)
  if not rank then return 'waiting', 0, 0, r.attempt end
  local line = redis.call('ZCARD', b.w)
  local ahead = rank * b.backlog / math.max(1, line)
  return 'waiting', rank + 1, wait_for(b, b.level + b.out + ahead, r.cost), r.attempt
end
