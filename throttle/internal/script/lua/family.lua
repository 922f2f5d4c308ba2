-- Sharing a parent: which of its children releases next.
--
-- Start-time fair queueing (Goyal, Vin, Cheng, 1996), level by level. A child that
-- has something to release is in its parent's ready set under its start tag; the
-- lowest goes first, and its tag grows by cost over weight. A child that was away
-- begins at the parent's virtual time, so what it did not use is gone to the others.
-- A child with a guaranteed minimum that is owed some goes before all tags.
--
-- The name '' in a ready set stands for the bucket's own jobs, of a key that is a
-- parent as well.
--
-- A bucket's kin field is "below epoch vtime tag_epoch tag owed outage booked last":
--   below      cost that its descendants have released and not departed
--   epoch      instant at which its virtual time, vtime, was begun
--   tag        its next start tag, if the parent's epoch is still tag_epoch
--   owed       instant at which the next unit of its minimum is due
--   outage     instant at which it began to leave again after nobody saw to it
--   last       instant of the last departure, where a ramp needs it
--   booked     instant at which it will be empty, as far as slots were foreseen

local OWED = 1000000 -- how much of its minimum a child may catch up on, µs
local NEAR = 0.5 -- of lead: how far ahead of its slot a child may keep the root idle

local function ready_set(b) return SHARD .. 'r:' .. b.key end
local function owed_set(b) return SHARD .. 'm:' .. b.key end

local function drop(p, name)
  redis.call('ZREM', ready_set(p), name)
  redis.call('ZREM', owed_set(p), name)
end

-- Puts a child, or the parent's own jobs, into the ready set.
local function join(p, name, child)
  if not child.min then redis.call('ZREM', owed_set(p), name) end
  if redis.call('ZSCORE', ready_set(p), name) then return end
  p.kin = true
  if redis.call('ZCARD', ready_set(p)) == 0 and (p.epoch or 0) == 0 then p.epoch, p.vtime = now, 0 end
  local tag = p.vtime
  if name ~= '' then
    child.kin = true
    if child.tag_epoch == p.epoch then tag = math.max(tag, child.tag) end
    if child.min then
      child.owed = math.max(child.owed or 0, now)
      redis.call('ZADD', owed_set(p), int(child.owed), name)
    end
  end
  redis.call('ZADD', ready_set(p), exact(tag), name)
end

-- The child that goes next, and the lowest tag; nil if none is ready.
local function pick(p)
  local head = redis.call('ZRANGE', ready_set(p), 0, 0, 'WITHSCORES')
  if not head[1] then return nil end
  local owed = redis.call('ZRANGEBYSCORE', owed_set(p), '-inf', int(now), 'LIMIT', 0, 1)
  return owed[1] or head[1], tonumber(head[2])
end

-- Charges a child's share with what it released.
local function advance(p, name, child, lowest, cost)
  p.vtime = math.max(p.vtime or 0, lowest)
  local weight = name == '' and 1 or child.weight
  local tag = tonumber(redis.call('ZSCORE', ready_set(p), name)) + cost / weight
  redis.call('ZADD', ready_set(p), exact(tag), name)
  if name == '' then return end
  child.tag_epoch, child.tag = p.epoch, tag
  if child.min then
    child.owed = math.max(child.owed or 0, now - OWED) + cost * child.min[2] / child.min[1]
    redis.call('ZADD', owed_set(p), int(child.owed), name)
  else
    redis.call('ZREM', owed_set(p), name)
  end
end

-- What will be in b when what is out of it has departed. Where parents hold jobs back
-- that is more than their cost: the slots that were foreseen count.
local function foreseen(b)
  return math.max(b.level + b.out + b.below, ((b.booked or 0) - now) * b.rate / b.period)
end

-- How long until b has room for cost, beside what is out of it.
local function room(b, cost)
  return open_at(b, now, foreseen(b), b.out + b.below, cost) - now
end

-- How far ahead of its slot a child has to be in the ready set: a root that is busy
-- gives its slots away a whole lead ahead.
local function ahead_of(root)
  return room(root, 1) > lead * NEAR and lead or lead * NEAR
end

-- When to look again at a child that is to be ready so long before its slot.
local function family_look(b, wait, cost, ahead)
  if next_look(b, wait, cost) == FAR then return FAR end
  local grid = math.max(1, math.floor(lead / 10))
  return math.min(FAR, math.ceil((now + wait - ahead + 1) / grid) * grid)
end

-- Foresees a departure from b after a wait. Call it before the job is counted as out.
local function book(b, wait, cost)
  local level = math.max(foreseen(b), wait * b.rate / b.period) + cost
  b.booked = now + math.ceil(level * b.period / b.rate)
end

-- Takes a child that is ready after its root is out of the ready set for a while.
local aside
local soonest_aside
local function set_aside(p, name, wait)
  local tag = redis.call('ZSCORE', ready_set(p), name)
  local owed = redis.call('ZSCORE', owed_set(p), name)
  soonest_aside = math.min(soonest_aside, wait)
  aside[#aside + 1] = { parent = p, name = name, tag = tag, owed = owed, wait = wait }
  drop(p, name)
end

-- Puts those back that are ready by then.
local function restore(by)
  if soonest_aside > by then return end
  soonest_aside = FAR
  for i = #aside, 1, -1 do
    local x = aside[i]
    if x.wait <= by then
      redis.call('ZADD', ready_set(x.parent), x.tag, x.name)
      if x.owed then redis.call('ZADD', owed_set(x.parent), x.owed, x.name) end
      aside[i] = aside[#aside]
      aside[#aside] = nil
    elseif x.wait < soonest_aside then
      soonest_aside = x.wait
    end
  end
end

-- How long until the first of those below a node is ready, of all if it is nil; nil if
-- there is none.
local function first_aside(node)
  local first
  for _, x in ipairs(aside) do
    if (not node or x.parent == node) and (not first or x.wait < first) then first = x.wait end
  end
  return first
end

-- Walks from the root to the bucket whose job goes next. path are the buckets from
-- the root down, names what was picked below each. Those that have nothing are
-- dropped on the way; nil when nothing is left.
local function descend(root)
  local path, names, lowest = { root }, {}, {}
  while true do
    local node = path[#path]
    local name, tag = pick(node)
    if not name then
      if node == root then return nil end
      local wait = first_aside(node)
      path[#path], names[#path] = nil, nil
      if wait then
        set_aside(path[#path], names[#path], wait)
      else
        drop(path[#path], names[#path])
      end
    else
      names[#path], lowest[#path] = name, tag
      if name == '' then return path, names, lowest, node end
      local child = bucket(name)
      if child.up ~= node.key or away(child) then
        drop(node, name)
        arm(child, now)
      elseif #path >= LEVELS then
        drop(node, name)
      else
        leak(child)
        path[#path + 1] = child
        names[#path] = nil
        if not has_children(child) then return path, names, lowest, child end
      end
    end
  end
end
