-- Purpose: puts jobs into their buckets.
-- Guarantee: a job whose id is already in its bucket changes nothing and is
-- answered for the job that is there. Jobs of one key keep the order given.
--
-- The same token gets the same reply, so a repeated call does not take jobs that have
-- ended meanwhile for new ones.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     token of the call
-- ARGV[2..]   groups of 7: key, id, cost, not before (µs of the server's clock, 0 = now),
--             pool, policy the job brings along (as stored, or ""), encoded job
-- Reply: server time in µs, then for each job: 1 if it was there already or 0,
--        state, place in the line (0 outside it), wait in µs until it leaves. A job
--        that was not taken has the state "draining", or "moved" with the shard where
--        its key belongs as its place.
-- Expiry: the reply is kept for 20 s, longer than a client repeats calls; a bucket
-- that waits to be forgotten is kept again.

local kept = SHARD .. 'reply:' .. ARGV[1]
local earlier = redis.call('GET', kept)
if earlier then return cjson.decode(earlier) end

local reply = { real }

local function answer(known, state, place, wait)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = known, state, place, wait
end

-- Puts a new job into its bucket, and answers for it.
local function add(b, id, cost, not_before, pool)
  b.seq = b.seq + 1
  local r = fresh(b.seq, cost, pool)
  if not_before > real then
    r.state = 'd'
    redis.call('ZADD', b.d, int(now + not_before - real), id)
    put(b, id, r)
    arm(b, now + not_before - real)
    local state, place, wait = whereabouts(b, id)
    return answer(0, state, place, wait)
  end
  if redis.call('ZADD', b.w, int(b.seq), id) == 1 and b.backlog == 0 then arm(b, now) end
  if cost ~= 1 or pool ~= DEFAULT_POOL then put(b, id, r) end
  local wait = wait_behind(b, b.out + b.backlog, cost)
  b.backlog = b.backlog + cost
  answer(0, 'waiting', redis.call('ZCARD', b.w), wait)
end

local function draining(b)
  for _, x in ipairs(chain(b)) do
    if x.draining then return true end
  end
  return false
end

for i = 2, #ARGV, 7 do
  local key, id, cost, not_before = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local pool, own, blob = ARGV[i + 4], ARGV[i + 5], ARGV[i + 6]
  local b = bucket(key)
  if (away(b) or draining(b)) and redis.call('HEXISTS', b.j, id) == 0 then
    if away(b) then answer(0, 'moved', away(b), 0) else answer(0, 'draining', 0, 0) end
  elseif redis.call('HSETNX', b.j, id, blob) == 0 then
    local state, place, wait = whereabouts(b, id)
    answer(1, state, place, wait)
  else
    leak(b)
    if own ~= '' and own ~= b.own then
      b.own = own
      resolve(b)
      adopt(b)
      if b.backlog > 0 then arm(b, now) end
    end
    add(b, id, cost, not_before, pool)
  end
end
commit()
redis.call('SET', kept, cjson.encode(reply), 'PX', 20000)
return reply
