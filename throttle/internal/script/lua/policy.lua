-- Policies and holds: which of them a key is under.
--
-- A policy is stored as "rate period burst max" and, when there is more to it, a
-- space and a JSON object of:
--   q     quotas: [limit, per in µs, "s"(liding) or "f"(ixed), zone]
--   up    parent; w: weight; min: [cost, per in µs], the guaranteed minimum
--   open  [zone, from, to, from, to, ...]: minutes of the week, from Monday 00:00
--   ramp  [fraction of the rate to begin with, µs until it is full]
--   ord   true: one job at a time, in order
--   age   µs that a job waits to gain one priority
--   ttl   µs that a job may wait for its first attempt
--   most  [jobs that may wait, "r"(efuse), "o"(ldest goes) or "n"(ewest goes)]
--   log   departures to keep in the history
--   keep  µs that a job that is done is kept
--   say   what the other side says is "x": ignored, or "a": heeded, and the rate adapts to it; without it, heeded
--   floor [cost, per in µs], the lowest rate that it adapts to
--   ev    true: events tell what becomes of jobs
--   cut   circuit: [failures in a row, ratio of failures, µs that it rests, µs of failures until
--         the key is paused]; each may be 0 for never, but the third
-- Names are exact keys, patterns with one '*' for any text, or '*' for all keys. For
-- one name the live policy wins over that of the config file.
--
-- A hold is stored as "paused draining cool resumed": two flags, the instant until
-- which a key cools down, and that at which it was resumed. A key is under all holds
-- whose names match it.

local DEFAULT_POLICY = '10 1000000 1 100'
local THIS = tonumber(string.match(SHARD, '{(%d+)}:$'))

local tables

-- Which tables are worth a look, and the version that a bucket's policy is of.
local function rules()
  if not tables then
    local text = redis.call('GET', SHARD .. 'version') or '0 0 0 0 0'
    local _, live, hold, patterns, shards = string.match(text, '^(%d+) (%d) (%d) (%d) (%d+)$')
    tables = {
      version = text, live = live == '1', hold = hold == '1', patterns = patterns == '1',
      shards = tonumber(shards or 0),
    }
  end
  return tables
end

-- Counts a change of rules. With sweep, release looks at all buckets again, page by
-- page, so that jobs that wait feel the change; the others feel it when touched.
local function changed_rules(shards, sweep)
  local n = tonumber(string.match(redis.call('GET', SHARD .. 'version') or '', '^(%d+)') or 0)
  local function any(name) return redis.call('EXISTS', SHARD .. name) end
  redis.call('SET', SHARD .. 'version', int(n + 1) .. ' ' .. any('live') .. ' ' .. any('hold')
    .. ' ' .. any('patterns') .. ' ' .. int(shards))
  tables = nil
  if sweep then
    redis.call('SET', SHARD .. 'sweep', '0')
    redis.call('PUBLISH', WAKE, SHARD)
  end
end

local BASE = '^(%d+) (%d+) (%d+) (%d+)(.*)$'

local function numbers(list, from, least)
  if type(list) ~= 'table' or #list < least then return false end
  for i = from, #list do
    if type(list[i]) ~= 'number' then return false end
  end
  return true
end

local OVERFLOWS = { r = true, o = true, n = true }

