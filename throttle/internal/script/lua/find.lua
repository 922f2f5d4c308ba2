-- Purpose: looks up one job.
-- Guarantee: changes nothing.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     id
-- Reply: shard where the key belongs; if there is such a job, server time in µs, its
--        state, place in the line (0 outside it), wait in µs until it leaves, attempts
--        begun

local b = bucket(ARGV[1])
if redis.call('HEXISTS', b.j, ARGV[2]) == 0 then return { away(b) or THIS } end
local state, place, wait, attempt = whereabouts(b, ARGV[2])
return { away(b) or THIS, real, state, place, wait, attempt }
