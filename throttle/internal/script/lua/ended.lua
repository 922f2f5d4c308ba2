-- Purpose: lists jobs that ended and are kept, oldest first, a page of them.
-- Guarantee: changes nothing. One that stays between two pages is listed once.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     "dead" or "done"
-- ARGV[2]     key, "" for all of the shard
-- ARGV[3]     score and
-- ARGV[4]     name of the last one of the page before, "" to begin
-- ARGV[5]     most to look at
-- Reply: server time less shard's time in µs, 1 if there may be more or 0, then for
--        each: name (of one key: its id, else "id key"), score, "what attempts cost
--        priority pool reason"

local what, key, score, name, most = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local set = SHARD .. (key == '' and what or 'x:' .. key)
local from = 0
if name ~= '' then
  if tonumber(redis.call('ZSCORE', set, name) or '') == tonumber(score) then
    from = redis.call('ZRANK', set, name) + 1
  else
    from = redis.call('ZCOUNT', set, '-inf', '(' .. score)
  end
end
local page = redis.call('ZRANGE', set, from, from + most - 1, 'WITHSCORES')
local reply = { real - now, #page == 2 * most and 1 or 0 }
for i = 1, #page, 2 do
  local why = redis.call('HGET', SHARD .. 'ended:why', key == '' and page[i] or ref(key, page[i])) or ''
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = page[i], tonumber(page[i + 1]), why
end
return reply
