-- Purpose: lists jobs in flight whose lease has run out.
-- Guarantee: changes nothing but entries that name no job in flight, which go; a job
-- whose record was damaged in flight goes back into the line.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     most jobs to list
-- Reply: µs until the next lease ends (-1: none), then for each job: key, id, release number, run number, 1 if it departed or 0,
--        round, pool

go_on_when_full()
local reply = { -1 }
if now < grace then return { grace - now } end
local names = redis.call('ZRANGEBYSCORE', SHARD .. 'lease', '-inf', int(now), 'LIMIT', 0, tonumber(ARGV[1]))
for _, name in ipairs(names) do
  local id, key = string.match(name, '^(%S+) (.*)$')
  id, key = id or '', key or ''
  local r = parse(redis.call('HGET', SHARD .. 's:' .. key, id))
  if r and (r.state == 'r' or r.state == 'g') then
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = key, id, r.release, r.run
    reply[n + 5], reply[n + 6], reply[n + 7] = r.state == 'g' and 1 or 0, r.round, r.pool
  else
    redis.call('ZREM', SHARD .. 'lease', name)
    local b = bucket(key)
    b.flight = b.flight - redis.call('ZREM', b.f, id)
    if not r and redis.call('HEXISTS', b.j, id) == 1 and not redis.call('ZSCORE', b.w, id) then
      r = fresh(math.max(b.seq, now))
      land(b, id, r)
      rejoin(b, id, r)
      arm(b, now)
    end
  end
end
commit()
reply[1] = time_to_first(SHARD .. 'lease')
return reply
