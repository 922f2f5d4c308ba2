-- Records of jobs, and the moves that several scripts make with them.
--
-- "state cost seq attempt release run token slot round pool", where state is
-- w(aiting), d(elayed), r(eleased) or g(oing); seq is the instant of its enqueueing,
-- made to grow; release is the ms of the job's last release, made to grow, and run
-- counts its departures: together they fence off whoever held it before, an earlier
-- job of the same id included. Then, unless all of it is as usual,
-- "place priority expires deadline window refused marks name":
--   place      in the line, if it is not seq: see place_of
--   expires    instant after which it does not depart, 0: none; the deadline once it has
--   window     µs for which its name is kept when it is done
--   refused    instant since which its calls are refused and no attempts, 0: they are not
--   marks      of "-", f: forced past the limit, l: the attempt that runs is the last,
--              h: it has a log of attempts
--   name       see names.lua
--
-- The attempts of a job are lines of "attempt slot end outcome reason", both instants
-- of the server's clock, the last LOGGED of them.

local DEFAULT_POOL = 'weir'
local RECORD = '^([wdrg]) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%d+) (%S+) (%S+)(.*)$'
local MORE = '^ (%d+) (%d) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+)$'
local AGEING = 60000000
local LOGGED = 20

local function fresh(seq, cost, pool)
  return {
    state = 'w', cost = cost or 1, seq = seq, attempt = 0, release = 0, run = 0,
    token = '-', slot = 0, round = '-', pool = pool or DEFAULT_POOL,
    place = seq, priority = 0, expires = 0, deadline = 0, window = 0, refused = 0, marks = '-', name = '-',
  }
end

local function parse(text)
  local state, cost, seq, attempt, release, run, token, slot, round, pool, more = string.match(text or '', RECORD)
  if not state then return nil end
  local r = fresh(tonumber(seq), tonumber(cost), pool)
  r.state, r.attempt, r.release, r.run = state, tonumber(attempt), tonumber(release), tonumber(run)
  r.token, r.slot, r.round = token, tonumber(slot), round
  if more ~= '' then
    local place, priority, expires, deadline, window, refused, marks, name = string.match(more, MORE)
    if place then
      r.place, r.priority, r.expires = tonumber(place), tonumber(priority), tonumber(expires)
      r.deadline, r.window, r.refused = tonumber(deadline), tonumber(window), tonumber(refused)
      r.marks, r.name = marks, name
    end
  end
  return r
end

-- Whether there is more to a record than its first fields.
local function special(r)
  return r.place ~= r.seq or r.priority > 0 or r.expires > 0 or r.deadline > 0 or r.refused > 0 or r.marks ~= '-' or r.name ~= '-'
end

local function encode(r)
  local text = string.format('%s %.0f %.0f %.0f %.0f %.0f %s %.0f %s %s',
    r.state, r.cost, r.seq, r.attempt, r.release, r.run, r.token, r.slot, r.round, r.pool)
  if not special(r) then return text end
  return text .. string.format(' %.0f %.0f %.0f %.0f %.0f %.0f %s %s',
    r.place, r.priority, r.expires, r.deadline, r.window, r.refused, r.marks, r.name)
end

local function put(b, id, r) redis.call('HSET', b.s, id, encode(r)) end

-- The record of a job that is stored; it has none as long as nothing is out of the
-- ordinary.
local function record(b, id)
  return parse(redis.call('HGET', b.s, id)) or fresh(tonumber(redis.call('ZSCORE', b.w, id) or b.seq))
end

local function marked(r, mark) return string.find(r.marks, mark, 1, true) ~= nil end
local function mark(r, mark)
  if not marked(r, mark) then r.marks = r.marks .. mark end
end

-- Its place in the line: a job of a priority stands where it would if it had waited
-- longer by so many times the key's ageing. So no job is overtaken by those that come
-- more than that after it.
local function place_of(b, r)
  return r.seq - r.priority * (b.more and b.more.age or AGEING)
end

local function expire_at(b, id, r)
  if r.expires > 0 then
    redis.call('ZADD', SHARD .. 'expiry', int(r.expires), ref(b.key, id))
  end
end

-- Takes a job out of flight. The caller decides what becomes of it.
local function land(b, id, r)
  b.flight = b.flight - redis.call('ZREM', b.f, id)
  if r.state == 'r' then
    b.out = math.max(0, b.out - r.cost)
    if b.up then count_below(b, -r.cost) end
  end
  if b.flight == 0 then b.out = 0 end
  redis.call('ZREM', SHARD .. 'lease', ref(b.key, id))
end

-- Puts a job into the line at its place.
local function line_up(b, id, r)
  r.state = 'w'
  if redis.call('ZADD', b.w, int(r.place), id) == 1 then
    b.backlog = b.backlog + r.cost
    tally('waiting', 1)
    if r.place < b.seq then b.stir = true end -- it may be the first now
  end
