-- Purpose: puts jobs that ended back into their buckets, or discards them.
-- Guarantee: a revived job leaves through its bucket like everything else, its attempts
-- counted anew. One whose id is there again is left among the dead.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     "replay" or "discard"
-- ARGV[2..]   groups of 2: key, id
-- Reply: for each job 1; 0 if there is no such job; 2 if another has its id; 3 if its
--        key takes no new jobs

if ARGV[1] == 'discard' then go_on_when_full() end
local reply = {}

local function replay(key, id)
  local name = ref(key, id)
  local _, _, cost, priority, pool = string.match(redis.call('HGET', SHARD .. 'ended:why', name) or '',
    '^(%l+) (%d+) (%d+) (%d+) (%S+) ')
  local b = bucket(key)
  leak(b)
  local blob = redis.call('HGET', SHARD .. 'ended:job', name)
  if not cost or not blob then return 0 end
  for _, x in ipairs(chain(b)) do
    if x.draining then return 3 end
  end
  if redis.call('HSETNX', b.j, id, blob) == 0 then return 2 end
  b.seq = math.max(b.seq + 1, now)
  local r = fresh(b.seq, tonumber(cost), pool)
  r.priority = tonumber(priority)
  r.place = place_of(b, r)
  local log = redis.call('HGET', SHARD .. 'ended:log', name)
  if log then
    redis.call('HSET', b.a, id, log)
    mark(r, 'h')
  end
  unbury(key, id)
  if b.backlog == 0 then arm(b, now) end
  line_up(b, id, r)
  put(b, id, r)
  tally('replayed', 1)
  return 1
end

for i = 2, #ARGV, 2 do
  local key, id = ARGV[i], ARGV[i + 1]
  if ARGV[1] == 'replay' then
    reply[#reply + 1] = replay(key, id)
  else
    reply[#reply + 1] = unbury(key, id) and 1 or 0
    tally('discarded', reply[#reply])
  end
end
commit()
return reply
