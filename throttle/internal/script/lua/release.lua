-- Purpose: takes the jobs whose slot is near out of the buckets that are due.
-- Guarantee: a job is released once; the cost outside a bucket stays within
-- lead × rate + burst whatever the workers do, and so it does for each parent. The
-- same token gets the same reply.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     lead: how long before its slot a job is released, µs
-- ARGV[2]     lease of a released job, µs
-- ARGV[3]     most jobs to release
-- ARGV[4]     name of the round, kept with each job to ask for its parcel
-- ARGV[5]     scheduler
-- ARGV[6]     token of the call
-- ARGV[7]     most bytes of payloads of expired jobs to reply, 0 for none
-- Reply: µs until the next bucket is due (-1: none), µs until the next lease ends (-1:
--        none), keys that belong to another shard, number of jobs that expired; for each
--        of those: key, id, encoded job ("" if none is asked for); then for each job released: key, id, release
--        number, pool
-- Expiry: the reply is kept for a minute.

lead = tonumber(ARGV[1])
local lease, budget = tonumber(ARGV[2]), tonumber(ARGV[3])
local round, kept, token = ARGV[4], SHARD .. 'reply:' .. ARGV[5], ARGV[6]
local CHUNK = 64
local MOST_EXPIRED, MOST_FORCED = 64, 16 -- a call
local steps = 160 -- that a call takes through families, whether or not they release a job

