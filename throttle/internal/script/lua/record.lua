-- Records of jobs, and the moves that several scripts make with them.
--
-- "state cost seq attempt release run token slot round pool", where state is
-- w(aiting), d(elayed), r(eleased) or g(oing); release is the ms of the job's last
-- release, made to grow, and run counts its departures: together they fence off
-- whoever held it before, an earlier job of the same id included.

local DEFAULT_POOL = 'weir'
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

-- Takes a job out of flight. The caller decides what becomes of it.
local function land(b, id, r)
  b.flight = math.max(0, b.flight - 1)
  if r.state == 'r' then
    b.out = math.max(0, b.out - r.cost)
    if b.up then count_below(b, -r.cost) end
  end
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

-- How long a job waits that has this cost ahead of it outside of the bucket.
local function wait_behind(b, ahead, cost)
  rough = true
  local at = open_at(b, now, b.level + ahead, ahead, cost)
  for i, x in ipairs(chain(b)) do
    if i > 1 then
      local out = x.out + x.below + math.max(0, ahead - b.out)
      at = math.max(at, (open_at(x, at, x.level + out, out, cost)))
    end
  end
  rough = false
  return at - now
end

-- State, place in the line and wait of one job, for receipts and look-ups. The
-- wait counts every job ahead as one cost unit unless the whole line is ahead.
local function whereabouts(b, id)
  leak(b)
  local r = parse(redis.call('HGET', b.s, id)) or fresh(0)
  if r.state == 'r' then return 'released', 0, wait_behind(b, 0, r.cost), r.attempt end
  if r.state == 'g' then return 'running', 0, math.max(0, r.slot - now), r.attempt end
  if r.state == 'd' then
    local at = tonumber(redis.call('ZSCORE', b.d, id) or '') or now
    return 'delayed', 0, math.max(at - now, wait_behind(b, b.out + b.backlog, r.cost)), r.attempt
  end
  local rank = redis.call('ZRANK', b.w, id)
  if not rank then return 'waiting', 0, 0, r.attempt end
  local line = redis.call('ZCARD', b.w)
  local ahead = rank * b.backlog / math.max(1, line)
  return 'waiting', rank + 1, wait_behind(b, b.out + ahead, r.cost), r.attempt
end
