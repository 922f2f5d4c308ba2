-- Storing buckets, and when to look at them next.

local function has_children(b) return b.kin and redis.call('EXISTS', SHARD .. 'r:' .. b.key) == 1 end

local function kin_text(b)
  return exact(b.below) .. ' ' .. int(b.epoch or 0) .. ' ' .. exact(b.vtime or 0) .. ' ' .. int(b.tag_epoch or 0)
    .. ' ' .. exact(b.tag or 0) .. ' ' .. int(b.owed or 0) .. ' ' .. int(b.outage or 0)
    .. ' ' .. int(b.booked or 0) .. ' ' .. int(b.last or 0)
end

local function store_quotas(b, name)
  for _, q in ipairs(b.quotas or {}) do
    if q.changed then redis.call('HSET', name, q.field, exact(q.id) .. ' ' .. exact(q.used)) end
  end
end

local function store(b)
  local name = SHARD .. 'b:' .. b.key
  local jobs = redis.call('HLEN', b.j) > 0
  if jobs or b.below > 0 or has_children(b) then
    redis.call('HSET', name,
      'level', exact(b.level), 'at', int(b.at), 'policy', b.policy, 'version', b.version,
      'seq', int(b.seq), 'backlog', int(b.backlog), 'out', int(b.out),
      'own', b.own, 'hold', b.hold, 'family', b.family, 'runs', int(b.run) .. ' ' .. int(b.since))
    if b.head ~= b.had_head then redis.call('HSET', name, 'head', b.head) end
    if b.told ~= b.was_told then redis.call('HSET', name, 'told', b.told) end
    local text = b.said and said.text(b.said) or ''
    if text ~= b.had_said then redis.call('HSET', name, 'said', text) end
    b.had_head, b.was_told, b.had_said = b.head, b.told, text
    if b.kin then redis.call('HSET', name, 'kin', kin_text(b)) end
    if b.ahead > 0 or b.changed > 0 then
      redis.call('HSET', name, 'ahead', exact(b.ahead) .. ' ' .. int(b.last_slot) .. ' ' .. int(b.changed))
    end
    if rules().shards > 0 then redis.call('HSET', name, 'home', b.home and int(b.home) or '') end
    store_quotas(b, name)
    if b.resting then redis.call('PERSIST', name) end
    return true
  end
  -- Without jobs only what was charged is worth keeping, and only until it is over.
  leak(b)
  local keep = b.level > 0 and math.min(FOREVER, time_for(b, b.level * b.period / b.rate)) or 0
  for _, q in ipairs(load_quotas(b)) do
    keep = math.max(keep, quota_rest(b, q))
    q.changed = true
  end
  if b.said then keep = math.max(keep, said.worth(b)) end
  redis.call('DEL', name, b.w, b.d, b.s, b.f, b.a)
  redis.call('ZREM', DUE, b.key)
  if keep > 0 then
    redis.call('HSET', name, 'level', exact(b.level), 'at', int(b.at), 'own', b.own,
      'policy', b.policy) -- it leaks at this rate until it is asked for again
    if b.last_slot > now or b.changed > 0 then
      redis.call('HSET', name, 'ahead', exact(b.ahead) .. ' ' .. int(b.last_slot) .. ' ' .. int(b.changed))
    end
    if b.kin then redis.call('HSET', name, 'kin', kin_text(b)) end
    if b.told ~= '' then redis.call('HSET', name, 'told', b.told) end
    if b.said then redis.call('HSET', name, 'said', said.text(b.said)) end
    store_quotas(b, name)
    redis.call('PEXPIRE', name, int(math.ceil(keep / 1000) + 1000))
  end
  return false
end

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
  if at < earliest and at < FAR then
    earliest = at
    b.wake = true
  end
end

-- Looking is done half a lead before the slot, so that a busy key is served in
-- batches, and on a common grid, so that many keys share a round.
local function look_at(wait)
  local grid = math.max(1, math.floor(lead / 10))
  local at = now + math.max(0, wait - lead / 2)
  if at <= now then return now end
  return math.min(FAR, math.ceil(at / grid) * grid)
end

-- When to look at a bucket whose next job waits for this long on its account; never
-- if only a departure, the end of a run or a change of rules can help.
local function next_look(b, wait, cost)
  if b.paused then return FAR end
  local out = b.out + b.below
  if out > 0 and wait > lead and wait_for(b, out, cost) > lead then return FAR end
  return look_at(wait)
end

-- Arms a bucket that may have something to release now that a job departed or
-- ended. One that is looked at soon enough anyway is left as it is.
local function rearm(b)
  if b.paused then return end
  local own = b.flight < b.max and redis.call('ZCARD', b.w) > 0
    and not (b.up and redis.call('ZSCORE', SHARD .. 'r:' .. b.up, b.key))
  if not own and not has_children(b) then return end
  leak(b)
  local out = b.out + b.below
  local at = look_at(open_at(b, now, b.level + out, out, 1) - now)
  local set = tonumber(redis.call('ZSCORE', DUE, b.key) or '')
  if set and set <= at + lead / 10 then return end
  arm(b, at)
end

local function rearm_all()
  for i = 1, #touched do rearm(touched[i]) end
end

-- Counters of the shard. "waiting" and "delayed" are jobs at this moment, the others
-- are since the shard was begun: "enqueued", "departed", and for each way in which a
-- job or an attempt may end the name of that.
local tallies = {}
local function tally(name, n) tallies[name] = (tallies[name] or 0) + n end

local wake = false

-- Stores what changed and wakes the schedulers when an earlier instant was armed.
local function commit()
  for _, b in ipairs(touched) do
    b.below = math.max(0, b.below)
    if b.look then arm(b, now) end -- what it waited for left it otherwise
    if b.stir then rearm(b) end
    b.stir = nil
  end
  for _, b in ipairs(touched) do
    if store(b) and b.wake then wake = true end
  end
  for name, n in pairs(tallies) do
    -- A damaged counter is no reason to stop.
    if n ~= 0 then redis.pcall('HINCRBY', SHARD .. 'stats', name, n) end
  end
  tallies = {}
  if wake then redis.call('PUBLISH', WAKE, SHARD) end
end
