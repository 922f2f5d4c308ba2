-- All that governs a departure: a bucket and its parents, each with its level, its
-- quotas, its calendar and its holds. All of them are asked, then all are charged.

-- A bucket and its parents, from the bottom up.
local function chain(b)
  if b.chain then return b.chain end
  b.chain = { b }
  local x = b
  while x.up and #b.chain < LEVELS do
    local parent = bucket(x.up)
    for _, known in ipairs(b.chain) do
      if known == parent then return b.chain end
    end
    leak(parent)
    parent.kin, x.kin = true, true
    b.chain[#b.chain + 1] = parent
    x = parent
  end
  return b.chain
end

-- The first instant from at on at which cost may leave b on its own account, and what
-- holds it until then. level is what is in the bucket, ahead the cost that leaves
-- first but is not counted by quotas yet.
local function open_at(b, at, level, ahead, cost)
  local s = b.said
  if b.paused then return now + FOREVER, s and s.off > 0 and 'disabled' or 'pause' end
  local cause = ''
  local wait = wait_for(b, level, cost)
  if wait > 0 and now + wait > at then at, cause = now + wait, 'rate' end
  if b.cool > at then at, cause = b.cool, s and s.opened > 0 and 'circuit' or 'cooldown' end
  if not b.more then return at, cause end
  for _ = 1, 8 do
    local before = at
    if b.more.open then
      at = open_from(b, at)
      -- A job may leave a little after its slot: it must not be closed by then.
      local late = at + guard(b)
      if open_from(b, late) > late then at = open_from(b, late) end
      if at > before then cause = 'hours' end
    end
    local base = at
    for _, q in ipairs(load_quotas(b)) do
      local free = quota_from(b, q, base, ahead + cost, cost)
      if free > at then at, cause = free, 'quota' end
    end
    -- Windows that what is ahead takes up are counted once.
    if at == before or ahead > 0 and at > base then break end
  end
  return math.min(at, now + FOREVER), cause
end

-- How long until cost may leave b and all its parents, when nothing else is ahead.
local function chain_wait(b, cost)
  local at = now
  for _ = 1, 8 do
    local before = at
    for _, x in ipairs(chain(b)) do at = math.max(at, (open_at(x, at, x.level, 0, cost))) end
    if at == before or #b.chain == 1 then break end
  end
  return at - now
end

-- Charges a bucket and its parents for what leaves at a slot. Where something else
-- than its own level puts the slot off, what leaks until then is nobody's to use.
local function charge(b, cost, slot)
  for _, x in ipairs(chain(b)) do
    if slot > now and slot - now > wait_for(x, x.level, cost) then
      x.level = math.max(x.level, worth(x, now, slot) * x.rate / x.period)
    end
    x.level = x.level + cost
    if slot > now then
      x.ahead = math.max(0, x.ahead - math.max(0, slot - x.last_slot) * x.rate / x.period) + cost
      x.last_slot = math.max(x.last_slot, slot)
    end
    if x.more and x.more.ramp then x.kin, x.last = true, slot end
    for _, q in ipairs(load_quotas(x)) do count(x, q, slot, cost) end
  end
end

-- The least that x has to hold for the slots that it has promised: what leaks until the
-- last of them, and what is left of their charges then.
local function promised(x)
  if x.last_slot <= now then return 0 end
  return worth(x, now, x.last_slot) * x.rate / x.period + x.ahead
end

-- Corrects what a job was charged by the difference to what it truly cost. What may have
-- leaked of its charge since its slot is not credited, nor what is promised to others:
-- it would be taken out of their charges, and be a burst on top of the burst.
local function settle(b, r, cost)
  local off = cost - r.cost
  if off == 0 then return end
  for _, x in ipairs(chain(b)) do
    leak(x)
    if off > 0 then
      x.level = x.level + off
    else
      -- Nobody knows at which rate it leaked before the limit changed.
      local left = r.slot < x.changed and 0 or r.cost - worth(x, r.slot, math.max(r.slot, now)) * x.rate / x.period
      local least = math.min(x.level, promised(x))
      x.level = math.max(0, least, x.level - math.max(0, math.min(-off, left)))
    end
    for _, q in ipairs(load_quotas(x)) do
      if off > 0 then count(x, q, now, off) else uncount(x, q, r.slot, -off) end
    end
  end
end

-- Counts cost as released, or no longer, with the parents.
local function count_below(b, cost)
  for i, x in ipairs(chain(b)) do
    if i > 1 then x.below = x.below + cost end
  end
end
