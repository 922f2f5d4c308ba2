-- Purpose: holds keys, or lets them go again.
-- Guarantee: jobs that wait feel it: those of an exact key at once, those of others
-- page by page. Jobs already on their way to a worker go back when they ask to
-- depart. What comes after a hold keeps to burst + rate × time.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     what: "pause", "drain", "cooldown" or "resume"
-- ARGV[2]     end of a cool-down, µs of the server's clock
-- ARGV[3]     who: for the audit trail; "" for no entry
-- ARGV[4..]   groups of 1: name, an exact key or a pattern
-- Reply: for each name 1 if something changed, else 0
-- Expiry: what is left of a hold that is over goes a day later, see tidy.

go_on_when_full()
local what, till, who = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local reply, sweep, any = {}, false, false

-- Has a key forget what the other side said and that its calls failed, but for the rate that it has found.
local function forgive(name)
  if is_pattern(name) or redis.call('HEXISTS', SHARD .. 'b:' .. name, 'said') == 0 then return false end
  local b = bucket(name)
  local s = b.said
  if not s or s.rest <= now and s.off + s.opened + s.fails == 0 then return false end
  s.rest, s.off, s.opened, s.fails, s.failing, s.calls, s.ratio = 0, 0, 0, 0, 0, 0, 0
  adopt(b)
  b.stir = true
  return true
end

local function set(name)
  local old = redis.call('HGET', SHARD .. 'hold', name)
  local paused, draining, cool, resumed = parse_hold(old)
  if what == 'pause' then
    paused = 1
  elseif what == 'drain' then
    draining = 1
  elseif what == 'cooldown' then
    cool = now + till - real
  else
    if paused == 1 or cool > now then resumed = now end
    paused, draining, cool = 0, 0, math.min(cool, now)
  end
  local text = hold_text(paused, draining, cool, resumed)
  if text == (old or '0 0 0 0') then return 0 end
  if text == '0 0 0 0' then
    redis.call('HDEL', SHARD .. 'hold', name)
  else
    redis.call('HSET', SHARD .. 'hold', name, text)
  end
  list_pattern(name)
  any = true
  sweep = sweep or is_pattern(name)
  if who ~= '' then trail(who, what, name, old or '', text) end
  return 1
end

if redis.call('ZCARD', SHARD .. 'patterns') >= MOST_PATTERNS then
  for i = 4, #ARGV, 1 do
    if what ~= 'resume' and is_pattern(ARGV[i]) then
      return redis.error_reply('there are ' .. MOST_PATTERNS .. ' patterns already: resume or remove some')
    end
  end
end
for i = 4, #ARGV, 1 do
  local forgiven = what == 'resume' and forgive(ARGV[i])
  reply[#reply + 1] = set(ARGV[i])
  if forgiven and reply[#reply] == 0 then
    reply[#reply] = 1
    if who ~= '' then trail(who, what, ARGV[i], '', '') end
  end
end
if any then changed_rules(rules().shards, sweep) end
for i = 4, #ARGV, 1 do
  if reply[i - 3] == 1 and not is_pattern(ARGV[i]) then feel(ARGV[i]) end
end
commit()
return reply
