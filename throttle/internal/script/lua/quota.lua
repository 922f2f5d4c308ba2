-- Quotas: further windows on a key. A fixed window is a counter that begins anew at
-- its edge; a sliding one is a log of what left, coarse enough to have at most about
-- GRAIN entries: what it holds too long is one part in GRAIN of the window.
--
-- A job may leave a little after its slot, so a quota counts it at both ends: it has
-- to fit where its slot is, and is counted until a guard after it. A job dearer than
-- the quota leaves when nothing else is counted, and takes up windows to come.

local GRAIN = 1000
local MOST_PARTS = 64

-- The most that a worker lets a job of b leave after its slot, µs.
local function guard(b)
  if not b.guard then
    b.guard = math.min(1000000, math.max(2000, 0.8 * b.period / b.rate))
    if b.burst > 1 then b.guard = math.max(b.guard, lead / 2) end
    b.guard = math.ceil(b.guard)
  end
  return b.guard
end

local function sliding_sum(name)
  local sum = 0
  for from = 0, 4096, 512 do
    local page = redis.call('ZRANGE', name, from, from + 511)
    for _, entry in ipairs(page) do sum = sum + tonumber(string.match(entry, ' (%S+)$') or 0) end
    if #page < 512 then break end
  end
  return sum
end

-- The quotas of a bucket's policy with what is counted in them. A quota is known by
-- its window, so a changed limit finds what was counted under the old one.
local function load_quotas(b)
  if b.quotas then return b.quotas end
  b.quotas = {}
  local fields = {}
  for i, q in ipairs(b.more and b.more.q or {}) do
    local mark = q[3] .. int(q[2]) .. (q[4] or '')
    b.quotas[i] = {
      limit = q[1], per = q[2], sliding = q[3] == 's', zone = q[4] or '', field = 'q:' .. mark,
      log = q[3] == 's' and SHARD .. 'q:' .. int(q[2]) .. ':' .. b.key or nil,
    }
    fields[i] = 'q:' .. mark
  end
  if #fields > 0 then
    for i, text in ipairs(redis.call('HMGET', SHARD .. 'b:' .. b.key, unpack(fields))) do
      local id, used = string.match(text or '', '^(%S+) (%S+)$')
      local q = b.quotas[i]
      q.id, q.used = finite(id) or 0, finite(used)
      if q.sliding then
        if redis.call('EXISTS', q.log) == 0 then q.used = 0 else q.used = q.used or sliding_sum(q.log) end
      end
      q.used = q.used or 0
    end
  end
  return b.quotas
end

-- What is counted in a fixed window. Debt of a dear job goes over into the next.
local function used_in(q, id)
  if id <= q.id then return q.used end
  return math.max(0, q.used - q.limit * (id - q.id))
end

local function fixed_from(b, q, at, need, cost)
  local id, edge = window(q.per, q.zone, at)
  if at + guard(b) > edge and guard(b) < q.per / 2 then
    at = edge
    id, edge = window(q.per, q.zone, at)
  end
  for _ = 1, 8 do -- a slot was given out in a later window: this one is over
    if id >= q.id then break end
    at = edge
    id, edge = window(q.per, q.zone, at)
  end
  local used = used_in(q, id)
  if used + need <= q.limit then return at end
  if need == cost and cost > q.limit and used <= 0 then return at end
  local more = used + math.min(need, need - cost + q.limit) - q.limit
  if more <= 0 then return edge end
  return edge + (math.ceil(more / q.limit) - 1) * q.per
end

local function sliding_from(b, q, at, need, cost)
  local ahead, later = need - cost, 0
  cost = math.min(cost, q.limit)
  if ahead + cost > q.limit then
    local cycles = math.ceil((ahead + cost) / q.limit) - 1
    ahead, later = ahead - cycles * q.limit, cycles * q.per
  end
  local over = q.used + ahead + cost - q.limit
  local from = 0
  while over > 0 do
    local page = redis.call('ZRANGE', q.log, from, from + 63, 'WITHSCORES')
    if #page == 0 then break end
    for i = 1, #page, 2 do
      local part = tonumber(string.match(page[i], ' (%S+)$') or 0)
      over = over - part
      if over <= 0 then return math.max(at, tonumber(page[i + 1]) + q.per + guard(b)) + later end
    end
    from = from + 64
  end
  return at + later
