-- Purpose: ends the run of jobs: for good, until a retry, or back into the line.
-- Guarantee: only whoever holds a job under the given numbers ends its run, once.
-- A retry leaves through the bucket like everything else. What a run truly cost is
-- settled with the bucket and its parents.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     lead, µs
-- ARGV[2..]   groups of 8: key, id, release number, run number (0: released, never
--             departed), what becomes of it ("done", "retry", "dead" or "return"),
--             delay of a retry in µs, reason of a death, what the run cost (-1: what
--             it was charged)
-- Reply: for each job 1, or 0 if it was not held

go_on_when_full()
lead = tonumber(ARGV[1])
local reply = {}

for i = 2, #ARGV, 8 do
  local key, id, release, run = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local what, delay, reason, cost = ARGV[i + 4], tonumber(ARGV[i + 5]), ARGV[i + 6], tonumber(ARGV[i + 7])
  local b = bucket(key)
  local r = parse(redis.call('HGET', b.s, id))
  local state = run == 0 and 'r' or 'g'
  if r and r.state == state and r.release == release and (run == 0 or r.run == run) then
    land(b, id, r)
    if cost >= 0 and run > 0 then settle(b, r, cost) end
    if what == 'done' then
      forget(b, id)
    elseif what == 'dead' then
      bury(b, id, r, reason)
    elseif what == 'retry' then
      r.state, r.token, r.slot, r.round = 'd', '-', 0, '-'
      redis.call('ZADD', b.d, int(now + delay), id)
      put(b, id, r)
      arm(b, now + delay)
    else
      if r.state == 'g' then r.attempt = math.max(0, r.attempt - 1) end
      rejoin(b, id, r)
    end
    reply[#reply + 1] = 1
  else
    reply[#reply + 1] = 0
  end
end
rearm_all()
commit()
return reply
