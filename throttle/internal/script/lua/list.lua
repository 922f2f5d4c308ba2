-- Purpose: lists jobs of a key in one state, a page of them.
-- Guarantee: changes nothing. A job that stays where it is between two pages is
-- listed once.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     state: "w", "d", or "f" for in flight
-- ARGV[3]     score and
-- ARGV[4]     id of the last job of the page before, "" to begin
-- ARGV[5]     most jobs
-- Reply: shard where the key belongs, server time less shard's time in µs, place of the
--        first of them, then for each: id, state, score (its place, the end of its delay
--        or its release), slot (0: none), attempts begun, cost, priority, instant of its
--        enqueueing

local b = bucket(ARGV[1])
local line = b[ARGV[2]]
local score, id, most = ARGV[3], ARGV[4], tonumber(ARGV[5])

-- Where the page begins. If the last job of the page before is gone, those of its
-- score come again.
local from = 0
if id ~= '' then
  if tonumber(redis.call('ZSCORE', line, id) or '') == tonumber(score) then
    from = redis.call('ZRANK', line, id) + 1
  else
    from = redis.call('ZCOUNT', line, '-inf', '(' .. score)
  end
end

local states = { w = 'waiting', d = 'delayed', r = 'released', g = 'running' }
local reply = { away(b) or THIS, real - now, from + 1 }
local page = redis.call('ZRANGE', line, from, from + most - 1, 'WITHSCORES')
for i = 1, #page, 2 do
  local n, r = #reply, record(b, page[i])
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = page[i], states[r.state], tonumber(page[i + 1]), r.slot
  reply[n + 5], reply[n + 6], reply[n + 7], reply[n + 8] = r.attempt, r.cost, r.priority, r.seq
end
return reply
