-- Purpose: tells what governs a key, what holds its next job, and until when.
-- Guarantee: changes nothing.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- Reply: shard where the key belongs, server time in µs; waiting, delayed,
--        in flight; what holds the next job ("" nothing, "rate", "quota", "pause",
--        "cooldown", "hours", "in_flight", "delay", "parent" or "idle"), the key at
--        which it is held, µs until it is let go (-1: not known); paused, draining, end
--        of a cool-down in µs of the server's clock; number of parents; for each from
--        the key up: key, level in millionths, policy; then for each policy that could be meant, the one in force
--        first among them: source ("live", "file", "job" or "built in"), name, policy

local b = bucket(ARGV[1])
leak(b)
local waiting, delayed = redis.call('ZCARD', b.w), redis.call('ZCARD', b.d)
local cause, holder, wait = 'idle', b.key, -1
if waiting > 0 then
  local id = redis.call('ZRANGE', b.w, 0, 0)[1]
  local r = parse(redis.call('HGET', b.s, id)) or fresh(0)
  local at, why = open_at(b, now, b.level + b.out + b.below, b.out + b.below, r.cost)
  cause, wait = why, at - now
  if b.flight >= b.max then cause, wait = 'in_flight', -1 end
  for i, x in ipairs(chain(b)) do
    if i > 1 and cause ~= 'in_flight' then
      local up, up_why = open_at(x, now, x.level + x.out + x.below, x.out + x.below, r.cost)
      if up - now > wait then cause, holder, wait = up_why, x.key, up - now end
    end
  end
  if wait <= 0 and b.up and redis.call('ZSCORE', SHARD .. 'r:' .. b.up, b.key) then
    cause, holder, wait = 'parent', b.up, -1
  end
  if cause == 'pause' then wait = -1 end
elseif delayed > 0 then
  cause, wait = 'delay', time_to_first(b.d)
end
local reply = {
  away(b) or THIS, real, waiting, delayed, b.flight, cause, holder, wait,
  b.paused and 1 or 0, b.draining and 1 or 0, b.cool > now and b.cool + real - now or 0, #chain(b) - 1,
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
