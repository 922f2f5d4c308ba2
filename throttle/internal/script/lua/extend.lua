-- Purpose: renews the leases of jobs in a worker's hands.
-- Guarantee: a job is extended only for whoever holds it under the given numbers.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     lease, µs from now
-- ARGV[2..]   groups of 4: key, id, release number, run number (0: not departed yet)
-- Reply: for each job 1, or 0 if it is no longer held

go_on_when_full()
local lease = tonumber(ARGV[1])
local reply = {}
for i = 2, #ARGV, 4 do
  local key, id, release, run = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local r = parse(redis.call('HGET', SHARD .. 's:' .. key, id))
  local state = run == 0 and 'r' or 'g'
  if r and r.state == state and r.release == release and (run == 0 or r.run == run) then
    redis.call('ZADD', SHARD .. 'lease', int(now + lease), ref(key, id))
    reply[#reply + 1] = 1
  else
    reply[#reply + 1] = 0
  end
end
return reply
