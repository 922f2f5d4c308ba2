-- Purpose: lists the shard's dead letters, oldest first.
-- Guarantee: changes nothing.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     how many to pass over
-- ARGV[2]     most to list
-- Reply: server time less the shard's time in µs, then for each: "id key", instant
--        of death, "attempts reason", encoded job

local from = tonumber(ARGV[1])
local names = redis.call('ZRANGE', SHARD .. 'dead', from, from + tonumber(ARGV[2]) - 1, 'WITHSCORES')
local reply = { real - now }
for i = 1, #names, 2 do
  local n = #reply
  reply[n + 1], reply[n + 2] = names[i], tonumber(names[i + 1])
  reply[n + 3] = redis.call('HGET', SHARD .. 'dead:why', names[i]) or '0 '
  reply[n + 4] = redis.call('HGET', SHARD .. 'dead:job', names[i]) or ''
end
return reply
