-- Purpose: ends the run of jobs: for good, until a retry, or back into the line.
-- Guarantee: only whoever holds a job under the given numbers ends its run, once.
-- A retry leaves through the bucket like everything else. What a run truly cost is
-- settled with the bucket and its parents.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     lead, µs
-- ARGV[2..]   groups of 10: key, id, release number, run number (0: released, never
--             departed), what becomes of it ("done", "retry", "dead", "refused", "refused_last" if
--             no attempt may follow it should it count as one, or "return"),
--             delay of a retry in µs, why it failed, what the run cost (-1: what
--             it was charged), how the call fared ("ok", "failed", "refused" or "": not told),
--             how long the key should rest in µs (0: not told)
-- Reply: for each job 1, or 0 if it was not held

go_on_when_full()

-- A job that was refused goes back to its place and has not tried: for a day at most, and if the policy
-- listens at all.
local function tries(b, r)
  return b.more and b.more.say == 'x' or r.refused > 0 and now - r.refused > 86400000000
end

lead = tonumber(ARGV[1])
local reply = {}

for i = 2, #ARGV, 10 do
  local key, id, release, run = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local what, delay, reason, cost = ARGV[i + 4], tonumber(ARGV[i + 5]), ARGV[i + 6], tonumber(ARGV[i + 7])
  local verdict, rest = ARGV[i + 8], tonumber(ARGV[i + 9])
  local b = bucket(key)
  local r = parse(redis.call('HGET', b.s, id))
  local state = run == 0 and 'r' or 'g'
  if r and r.state == state and r.release == release and (run == 0 or r.run == run) then
    land(b, id, r)
    if cost >= 0 and run > 0 then
      settle(b, r, cost)
      if cost ~= r.cost then log_settlement(b, id, r, cost - r.cost) end
    end
    if run > 0 and what ~= 'return' then
      local took = math.max(0, now - r.slot)
      b.run = b.run == 0 and took or b.run + (took - b.run) / 8
    end
    if run > 0 then listen(b, r, verdict, rest) end
    if what == 'refused' or what == 'refused_last' then
      if not tries(b, r) then what = 'refused' else what = what == 'refused' and 'retry' or 'dead' end
    end
    if run > 0 and (what == 'retry' or what == 'refused' or what == 'return') and marked(r, 'l') then
      what = 'cancelled'
    elseif what == 'retry' and r.deadline > 0 and now + delay >= r.deadline then
      what, reason = 'dead', 'its deadline is before the next attempt: ' .. reason
    end
    if what ~= 'return' then
      tally(what, 1)
      if b.more and b.more.ev then event(key, what, id, r.attempt, what == 'done' and '' or reason) end
    end
    if what ~= 'refused' and what ~= 'return' then r.refused = 0 end
    if what == 'done' and b.more and b.more.keep then
      log_attempt(b, id, r, 'done', reason)
      bury(b, id, r, 'done', '')
    elseif what == 'done' or what == 'cancelled' then
      forget(b, id, r, what == 'done')
    elseif what == 'dead' then
      log_attempt(b, id, r, 'dead', reason)
      bury(b, id, r, 'dead', reason)
    elseif what == 'retry' then
      log_attempt(b, id, r, 'retry', reason)
      put_off_until(b, id, r, now + delay)
    elseif what == 'refused' then
      log_attempt(b, id, r, 'refused', reason)
      r.attempt = math.max(0, r.attempt - 1)
      if r.refused == 0 then r.refused = now end
      rejoin(b, id, r)
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
