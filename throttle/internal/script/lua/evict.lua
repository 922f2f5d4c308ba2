-- Purpose: removes dead letters above a number or an age, oldest first, and jobs that
-- are done and were kept long enough.
-- Guarantee: removes what is stored of each as a whole, at most the given number of
-- either a call.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     dead letters to remove whatever their age
-- ARGV[2]     age from which they go, µs
-- ARGV[3]     most to remove
-- Reply: dead letters that are left, instant of death of the oldest in µs of the server's
--        clock (0: none), number removed of each: dead letters, done jobs

go_on_when_full()
local surplus, age, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local function remove(names)
  for _, name in ipairs(names) do
    local id, key = string.match(name, '^(%S+) (.*)$')
    if id then unbury(key, id) end
    redis.call('ZREM', SHARD .. 'dead', name) -- damaged ones too
    redis.call('ZREM', SHARD .. 'done', name)
  end
  return #names
end

local dead = 0
if surplus > 0 then dead = remove(redis.call('ZRANGE', SHARD .. 'dead', 0, math.min(surplus, most) - 1)) end
if most > dead then
  dead = dead + remove(redis.call('ZRANGEBYSCORE', SHARD .. 'dead', '-inf', int(now - age), 'LIMIT', 0, most - dead))
end
local done = remove(redis.call('ZRANGEBYSCORE', SHARD .. 'done', '-inf', int(now), 'LIMIT', 0, most))
tally('evicted', dead)
commit()
local oldest = redis.call('ZRANGE', SHARD .. 'dead', 0, 0, 'WITHSCORES')[2]
return { redis.call('ZCARD', SHARD .. 'dead'), oldest and tonumber(oldest) + real - now or 0, dead, done }