end

-- Gives a job back its old place in the line.
local function rejoin(b, id, r)
  r.token, r.slot, r.round = '-', 0, '-'
  r.marks = string.gsub(r.marks, 'f', '')
  line_up(b, id, r)
  put(b, id, r)
  expire_at(b, id, r)
end

-- Has a job join the line at an instant.
local function put_off_until(b, id, r, at)
  r.state, r.token, r.slot, r.round = 'd', '-', 0, '-'
  if redis.call('ZADD', b.d, int(at), id) == 1 then tally('delayed', 1) end
  put(b, id, r)
  expire_at(b, id, r)
  arm(b, at)
end

-- Takes a job out of the line or out of its delay; false if it is in neither.
local function take_out(b, id, r)
  if redis.call('ZREM', b.w, id) == 1 then
    b.backlog = math.max(0, b.backlog - r.cost)
    tally('waiting', -1)
    b.stir = true -- another may be the first now
    return true
  end
  local delayed = redis.call('ZREM', b.d, id)
  tally('delayed', -delayed)
  return delayed == 1
end

-- Writes down how an attempt ended. The caller stores the record.
local function log_attempt(b, id, r, outcome, reason)
  local line = int(r.attempt) .. ' ' .. int(r.slot + real - now) .. ' ' .. int(real) .. ' ' .. outcome .. ' '
    .. string.gsub(reason, '\n', ' ')
  local log = redis.call('HGET', b.a, id)
  if log then
    line = log .. '\n' .. line
    local _, breaks = string.gsub(line, '\n', '')
    if breaks >= LOGGED then line = string.gsub(line, '^[^\n]*\n', '', 1) end
  end
  redis.call('HSET', b.a, id, line)
  mark(r, 'h')
end

-- Removes a job that is neither in the line nor in flight any more.
local function forget(b, id, r, done)
  redis.call('HDEL', b.j, id)
  redis.call('HDEL', b.s, id)
  if marked(r, 'h') then redis.call('HDEL', b.a, id) end
  if r.expires > 0 then redis.call('ZREM', SHARD .. 'expiry', ref(b.key, id)) end
  if r.name ~= '-' then free_name(b, id, r, done) end
  if b.head == id then
    b.head = ''
    arm(b, now) -- whoever it held up may go
  end
end

-- Keeps a job that is dead or done, and forgets it among those that are not.
local function bury(b, id, r, what, reason)
  local name = ref(b.key, id)
  redis.call('ZREM', SHARD .. (what == 'dead' and 'done' or 'dead'), name)
  redis.call('ZADD', SHARD .. what, int(what == 'dead' and now or now + b.more.keep), name)
  redis.call('ZADD', SHARD .. 'x:' .. b.key, int(now), id)
  redis.call('HSET', SHARD .. 'ended:job', name, redis.call('HGET', b.j, id) or '')
  redis.call('HSET', SHARD .. 'ended:why', name, what .. ' ' .. int(r.attempt) .. ' ' .. int(r.cost) .. ' '
    .. int(r.priority) .. ' ' .. r.pool .. ' ' .. reason)
  local log = redis.call('HGET', b.a, id)
  if log then
    redis.call('HSET', SHARD .. 'ended:log', name, log)
  else
    redis.call('HDEL', SHARD .. 'ended:log', name)
  end
  forget(b, id, r, what == 'done')
end

-- Removes what is kept of a job that ended; false if there is nothing.
local function unbury(key, id)
  local name = ref(key, id)
  redis.call('ZREM', SHARD .. 'x:' .. key, id)
  redis.call('HDEL', SHARD .. 'ended:job', name)
  redis.call('HDEL', SHARD .. 'ended:log', name)
  return redis.call('ZREM', SHARD .. 'dead', name) + redis.call('ZREM', SHARD .. 'done', name)
    + redis.call('HDEL', SHARD .. 'ended:why', name) > 0
end

-- Where a job stands: its state, its position in the line (0 outside it), the jobs and
-- the cost that leave before it, and the instant of its slot or of the end of its delay.
local function whereabouts(b, id, r)
  if r.state == 'r' then return 'released', 0, 0, 0, 0 end
  if r.state == 'g' then return 'running', 0, 0, 0, r.slot end
  local line = redis.call('ZCARD', b.w)
  if r.state == 'd' then
    return 'delayed', 0, line, b.backlog, tonumber(redis.call('ZSCORE', b.d, id) or '') or now
  end
  local rank = redis.call('ZRANK', b.w, id) or 0
  return 'waiting', rank + 1, rank, rank * (b.backlog - r.cost) / math.max(1, line - 1), 0
end
