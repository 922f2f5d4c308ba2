-- Purpose: tells what governs a key, what holds its next job, and until when.
-- Guarantee: changes nothing.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     id of the job that it is about, "" for the one that leaves next
-- Reply: shard where the key belongs, server time in µs; waiting, delayed,
--        in flight; id, state and place in the line of the job ("" if there is none); what
--        holds it ("" nothing, "rate", "quota", "pause", "cooldown", "circuit", "disabled", "hours",
--        "in_flight", "order", "delay", "parent", "scheduler", "workers", or "idle"), the
--        key at which it is held, µs until it is let go (-1: not known); paused, draining, end
--        of a cool-down in µs of the server's clock; period in µs and burst that the key has now; number of parents; for each from
--        the key up: key, level in millionths, policy; then for each policy that could be meant, the one in force
--        first among them: source ("live", "file", "job" or "built in"), name, policy

local b = bucket(ARGV[1])
leak(b)
local waiting, delayed = redis.call('ZCARD', b.w), redis.call('ZCARD', b.d)
local cause, holder, wait = 'idle', b.key, -1
local id, state, place = ARGV[2], '', 0

-- Whether the first of those that were released waits for a worker.
local SLOW = 1000000 -- that nothing departs, or nothing is released, µs
local function stuck() return b.out > 0 and now - b.since > SLOW + 2 * lead end

-- Whether nobody looks at what is due.
local function unattended()
  local root = b
  for _, x in ipairs(chain(b)) do root = x end
  local at = tonumber(redis.call('ZSCORE', DUE, root.key) or '')
  return at and at < now - SLOW
end

local function why(r)
  local at, by = open_at(b, now, b.level + b.out + b.below, b.out + b.below, r.cost)
  cause, wait = by, at - now
  for i, x in ipairs(chain(b)) do
    if i > 1 then
      local up, up_why = open_at(x, now, x.level + x.out + x.below, x.out + x.below, r.cost)
      if up - now > wait then cause, holder, wait = up_why, x.key, up - now end
    end
  end
  if cause == 'pause' or cause == 'disabled' then
    wait = -1
    return
  end
  local head = b.ordered and b.head ~= '' and b.head ~= id and redis.call('HEXISTS', b.j, b.head) == 1
  if head then
    local delayed = tonumber(redis.call('ZSCORE', b.d, b.head) or '')
    if not redis.call('ZSCORE', b.w, b.head) then
      cause, holder, wait = 'order', b.key, delayed and delayed - now or -1
    end
  elseif b.flight >= b.max then
    cause, holder, wait = 'in_flight', b.key, -1
  end
  if stuck() then
    cause, holder, wait = 'workers', b.key, -1
  elseif wait <= lead and unattended() then
    cause, holder, wait = 'scheduler', b.key, -1
  elseif wait <= 0 and cause ~= 'in_flight' and cause ~= 'order' and b.up
    and redis.call('ZSCORE', SHARD .. 'r:' .. b.up, b.key) then
    cause, holder, wait = 'parent', b.up, -1
  end
end

if id == '' then
  id = redis.call('ZRANGE', b.w, 0, 0)[1] or redis.call('ZRANGE', b.d, 0, 0)[1]
    or redis.call('ZRANGE', b.f, 0, 0)[1] or ''
end
if redis.call('HEXISTS', b.j, id) == 1 then
  local r = record(b, id)
  local where, position, _, _, at = whereabouts(b, id, r)
  state, place = where, position
  if state == 'waiting' then
    why(r)
  elseif state == 'delayed' then
    cause, wait = 'delay', at - now
    if wait <= -SLOW then cause, wait = 'scheduler', -1 end
  elseif state == 'released' and stuck() then
    cause = 'workers'
  else
    cause, wait = '', math.max(0, at - now)
  end
end
local reply = {
  away(b) or THIS, real, waiting, delayed, b.flight, id, state, place, cause, holder, wait,
  b.paused and 1 or 0, b.draining and 1 or 0, b.cool > now and b.cool + real - now or 0, b.period, b.burst, #chain(b) - 1,
}
for _, x in ipairs(b.chain) do
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = x.key, math.floor(x.level * 1000000), x.policy
end

local function candidate(source, name, text)
  if not sound(text) then return end
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = source, name, text
end
local function stored(name)
  candidate('live', name, redis.call('HGET', SHARD .. 'live', name))
  candidate('file', name, redis.call('HGET', SHARD .. 'file', name))
end
stored(b.key)
candidate('job', b.key, b.own)
each_match(b.key, function(name)
  if name ~= b.key then stored(name) end -- the key may be a pattern too
end)
if b.key ~= '*' then stored('*') end
candidate('built in', '', DEFAULT_POLICY)
return reply
