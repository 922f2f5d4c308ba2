-- Purpose: puts jobs into their buckets.
-- Guarantee: a job whose id or name is already in its bucket changes nothing, or
-- replaces the one that waits if it is to, and is answered for the job that is there.
-- Jobs of one key keep the order given. Bounds on what may wait are kept to exactly,
-- that of all shards together as far as the caller knows the others.
--
-- The same token gets the same reply, so a repeated call does not take jobs that have
-- ended meanwhile for new ones.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     token of the call
-- ARGV[2]     jobs that wait in the other shards, -1: not known
-- ARGV[3..]   groups of 8: key, id, cost, not before (µs of the server's clock, 0 = now),
--             pool, policy the job brings along (as stored, or ""), what else there is
--             to it ("" or "priority ttl deadline window scope repeat debounce most
--             name"), encoded job
-- Of what else there is, ttl (0: none), window, debounce and most (of a debounce) are in
-- µs, the deadline in µs of the server's clock (0: none). scope is w: its name counts
-- while it waits for its first attempt, or e: until it ends. repeat is what a job does
-- to the one that has its name: k(eep), r(eplace), or d(ebounce). name is "-" for none.
--
-- Reply: server time and shard's time in µs, then for each job 6: 0 new, 1 it was there
--        already, 2 it replaced one, 3 it displaced one; state; place in the line (0
--        outside it); cost ahead of it in millionths; µs until its slot or the end of its
--        delay (0: none); id of the job that was there or was displaced. Then for
--        each key, in the order of their first jobs, its outlook.
--        A job that was not taken has the state "draining"; "dropped" or "full", with the
--        number that waits as its place, the bound in millionths, and "*" for the id if
--        it is that of all shards; or "moved", with the shard where its key belongs.
--        Nothing but server time and shard's time: the number that waits in the other
--        shards is asked for.
-- Expiry: the reply is kept for 20 s, longer than a client repeats calls; a bucket
-- that waits to be forgotten is kept again.

local kept = SHARD .. 'reply:' .. ARGV[1]
local others = tonumber(ARGV[2])

local function with_outlooks(reply)
  local seen = {}
  for i = 3, #ARGV, 8 do
    local key = ARGV[i]
    if not seen[key] then
      seen[key] = true
      local b = bucket(key)
      reply[#reply + 1] = away(b) and '' or outlook(b)
    end
  end
  return reply
end

local earlier = redis.call('GET', kept)
if earlier then
  local reply = cjson.decode(earlier)
  reply[1], reply[2] = real, now
  return with_outlooks(reply)
end

local in_all = tonumber(redis.call('GET', SHARD .. 'most') or '')
local here = 0
if in_all then
  if others < 0 then return { real, now } end
  local n = redis.call('HMGET', SHARD .. 'stats', 'waiting', 'delayed')
  here = (finite(n[1]) or 0) + (finite(n[2]) or 0)
end

local reply = { 0, 0 }

local function answer(known, state, place, ahead, wait, id)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = known, state, place
  reply[n + 4], reply[n + 5], reply[n + 6] = math.floor(ahead * 1000000), wait, id
end

local function answer_for(known, b, id, r)
  local state, place, _, ahead, at = whereabouts(b, id, r)
  answer(known, state, place, ahead, math.max(0, at - now), id)
end

local MORE_ARGS = '^(%d) (%d+) (%d+) (%d+) (%l) (%l) (%d+) (%d+) (%S+)$'
local function more_of(text)
  local priority, ttl, deadline, window, scope, again, debounce, most, name = string.match(text, MORE_ARGS)
  if not priority then
    return { priority = 0, ttl = 0, deadline = 0, window = 0, scope = 'e', again = 'k', debounce = 0, most = 0, name = '-' }
  end
  return {
    priority = tonumber(priority), ttl = tonumber(ttl), deadline = tonumber(deadline), window = tonumber(window),
    scope = scope, again = again, debounce = tonumber(debounce), most = tonumber(most), name = name,
  }
end

-- Until when it may depart, for the first time and at all.
local function set_expiry(b, r, more)
  if more.deadline > 0 then r.deadline = math.max(1, more.deadline - real + now) end
  r.expires = r.deadline
  local ttl = more.ttl > 0 and more.ttl or b.more and b.more.ttl or 0
  if ttl > 0 and (r.expires == 0 or now + ttl < r.expires) then r.expires = now + ttl end
end

local function see_to_expiry(b, id, r)
  if r.expires == 0 then return end
  expire_at(b, id, r)
  local first = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
  if not first or r.expires < tonumber(first) then wake = true end
end

-- Puts a new job into its bucket.
local function add(b, id, cost, not_before, pool, more)
  b.seq = math.max(b.seq + 1, now)
  local r = fresh(b.seq, cost, pool)
  r.priority, r.window, r.name = more.priority, more.window, more.name
  r.place = place_of(b, r)
  set_expiry(b, r, more)
  if more.name ~= '-' then take_name(b, id, r, now) end
  if more.again == 'd' then not_before = math.max(not_before, real + more.debounce) end
  tally('enqueued', 1)
  here = here + 1
  if not_before > real then
    put_off_until(b, id, r, now + not_before - real)
  else
    if b.backlog == 0 then arm(b, now) end
    line_up(b, id, r)
    if cost ~= 1 or pool ~= DEFAULT_POOL or special(r) then put(b, id, r) end
  end
  see_to_expiry(b, id, r)
  return r
end

-- Has a newer job take the place of one that waits.
local function replace(b, id, r, cost, pool, more, since, blob)
  redis.call('HSET', b.j, id, blob)
  if r.state == 'w' then b.backlog = math.max(0, b.backlog - r.cost + cost) end
  r.cost, r.pool, r.window, r.deadline = cost, pool, more.window, 0
  b.stir = true
  if r.name == '-' and more.name ~= '-' then
    r.name = more.name
    take_name(b, id, r, since or r.seq)
  end
  set_expiry(b, r, more)
  redis.call('ZREM', SHARD .. 'expiry', ref(b.key, id))
  if more.again == 'd' then
    local at = now + more.debounce
    if more.most > 0 then at = math.max(now, math.min(at, (since or r.seq) + more.most)) end
    take_out(b, id, r)
    put_off_until(b, id, r, at)
  else
    put(b, id, r)
  end
  see_to_expiry(b, id, r)
  tally('replaced', 1)
end

local function draining(b)
  for _, x in ipairs(chain(b)) do
    if x.draining then return true end
  end
  return false
end

-- The job that a new one repeats, if there is one: its id, its record (nil once it is
-- done), and since when it has its name.
local function original(b, id, more)
  if redis.call('HEXISTS', b.j, id) == 1 then
    local _, since = holder(b.key, more.name)
    return id, record(b, id), since
  end
  local own = 'i:' .. id
  for _, name in ipairs(more.name ~= '-' and more.name ~= own and { own, more.name } or { own }) do
    local first, since, done = holder(b.key, name)
    if first then
      local stored = redis.call('HEXISTS', b.j, first) == 1
      local r = stored and record(b, first)
      local begun = r and (r.state == 'r' or r.state == 'g' or r.attempt > 0)
      local lost = not stored and not done -- whoever had it was damaged
      if not lost and not (more.scope == 'w' and (begun or not stored)) then return first, r, since end
    end
  end
  return nil
end

local function waits(r) return r and (r.state == 'w' or r.state == 'd') and r.attempt == 0 end

local LOOKED_AT = 64 -- jobs at the front of the line among which one is displaced

-- Lets the oldest job go of those that are not more urgent than a new one and had no
-- attempt. Nil if there is none.
local function displace(b, priority)
  local oldest, its
  local ids = redis.call('ZRANGE', b.w, 0, LOOKED_AT - 1)
  if #ids == 0 then ids = redis.call('ZRANGE', b.d, 0, LOOKED_AT - 1) end
  for _, id in ipairs(ids) do
    local r = record(b, id)
    if r.attempt == 0 and id ~= b.head and r.priority <= priority
      and (not its or r.priority < its.priority or r.priority == its.priority and r.seq < its.seq) then
      oldest, its = id, r
    end
  end
  if not oldest then return nil end
  take_out(b, oldest, its)
  forget(b, oldest, its)
  tally('displaced', 1)
  here = here - 1
  return oldest
end

-- Whether there is room for one more job: nil, or what becomes of it, what there is,
-- and the bound.
local function bound_reached(b)
  if in_all and here + others >= in_all then return 'full', here + others, in_all, '*' end
  local most = b.more and b.more.most
  if not most then return nil end
  local n = redis.call('ZCARD', b.w) + redis.call('ZCARD', b.d)
  if n < most[1] then return nil end
  if most[2] == 'o' then return 'displace', n, most[1], '' end
  return most[2] == 'n' and 'dropped' or 'full', n, most[1], ''
end

local function take(b, id, cost, not_before, pool, more, blob)
  local first, r, since = original(b, id, more)
  if first then
    if more.again ~= 'k' and waits(r) then
      replace(b, first, r, cost, pool, more, since, blob)
      return answer_for(2, b, first, r)
    end
    if r then return answer_for(1, b, first, r) end
    return answer(1, 'done', 0, 0, 0, first)
  end
  local what, n, bound, whose = bound_reached(b)
  local displaced = what == 'displace' and displace(b, more.priority)
  if what and not displaced then
    if what == 'displace' then what = 'full' end
    tally(what == 'full' and 'refused' or 'dropped', 1)
    return answer(0, what, n, bound, 0, whose)
  end
  redis.call('HSET', b.j, id, blob)
  r = add(b, id, cost, not_before, pool, more)
  local how = displaced and 3 or 0
  if r.state == 'w' and r.place == r.seq then -- it is the last of the line
    answer(how, 'waiting', redis.call('ZCARD', b.w), b.backlog - cost, 0, id)
  else
    answer_for(how, b, id, r)
  end
  if displaced then reply[#reply] = displaced end
end

for i = 3, #ARGV, 8 do
  local key, id, cost, not_before = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local pool, own, more, blob = ARGV[i + 4], ARGV[i + 5], more_of(ARGV[i + 6]), ARGV[i + 7]
  local b = bucket(key)
  leak(b)
  if away(b) and (more.again ~= 'k' or redis.call('HEXISTS', b.j, id) == 0) then
    answer(0, 'moved', away(b), 0, 0, '')
  elseif draining(b) and redis.call('HEXISTS', b.j, id) == 0 then
    answer(0, 'draining', 0, 0, 0, '')
  else
    if own ~= '' and own ~= b.own and redis.call('HEXISTS', b.j, id) == 0 then
      b.own = own
      resolve(b)
      adopt(b)
      if b.backlog > 0 then arm(b, now) end
    end
    take(b, id, cost, not_before, pool, more, blob)
  end
end
commit()
redis.call('SET', kept, cjson.encode(reply), 'PX', 20000)
reply[1], reply[2] = real, now
return with_outlooks(reply)
