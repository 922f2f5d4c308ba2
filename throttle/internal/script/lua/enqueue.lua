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
--             pool, policy the job brings along ("rate period burst max" or ""), encoded job
-- Reply: server time in µs, then for each job: 1 if it was there already or 0,
--        state, place in the line (0 outside it), wait in µs until it leaves
-- Expiry: the reply is kept for 20 s, longer than a client repeats calls; a bucket
-- that waits to be forgotten is kept again.

local kept = SHARD .. 'reply:' .. ARGV[1]
local earlier = redis.call('GET', kept)
if earlier then return cjson.decode(earlier) end

local reply = { real }
for i = 2, #ARGV, 7 do
  local key, id, cost, not_before = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local pool, own, blob = ARGV[i + 4], ARGV[i + 5], ARGV[i + 6]
  local b = bucket(key)
  local known = redis.call('HSETNX', b.j, id, blob) == 0
  if not known then
    leak(b)
    if own ~= '' and own ~= b.own then
      b.own = own
      resolve(b)
      if b.backlog > 0 then arm(b, now) end
    end
    if redis.call('HLEN', b.j) == 1 then redis.call('PERSIST', SHARD .. 'b:' .. key) end
    b.seq = b.seq + 1
    local r = fresh(b.seq, cost, pool)
    if not_before > real then
      r.state = 'd'
      redis.call('ZADD', b.d, int(now + not_before - real), id)
      put(b, id, r)
      arm(b, now + not_before - real)
    else
      if redis.call('ZADD', b.w, int(b.seq), id) == 1 and b.backlog == 0 then arm(b, now) end
      if cost ~= 1 or pool ~= DEFAULT_POOL then put(b, id, r) end
      local wait = wait_for(b, b.level + b.out + b.backlog, cost)
      b.backlog = b.backlog + cost
      reply[#reply + 1] = 0
      reply[#reply + 1] = 'waiting'
      reply[#reply + 1] = redis.call('ZCARD', b.w)
      reply[#reply + 1] = wait
    end
  end
  if known or not_before > real then
    local state, place, wait = whereabouts(b, id)
    reply[#reply + 1] = known and 1 or 0
    reply[#reply + 1] = state
    reply[#reply + 1] = place
    reply[#reply + 1] = wait
  end
end
commit()
redis.call('SET', kept, cjson.encode(reply), 'PX', 20000)
return reply
