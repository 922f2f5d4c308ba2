-- Purpose: does something to jobs that have not ended: cancels them, moves them to the
-- front of their lines, changes their priority, or has them leave past the limit.
-- Guarantee: each job is dealt with as a whole or not at all. A job that leaves past
-- the limit is charged for as every other, so those behind it wait for that.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     lead, µs
-- ARGV[2]     what: "cancel", "front", "priority" or "release"
-- ARGV[3]     priority
-- ARGV[4]     who: for the audit trail, in which only a release is written
-- ARGV[5]     1 if jobs are meant that are on their way to another shard, else 0
-- ARGV[6..]   groups of 2: key, id
-- Reply: for each job 2: shard where its key belongs; state in which it was, "" if
--        there is no such job here

go_on_when_full()
lead = tonumber(ARGV[1])
local what, priority, who = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local STATES = { w = 'waiting', d = 'delayed', r = 'released', g = 'running' }

local function cancel(b, id, r)
  if r.state == 'g' then
    mark(r, 'l') -- nobody can take back a call: there will be no other
    put(b, id, r)
    return
  end
  if not take_out(b, id, r) then land(b, id, r) end
  forget(b, id, r)
  tally('cancelled', 1)
end

local function place(b, id, r, at)
  r.place = at
  if redis.call('ZSCORE', b.w, id) then redis.call('ZADD', b.w, int(at), id) end
  put(b, id, r)
end

local function front(b, id, r)
  local first = redis.call('ZRANGE', b.w, 0, 0, 'WITHSCORES')
  if first[1] and first[1] ~= id then place(b, id, r, math.min(r.place, tonumber(first[2])) - 1) end
end

local function release(b, id, r)
  redis.call('ZADD', SHARD .. 'forced', int(now), ref(b.key, id))
  trail(who, 'release', b.key, '', id)
  wake = true
end

local reply = {}
for i = 6, #ARGV, 2 do
  local b, id = bucket(ARGV[i]), ARGV[i + 1]
  local state = ''
  local r = redis.call('HEXISTS', b.j, id) == 1 and record(b, id)
  local moving = r and (r.state == 'w' or r.state == 'd') and away(b)
  if r and (not moving or ARGV[5] == '1') then
    state = STATES[r.state]
    if what == 'cancel' then
      cancel(b, id, r)
    elseif r.state == 'w' or r.state == 'd' then
      if what == 'front' then
        front(b, id, r)
      elseif what == 'priority' then
        r.priority = priority
        place(b, id, r, place_of(b, r))
      else
        release(b, id, r)
      end
    end
  end
  reply[#reply + 1], reply[#reply + 2] = away(b) or THIS, state
end
rearm_all()
commit()
return reply
