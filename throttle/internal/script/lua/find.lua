-- Purpose: looks up one job, one that ended and is kept as well.
-- Guarantee: changes nothing.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     id
-- Reply: shard where the key belongs; if there is such a job, server time and shard's
--        time in µs, its state, place in the line (0 outside it), jobs and cost in
--        millionths that leave before it, instant of its slot or of the end of its delay
--        (0: none), attempts begun, cost, priority, pool, instant of its enqueueing (0: not
--        known), instant at which it expires (0: none), its last attempt or not (1 or 0),
--        reason of a death, encoded job, its attempts (see record.lua), outlook ("" if
--        it ended), instant of its end (0: none)

local key, id = ARGV[1], ARGV[2]
local b = bucket(key)
local home = away(b) or THIS
if redis.call('HEXISTS', b.j, id) == 1 then
  local r = record(b, id)
  local state, place, jobs, ahead, at = whereabouts(b, id, r)
  return {
    home, real, now, state, place, jobs, math.floor(ahead * 1000000), at, r.attempt, r.cost, r.priority, r.pool,
    r.seq, r.expires,
    marked(r, 'l') and 1 or 0, '', redis.call('HGET', b.j, id), redis.call('HGET', b.a, id) or '', outlook(b), 0,
  }
end
local name = ref(key, id)
local what, attempts, cost, priority, pool, reason =
  string.match(redis.call('HGET', SHARD .. 'ended:why', name) or '', '^(%l+) (%d+) (%d+) (%d+) (%S+) (.*)$')
if not what then return { home } end
return {
  home, real, now, what, 0, 0, 0, 0, tonumber(attempts), tonumber(cost), tonumber(priority), pool,
  0, 0, 1, reason,
  redis.call('HGET', SHARD .. 'ended:job', name) or '', redis.call('HGET', SHARD .. 'ended:log', name) or '', '',
  tonumber(redis.call('ZSCORE', SHARD .. 'x:' .. key, id) or '') or 0,
}