end

-- The first instant from at on at which a quota has room for cost behind what is
-- ahead of it; need is both.
local function quota_from(b, q, at, need, cost)
  if q.sliding then return sliding_from(b, q, at, need, cost) end
  return fixed_from(b, q, at, need, cost)
end

local function count_fixed(q, at, cost)
  local id = math.max(q.id, (window(q.per, q.zone, at)))
  q.used, q.id = used_in(q, id) + cost, id
end

local function count_sliding(b, q, at, cost)
  local over = int(now - q.per - guard(b))
  local old = redis.call('ZRANGEBYSCORE', q.log, '-inf', over, 'LIMIT', 0, 256)
  if #old > 0 then
    for _, entry in ipairs(old) do q.used = q.used - tonumber(string.match(entry, ' (%S+)$') or 0) end
    redis.call('ZREM', q.log, unpack(old))
  end
  local last = redis.call('ZRANGE', q.log, -1, -1, 'WITHSCORES')
  if not last[1] then q.used = 0 end
  q.used = q.used + cost
  at = math.max(at, tonumber(last[2] or 0))
  if last[1] then
    local first, sum = string.match(last[1], '^(%S+) (%S+)$')
    if at - tonumber(first or 0) <= q.per / GRAIN and tonumber(sum) + cost <= q.limit then
      redis.call('ZREM', q.log, last[1])
      redis.call('ZADD', q.log, int(at), first .. ' ' .. exact(sum + cost))
      cost = 0
    end
  end
  if at == tonumber(last[2]) then at = at + 1 end -- an entry is known by its first instant
  -- A dear job takes up windows to come, and the last of so many takes the rest.
  for i = 1, MOST_PARTS do
    if cost <= 0 then break end
    local part = i < MOST_PARTS and math.min(cost, q.limit) or cost
    redis.call('ZADD', q.log, int(at), int(at) .. ' ' .. exact(part))
    cost, at = cost - part, at + q.per
  end
  redis.call('PEXPIRE', q.log, int(math.ceil((at + q.per + guard(b) - now) / 1000) + 60000))
end

local function count(b, q, at, cost)
  q.changed = true
  if q.sliding then count_sliding(b, q, at, cost) else count_fixed(q, at, cost) end
end

-- Takes back what a job at slot was counted too much, where it is still counted.
local function uncount(b, q, slot, cost)
  if q.sliding then
    if slot + q.per + guard(b) <= now then return end
    local entry = redis.call('ZRANGEBYSCORE', q.log, int(slot), '+inf', 'LIMIT', 0, 1, 'WITHSCORES')
    local first, sum = string.match(entry[1] or '', '^(%S+) (%S+)$')
    if not first or tonumber(first) > slot then return end
    cost = math.min(cost, tonumber(sum))
    redis.call('ZREM', q.log, entry[1])
    redis.call('ZADD', q.log, entry[2], first .. ' ' .. exact(sum - cost))
  elseif window(q.per, q.zone, slot) ~= q.id then
    return
  end
  q.used, q.changed = math.max(0, q.used - cost), true
end

-- How long a quota of an idle bucket has something to remember.
local function quota_rest(b, q)
  if q.sliding then
    local last = redis.call('ZRANGE', q.log, -1, -1, 'WITHSCORES')
    return last[2] and tonumber(last[2]) + q.per + guard(b) - now or 0
  end
  if q.used <= 0 then return 0 end
  local id, edge = window(q.per, q.zone, now)
  for _ = 1, 8 do -- what was charged for a slot ahead may be in a later one
    if id >= q.id then break end
    id, edge = window(q.per, q.zone, edge)
  end
  if used_in(q, id) <= 0 then return 0 end
  return edge + math.max(0, math.ceil(used_in(q, id) / q.limit) - 1) * q.per - now
end