local earlier = redis.call('GET', kept)
if earlier and string.sub(earlier, 1, #token + 1) == token .. ' ' then
  return cjson.decode(string.sub(earlier, #token + 2))
end

go_on_when_full()
local reply = { -1, -1, 0, 0 }

-- After a change of rules every bucket is due, a page of them a call.
local cursor = redis.call('GET', SHARD .. 'sweep')
if cursor then
  if not string.find(cursor, '^%d+$') then cursor = '0' end
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
    local r = record(b, id)
    take_out(b, id, r)
    rejoin(b, id, r)
  end
end

-- Moves the first n of these jobs into flight.
local function hand_out(b, ids, records, n)
  if b.out == 0 then b.since = now end
  local states, leases, flight, names = {}, {}, {}, {}
  for i = 1, n do
    local id, r = ids[2 * i - 1], records[i]
    r.state, r.release, r.round = 'r', math.max(r.release + 1, math.floor(now / 1000)), round
    b.out, b.flight, b.backlog = b.out + r.cost, b.flight + 1, b.backlog - r.cost
    if b.up then count_below(b, r.cost) end
    names[i] = id
    states[#states + 1], states[#states + 2] = id, encode(r)
    leases[#leases + 1], leases[#leases + 2] = int(now + lease), ref(b.key, id)
    flight[#flight + 1], flight[#flight + 2] = int(now), id
    reply[#reply + 1] = b.key
    reply[#reply + 1] = id
    reply[#reply + 1] = r.release
    reply[#reply + 1] = r.pool
  end
  redis.call('ZREM', b.w, unpack(names))
  tally('waiting', -n)
  if b.ordered and b.head == '' then b.head = names[1] end
  redis.call('HSET', b.s, unpack(states))
  redis.call('ZADD', SHARD .. 'lease', unpack(leases))
  redis.call('ZADD', b.f, unpack(flight))
  budget = budget - n
end

-- The first jobs of the line with their records. In an ordered one, whoever has begun
-- goes on until it has ended.
local function head(b, want)
  local ids = want > 0 and redis.call('ZRANGE', b.w, 0, want - 1, 'WITHSCORES') or {}
  if b.ordered and b.head ~= '' and want > 0 then
    local place = redis.call('ZSCORE', b.w, b.head)
    if place then
      ids = { b.head, place }
    elseif redis.call('HEXISTS', b.j, b.head) == 1 then
      ids = {}
    else
      b.head = ''
    end
  end
  local names, records = {}, {}
  for i = 1, #ids, 2 do names[#names + 1] = ids[i] end
  if #names == 0 then return ids, records end
  for i, text in ipairs(redis.call('HMGET', b.s, unpack(names))) do
    records[i] = parse(text) or fresh(tonumber(ids[2 * i]))
  end
  return ids, records
end

-- Releases what is near its slot and returns the instant of the next look, FAR when
-- depart, finish, enqueue or a change of rules will arm the bucket again.
local function drain(b)
  local ids, records = head(b, math.min(budget, b.max - b.flight, CHUNK))
  local out, wait, n = b.out + b.below, 0, 0
  for i, r in ipairs(records) do
    wait = open_at(b, now, b.level + out, out, r.cost) - now
    if wait > lead then break end
    out = out + r.cost
    n = i
  end
  if n > 0 then hand_out(b, ids, records, n) end

  if redis.call('ZCARD', b.w) == 0 then
    b.backlog = 0
    return FAR
  end
  if b.flight >= b.max or #records == 0 then return FAR end
  if n == #records then return now end
  if n == 0 then return next_look(b, wait, records[1].cost) end
  return look_at(wait)
end

-- Has a member of a family wait for its parent's turn, once its own limits let it go.
-- Returns the instant of the next look, and adds the root to those to serve.
local roots = {}
local function offer(b)
  local children = has_children(b)
  local _, records = head(b, math.min(1, b.max - b.flight))
  if redis.call('ZCARD', b.w) == 0 then b.backlog = 0 end
  if records[1] and (children or not b.up) then
    join(b, '', b)
    children = true
  end
  if not b.up then
    if children then roots[#roots + 1] = b end
    return FAR
  end
  if not children and not records[1] then return FAR end
  local cost = children and 1 or records[1].cost
  local wait, parent = room(b, cost), chain(b)[2]
  if not parent then return FAR end
  local ahead = ahead_of(b.chain[#b.chain])
  if wait > ahead then return family_look(b, wait, cost, ahead) end
  join(parent, b.key, b)
  for i = 2, #b.chain - 1 do join(b.chain[i + 1], b.chain[i].key, b.chain[i]) end
  roots[#roots + 1] = b.chain[#b.chain]
  return FAR
end

-- Takes one out of its parent's ready set until at.
local function put_off(path, names, level, b, at)
  drop(path[level], names[level])
  local delayed = redis.call('ZRANGE', b.d, 0, 0, 'WITHSCORES')
  redis.call('ZADD', DUE, int(math.min(at, tonumber(delayed[2] or FAR))), b.key)
end

-- Nobody looked at a bucket for long: a ramp begins anew, for what leaves below it too.
local overdue = {}
local function after_outage(b)
  overdue[b] = true
  if b.more and b.more.ramp and (has_children(b) or redis.call('ZCARD', b.w) > 0) then
    b.kin, b.outage = true, now
    adopt(b)
  end
end

-- Takes out what may not go below this root by then, from the top down: what is
-- further off than a lead until it is near, the rest for a while. True if there was
-- nothing to take out.
local function all_ready(path, names, cost, by)
  for i = 2, #path do
    local wait = room(path[i], cost)
    if wait > lead then
      put_off(path, names, i - 1, path[i], family_look(path[i], wait, cost, lead))
      return false
    elseif wait > by then
      set_aside(path[i - 1], names[i - 1], wait)
      return false
    end
  end
  return true
end

-- Takes out a bucket that has no job to release. Children of it that were set aside
-- may have some yet.
local function leave(path, names, b)
  local later = first_aside(b)
  if names[#path] == '' then
    drop(b, '')
  elseif later then
    set_aside(path[#path - 1], names[#path - 1], later)
  else
    put_off(path, names, #path - 1, b, FAR)
  end
end

-- Those that were set aside come back by their own time, so that the next call gets
-- further than this one.
local function make_room()
  for _, x in ipairs(aside) do
    if x.name ~= '' then
      redis.call('ZADD', DUE, int(family_look(bucket(x.name), math.max(x.wait, lead), 1, lead * NEAR)), x.name)
    end
  end
end

-- Releases the jobs below a root in their turn and returns the instant of the next
-- look at it. Whoever is ready by the time the root is goes by its tag; only if
-- nobody is, the root waits for the one that is ready first. A slot further off than
-- the root's would keep it idle.
local function serve(root)
  local near, soonest, look = lead * NEAR, 0, now
  aside, soonest_aside = {}, FAR
  if redis.call('ZCARD', root.w) > 0 and root.flight < root.max then join(root, '', root) end
  while budget > 0 and steps > 0 do
    steps = steps - 1
    local path, names, lowest, b = descend(root)
    if not path then
      local first = first_aside(nil)
      look = FAR
      if not first then break end
      if first > near then
        local grid = math.max(1, math.floor(lead / 10))
        look = math.floor((now + first - near / 4) / grid) * grid
        break
      end
      soonest = first
      restore(first)
      look = now
    else
      local ids, records = head(b, math.min(1, b.max - b.flight))
      local r = records[1]
      local wait = r and room(root, r.cost)
      if not r then
        leave(path, names, b)
      elseif wait > lead then
        look = next_look(root, wait, r.cost)
        break
      elseif all_ready(path, names, r.cost, math.max(wait, soonest)) then
        if overdue[root] then
          for _, x in ipairs(path) do
            if not overdue[x] then after_outage(x) end
          end
        end
        for _, x in ipairs(path) do wait = math.max(wait, room(x, r.cost)) end
        for _, x in ipairs(path) do book(x, wait, r.cost) end
        hand_out(b, ids, records, 1)
        for i = 1, #path do
          if names[i] then advance(path[i], names[i], path[i + 1], lowest[i], r.cost) end
        end
        soonest = 0
        restore(room(root, 1))
      end
    end
  end
  if steps == 0 then make_room() else restore(FAR) end
  return look
end

-- The job that an entry of a set of this shard names, if it waits.
local function waiting_job(name)
  local id, key = string.match(name, '^(%S+) (.*)$')
  local b = bucket(key or '')
  id = id or ''
  local r = redis.call('HEXISTS', b.j, id) == 1 and record(b, id)
  -- One on its way to another shard is dealt with there.
  if r and (r.state == 'w' or r.state == 'd') and not away(b) then return b, id, r end
end

-- Jobs that waited too long end. One that has begun is kept as a dead letter.
local expired = redis.call('ZRANGEBYSCORE', SHARD .. 'expiry', '-inf', int(now), 'LIMIT', 0, MOST_EXPIRED)
local room_for_payloads = tonumber(ARGV[7])
local with_payloads = room_for_payloads > 0
for _, name in ipairs(expired) do
  if with_payloads and room_for_payloads <= 0 then break end
  redis.call('ZREM', SHARD .. 'expiry', name)
  local b, id, r = waiting_job(name)
  if b and r.expires > now then
    expire_at(b, id, r)
  elseif b and r.expires > 0 then
    take_out(b, id, r)
    if r.attempt > 0 then
      bury(b, id, r, 'dead', 'its deadline passed after ' .. int(r.attempt) .. ' attempts')
      tally('dead', 1)
      if b.more and b.more.ev then event(b.key, 'dead', id, r.attempt, 'its deadline passed') end
    else
      reply[4] = reply[4] + 1
      local blob = with_payloads and redis.call('HGET', b.j, id) or ''
      room_for_payloads = room_for_payloads - #blob
      reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = b.key, id, blob
      forget(b, id, r)
      tally('expired', 1)
      if b.more and b.more.ev then event(b.key, 'expired', id, r.attempt, '') end
    end
  end
end

-- What an operator has leave whatever the limits say.
for _, name in ipairs(redis.call('ZRANGE', SHARD .. 'forced', 0, MOST_FORCED - 1)) do
  redis.call('ZREM', SHARD .. 'forced', name)
  local b, id, r = waiting_job(name)
  if b then
    leak(b)
    take_out(b, id, r)
    mark(r, 'f')
    b.backlog = b.backlog + r.cost
    hand_out(b, { id, r.place }, { r }, 1)
    tally('waiting', 1)
  end
end

local due = redis.call('ZRANGEBYSCORE', DUE, '-inf', int(now), 'LIMIT', 0, 96, 'WITHSCORES')
for i = 1, #due, 2 do
  if budget <= 0 then break end
  local key, at = due[i], tonumber(due[i + 1])
  local b = bucket(key)
  leak(b)
  if at < now - OUTAGE then after_outage(b) end
  if away(b) then
    if redis.call('ZCARD', b.w) + redis.call('ZCARD', b.d) > 0 then redis.call('SADD', SHARD .. 'moving', key) end
    at = FAR
  else
    promote(b)
    if b.up or has_children(b) then at = offer(b) else at = drain(b) end
    local delayed = redis.call('ZRANGE', b.d, 0, 0, 'WITHSCORES')
    if delayed[2] then at = math.min(at, tonumber(delayed[2])) end
  end
  redis.call('ZADD', DUE, int(at), key)
  b.stir = nil
end
local served = {}
for _, root in ipairs(roots) do
  if not served[root] then
    served[root] = true
    leak(root)
    local at = serve(root)
    local delayed = redis.call('ZRANGE', root.d, 0, 0, 'WITHSCORES')
    redis.call('ZADD', DUE, int(math.min(at, tonumber(delayed[2] or FAR))), root.key)
  end
end
commit()

local function sooner(name)
  local wait = time_to_first(name)
  if wait >= 0 and (reply[1] < 0 or wait < reply[1]) then reply[1] = wait end
end
reply[1], reply[2] = time_to_first(DUE), time_to_first(SHARD .. 'lease')
sooner(SHARD .. 'expiry')
if redis.call('EXISTS', SHARD .. 'forced') == 1 then reply[1] = 0 end
if redis.call('EXISTS', SHARD .. 'sweep') == 1 then reply[1] = 0 end
if rules().shards > 0 then reply[3] = redis.call('SCARD', SHARD .. 'moving') end
if #reply > 4 then
  redis.call('SET', kept, token .. ' ' .. cjson.encode(reply), 'PX', 60000)
end
return reply
