-- Purpose: looks up one job.
-- Guarantee: changes nothing.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     id
-- Reply: nothing if there is no such job, else server time in µs, state, place in
--        the line (0 outside it), wait in µs until it leaves, attempts begun

local b = bucket(ARGV[1])
if redis.call('HEXISTS', b.j, ARGV[2]) == 0 then return {} end
local state, place, wait, attempt = whereabouts(b, ARGV[2])
return { real, state, place, wait, attempt }
