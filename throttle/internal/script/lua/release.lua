-- Purpose: takes the jobs whose slot is near out of the buckets that are due.
-- Guarantee: a job is released once; the cost outside a bucket stays within
-- lead × rate + burst whatever the workers do. The same token gets the same reply.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     lead: how long before its slot a job is released, µs
-- ARGV[2]     lease of a released job, µs
-- ARGV[3]     most jobs to release
-- ARGV[4]     name of the round, kept with each job to ask for its parcel
-- ARGV[5]     scheduler
-- ARGV[6]     token of the call
-- Reply: µs until the next bucket is due (-1: none), µs until the next lease ends (-1:
--        none), then for each job: key, id, release number, pool
-- Expiry: the reply is kept for a minute.

local lead, lease, budget = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local round, kept, token = ARGV[4], SHARD .. 'reply:' .. ARGV[5], ARGV[6]
local CHUNK = 64

local earlier = redis.call('GET', kept)
if earlier and string.sub(earlier, 1, #token + 1) == token .. ' ' then
  return cjson.decode(string.sub(earlier, #token + 2))
end

go_on_when_full()
local reply = { -1, -1 }

-- After a change of policies every bucket is due, a page of them a call.
local cursor = redis.call('GET', SHARD .. 'sweep')
if cursor then
  local page = redis.call('ZSCAN', DUE, cursor, 'COUNT', 128)
  for i = 1, #page[2], 2 do
    if tonumber(page[2][i + 1]) > now then redis.call('ZADD', DUE, int(now), page[2][i]) end
  end
  if page[1] == '0' then
    redis.call('DEL', SHARD .. 'sweep')
  else
    redis.call('SET', SHARD .. 'sweep', page[1])
  end
end

-- Jobs whose delay is over join the line at the place they had.
local promotions = budget
local function promote(b)
  if promotions <= 0 then return end
  local ids = redis.call('ZRANGEBYSCORE', b.d, '-inf', int(now), 'LIMIT', 0, math.min(CHUNK, promotions))
  promotions = promotions - #ids
  for _, id in ipairs(ids) do
    redis.call('ZREM', b.d, id)
    rejoin(b, id, parse(redis.call('HGET', b.s, id)) or fresh(b.seq))
  end
end

-- Moves n jobs from the head of the line into flight.
local function hand_out(b, ids, records, n)
  local states, leases = {}, {}
  for i = 1, n do
    local id, r = ids[2 * i - 1], records[i]
    r.state, r.release, r.round = 'r', math.max(r.release + 1, math.floor(now / 1000)), round
    b.out, b.flight, b.backlog = b.out + r.cost, b.flight + 1, b.backlog - r.cost
    states[#states + 1], states[#states + 2] = id, encode(r)
    leases[#leases + 1], leases[#leases + 2] = int(now + lease), ref(b.key, id)
    reply[#reply + 1] = b.key
    reply[#reply + 1] = id
    reply[#reply + 1] = r.release
    reply[#reply + 1] = r.pool
  end
  redis.call('ZREMRANGEBYRANK', b.w, 0, n - 1)
  redis.call('HSET', b.s, unpack(states))
  redis.call('ZADD', SHARD .. 'lease', unpack(leases))
  budget = budget - n
end

-- Releases what is near its slot and returns the instant of the next look, or nil
-- when depart, finish or enqueue will arm the bucket again.
local function drain(b)
  local want = math.min(budget, b.max - b.flight, CHUNK)
  local ids = want > 0 and redis.call('ZRANGE', b.w, 0, want - 1, 'WITHSCORES') or {}
  local found = #ids / 2
  local records, wait, n = {}, 0, 0
  if found > 0 then
    local names = {}
    for i = 1, found do names[i] = ids[2 * i - 1] end
    local texts = redis.call('HMGET', b.s, unpack(names))
    local level = b.level + b.out
    for i = 1, found do
      records[i] = parse(texts[i]) or fresh(tonumber(ids[2 * i]))
      wait = wait_for(b, level, records[i].cost)
      if wait > lead then break end
      level = level + records[i].cost
      n = i
    end
    if n > 0 then hand_out(b, ids, records, n) end
  end

  local left = redis.call('ZCARD', b.w)
  if left == 0 then
    b.backlog = 0
    return nil
  end
  if b.flight >= b.max then return nil end
  if n == found then return now end
  -- Nothing could go because what is out has not departed. If that alone is too much
  -- already, only a departure can help, and depart arms; else the level leaks.
  if n == 0 and b.out > 0 and wait_for(b, b.out, records[1].cost) > lead then return nil end
  return look_at(lead, wait)
end

local due = redis.call('ZRANGEBYSCORE', DUE, '-inf', int(now), 'LIMIT', 0, 128)
for _, key in ipairs(due) do
  if budget <= 0 then break end
  local b = bucket(key)
  leak(b)
  promote(b)
  local at = drain(b)
  local delayed = redis.call('ZRANGE', b.d, 0, 0, 'WITHSCORES')
  if delayed[2] then at = math.min(at or math.huge, tonumber(delayed[2])) end
  if at then
    redis.call('ZADD', DUE, int(at), key)
  else
    redis.call('ZREM', DUE, key)
  end
end
commit()

reply[1], reply[2] = time_to_first(DUE), time_to_first(SHARD .. 'lease')
if redis.call('EXISTS', SHARD .. 'sweep') == 1 then reply[1] = 0 end
if #reply > 2 then
  redis.call('SET', kept, token .. ' ' .. cjson.encode(reply), 'PX', 60000)
end
return reply
