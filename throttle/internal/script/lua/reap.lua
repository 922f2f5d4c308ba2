-- Purpose: gives jobs whose holder is lost back their place in the line, or leaves
-- them to a holder that was seen alive.
-- Guarantee: a job that was extended, finished or released again since it was listed
-- is not touched.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     lead, µs
-- ARGV[2]     lease given to jobs that stay in flight, µs
-- ARGV[3..]   groups of 5: key, id, release number, run number, "return" or "extend"
-- Reply: for each job 1, or 0 if it was not touched

go_on_when_full()
lead = tonumber(ARGV[1])
local lease = tonumber(ARGV[2])
local reply = {}
for i = 3, #ARGV, 5 do
  local key, id, release, run = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local b = bucket(key)
  local r = parse(redis.call('HGET', b.s, id))
  local till = tonumber(redis.call('ZSCORE', SHARD .. 'lease', ref(key, id)) or '')
  if r and (r.state == 'r' or r.state == 'g') and r.release == release and r.run == run
    and till and till <= now then
    if ARGV[i + 4] == 'extend' then
      redis.call('ZADD', SHARD .. 'lease', int(now + lease), ref(key, id))
    else
      land(b, id, r)
      if r.state == 'g' then log_attempt(b, id, r, 'lost', 'its worker was lost') end
      if marked(r, 'l') then
        forget(b, id, r)
        tally('cancelled', 1)
      else
        rejoin(b, id, r)
        if r.expires > 0 then wake = true end
      end
    end
    reply[#reply + 1] = 1
  else
    reply[#reply + 1] = 0
  end
end
rearm_all()
commit()
return reply