local function well_formed(more)
  for _, q in ipairs(more.q or {}) do
    if not numbers({ q[1], q[2] }, 1, 2) or q[1] < 1 or q[2] < 1 or q[2] > FOREVER then return false end
    if q[3] ~= 's' and q[3] ~= 'f' or type(q[4] or '') ~= 'string' then return false end
  end
  if more.up and type(more.up) ~= 'string' then return false end
  if more.w and not (type(more.w) == 'number' and more.w > 0) then return false end
  if more.min and not (numbers(more.min, 1, 2) and more.min[1] > 0) then return false end
  if more.open and not (numbers(more.open, 2, 3) and #more.open % 2 == 1 and type(more.open[1]) == 'string') then return false end
  if more.ord and more.ord ~= true then return false end
  for _, field in ipairs({ 'age', 'ttl', 'log', 'keep' }) do
    if more[field] and not (type(more[field]) == 'number' and more[field] > 0) then return false end
  end
  if more.most and not (numbers({ more.most[1] }, 1, 1) and more.most[1] > 0 and OVERFLOWS[more.most[2]]) then return false end
  if more.say and more.say ~= 'x' and more.say ~= 'a' then return false end
  if more.ev and more.ev ~= true then return false end
  if more.floor and not (numbers(more.floor, 1, 2) and more.floor[1] > 0 and more.floor[2] > 0) then return false end
  if more.cut and not (numbers(more.cut, 1, 4) and more.cut[3] > 0) then return false end
  return not more.ramp or numbers(more.ramp, 1, 2) and more.ramp[2] > 0
end

local decoded = {}

-- The tail of a policy, nil if it has none, false if it is damaged.
local function tail(text)
  local rate, period, burst, max, rest = string.match(text, BASE)
  if not rest or tonumber(rate) < 1 or tonumber(period) < 1 or tonumber(burst) < 1 or tonumber(max) < 1 then return false end
  if rest == '' then return nil end
  if decoded[rest] == nil then
    local ok, more = pcall(cjson.decode, rest)
    ok = ok and type(more) == 'table' and string.sub(rest, 1, 1) == ' '
    if ok then
      local checked, fine = pcall(well_formed, more)
      ok = checked and fine
    end
    decoded[rest] = ok and more or false
  end
  return decoded[rest]
end

-- A text that is not a policy leaves the key to the next source: all of it, for what
-- is left of a damaged one may allow more than was meant.
local function sound(text)
  return text and tail(text) ~= false and text or nil
end

local function lookup(name)
  return rules().live and sound(redis.call('HGET', SHARD .. 'live', name))
    or sound(redis.call('HGET', SHARD .. 'file', name))
end

local MOST_PATTERNS = 1000 -- of policies, and as many of holds
local patterns

-- Calls f for each pattern that matches a key, the longest first, until f is done.
local function each_match(key, f)
  if not rules().patterns then return end
  if not patterns then
    patterns = {}
    for _, p in ipairs(redis.call('ZRANGE', SHARD .. 'patterns', 0, 2 * MOST_PATTERNS)) do
      local star = string.find(p, '*', 1, true) or #p + 1
      patterns[#patterns + 1] = { p, string.sub(p, 1, star - 1), string.sub(p, star + 1) }
    end
  end
  for _, p in ipairs(patterns) do
    local head, rest = p[2], p[3]
    if #key >= #head + #rest and string.sub(key, 1, #head) == head
      and (rest == '' or string.sub(key, -#rest) == rest) and f(p[1]) then
      return
    end
  end
end

-- The stored policy of a key, its name, and whether that names just this key.
local function stored_policy(key)
  local text = lookup(key)
  if text then return text, key, true end
  local name
  each_match(key, function(pattern)
    text, name = lookup(pattern), pattern
    return text
  end)
  if text then return text, name, false end
  text = lookup('*')
  return text, text and '*' or '', false
end

local HOLD = '^(%d) (%d) (%d+) (%d+)$'

local function parse_hold(text)
  local paused, draining, cool, resumed = string.match(text or '', HOLD)
  return tonumber(paused or 0), tonumber(draining or 0), tonumber(cool or 0), tonumber(resumed or 0)
end

local function hold_text(paused, draining, cool, resumed)
  return int(paused) .. ' ' .. int(draining) .. ' ' .. int(cool) .. ' ' .. int(resumed)
end

-- All holds that a key is under, as one; "" for none.
local function stored_hold(key)
  if not rules().hold then return '' end
  local all = { 0, 0, 0, 0 }
  local function add(name)
    for i, v in ipairs({ parse_hold(redis.call('HGET', SHARD .. 'hold', name)) }) do
      all[i] = math.max(all[i], v)
    end
  end
  add(key)
  add('*')
  each_match(key, add)
  if all[1] + all[2] + all[3] + all[4] == 0 then return '' end
  return hold_text(unpack(all))
end

-- FNV-1a modulo n, the way Go places a key in a shard.
local function shard_of(key, n)
  local h = 2166136261
  for i = 1, #key do
    local low, byte, xored, bit = h % 256, string.byte(key, i), 0, 1
    for _ = 1, 8 do
      if low % 2 ~= byte % 2 then xored = xored + bit end
      low, byte, bit = math.floor(low / 2), math.floor(byte / 2), bit * 2
    end
    h = h - h % 256 + xored
    h = (h * 403 + (h % 256) * 16777216) % 4294967296
  end
  return h % n
end

local LEVELS = 4

-- The shard in which a key with this parent belongs: that of its family's root.
local function home_of(key, up)
  local n = rules().shards
  if n == 0 then return THIS end
  local root = key
  for _ = 1, LEVELS do
    if not up then break end
    root = up
    local text = lookup(up)
    local more = text and tail(text)
    up = more and more.up
  end
  return shard_of(root, n)
end

local function set_policy(b, text)
  local rate, period, burst, max = string.match(text, BASE)
  b.rate, b.policy_period, b.policy_burst, b.policy_max = tonumber(rate), tonumber(period), tonumber(burst), tonumber(max)
  b.policy, b.more = text, tail(text) or nil
end

-- Finds what governs a bucket. An exact policy wins over the one that a job brought
-- along, which wins over a pattern and the default; but it has no say about parents.
local function resolve(b)
  local text, _, exactly = stored_policy(b.key)
  b.family = ''
  if not exactly and b.own ~= '' and sound(b.own) then
    local more = text and tail(text)
    if more and more.up then b.family = text end
    text = b.own
  end
  set_policy(b, text or DEFAULT_POLICY)
  b.hold = stored_hold(b.key)
  b.version = rules().version
end

-- Takes apart what resolve found.
local function adopt(b)
  local kin = b.more
  if b.family ~= '' then kin = tail(b.family) end
  b.up = kin and kin.up
  b.weight, b.min = kin and kin.w or 1, kin and kin.min
  b.ordered = b.more and b.more.ord
  b.max = b.ordered and 1 or b.policy_max
  b.paused, b.draining, b.cool = false, false, 0
  b.ramped = nil -- instant at which the ramp began
  if b.hold ~= '' then
    local paused, draining, cool, resumed = parse_hold(b.hold)
    b.paused, b.draining, b.cool = paused == 1, draining == 1, cool
    b.ramped = math.max(cool, resumed)
  end
  if b.more and b.more.ramp then
    b.ramped = math.max(b.ramped or 0, b.outage or 0)
  else
    b.ramped = nil
  end
  said.heed(b)
end
