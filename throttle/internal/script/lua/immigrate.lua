-- Purpose: stores jobs that another shard held.
-- Guarantee: the call can be repeated: a job that is there, or came and has ended since,
-- is left as it is. Jobs keep the order that they had there, and what the key's quotas
-- count comes with the first of them.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     level of its bucket there
-- ARGV[3]     policy that a job brought along, or ""
-- ARGV[4]     what its quotas count, as emigrate replies
-- ARGV[5..]   groups of 4: as emigrate replies
-- Reply: how many of them are stored here now, or were
-- Expiry: that a job came is remembered for an hour.

local REMEMBERED = 3600000000

local key, level, own = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local b = bucket(key)
if away(b) then return 0 end
leak(b)
b.level = math.max(b.level, level)
if b.own == '' and own ~= '' then
  b.own = own
  resolve(b)
  adopt(b)
end

local name = SHARD .. 'arrived'
local old = redis.call('ZRANGEBYSCORE', name, '-inf', int(now - REMEMBERED), 'LIMIT', 0, 256)
if #old > 0 then redis.call('ZREM', name, unpack(old)) end

-- Counts come once. Those of a shard whose time is another are of other windows.
local counts, theirs = {}, cjson.decode(ARGV[4])
local same_time = math.abs((finite(theirs[1]) or FAR) - (real - now)) < 1000000
for i = 2, #theirs do counts[theirs[i][1]] = theirs[i] end
local first = redis.call('ZADD', name, int(now), '\n' .. key) == 1 -- ids have no line breaks
for _, q in ipairs(load_quotas(b)) do
  local c = counts[q.field]
  local id, used = string.match(c and c[2] or '', '^(%S+) (%S+)$')
  id, used = finite(id), finite(used)
  if first and same_time and id and used then
    if q.sliding then
      q.used = q.used + used
    elseif id >= q.id then
      q.id, q.used = id, used + (id == q.id and q.used or 0)
    end
    q.changed = true
    for i = 1, #c[3], 2 do redis.call('ZADD', q.log, c[3][i + 1], c[3][i]) end
    if #c[3] > 0 then redis.call('PEXPIRE', q.log, int(math.ceil(q.per / 1000) + 60000)) end
  end
end

local off = (finite(theirs[1]) or 0) - (real - now) -- of their shard's time from ours

-- So does what the other side said. Of two that were said the stricter counts.
local came_said = first and counts.said and said.parse(counts.said[2])
if came_said then
  for _, field in ipairs({ 'rest', 'refused', 'tuned', 'failing', 'off', 'since' }) do
    if came_said[field] > 0 then came_said[field] = math.max(1, came_said[field] + off) end
  end
  if b.said then
    for _, field in ipairs({ 'rest', 'fails', 'opened', 'off' }) do came_said[field] = math.max(came_said[field], b.said[field]) end
    came_said.factor = math.min(came_said.factor, b.said.factor)
  end
  b.said = came_said
  adopt(b)
end
local stored = 0
for i = 5, #ARGV, 4 do
  local id, r, at = ARGV[i], parse(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local came = r and id .. ' ' .. int(r.seq) .. ' ' .. key
  if came and not redis.call('ZSCORE', name, came) then
    redis.call('ZADD', name, int(now), came)
    if redis.call('HSETNX', b.j, id, ARGV[i + 3]) == 1 then
      if r.expires > 0 then r.expires = math.max(1, r.expires + off) end
      if r.refused > 0 then r.refused = math.max(1, r.refused + off) end
      if r.deadline > 0 then r.deadline = math.max(1, r.deadline + off) end
      if r.name ~= '-' and not holder(b.key, r.name) then take_name(b, id, r, r.seq) end
      if r.state == 'd' then
        put_off_until(b, id, r, at + now - real)
      else
        rejoin(b, id, r)
      end
    end
  end
  stored = stored + 1
end
arm(b, now)
commit()
return stored
