-- Purpose: counts what a shard holds and what became of its jobs.
-- Guarantee: changes nothing.
--
-- KEYS[1]     due set of the shard
-- ARGV[1..]   groups of 1: name of a counter, see store.lua
-- Reply: keys with jobs, jobs in flight, dead, done and kept, bound on what waits in
--        all shards (0: none), then each counter

local reply = {
  redis.call('ZCARD', DUE), redis.call('ZCARD', SHARD .. 'lease'), redis.call('ZCARD', SHARD .. 'dead'),
  redis.call('ZCARD', SHARD .. 'done'), tonumber(redis.call('GET', SHARD .. 'most') or 0),
}
for i = 1, #ARGV, 1 do reply[#reply + 1] = finite(redis.call('HGET', SHARD .. 'stats', ARGV[i])) or 0 end
return reply
