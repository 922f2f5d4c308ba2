-- Purpose: reads jobs of a key that belongs to another shard, to be stored there.
-- Guarantee: the jobs stay, and are not released, until they are forgotten here. Should
-- they come back, having been forgotten too late, they are known. Nothing moves from an
-- ordered key while one of its jobs is in flight.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     most jobs
-- Reply: nothing if there is none to move, else key, shard where it belongs, level,
--        policy that a job brought along, what its quotas count (JSON: offset of
--        the shard's time, then for each field, count, log of a sliding one), then for each job: id, record, place in the line or end
--        of its delay in µs of the server's clock, encoded job

go_on_when_full()
local LOG = 2000 -- entries of a sliding window that go along; it has about half as many

local key = redis.call('SRANDMEMBER', SHARD .. 'moving')
if not key then return {} end
local b = bucket(key)
leak(b)
local most = tonumber(ARGV[1])
local home = away(b)

local counts = { int(real - now) }
for i, q in ipairs(load_quotas(b)) do
  local log = q.sliding and redis.call('ZRANGE', q.log, -LOG, -1, 'WITHSCORES') or {}
  counts[i + 1] = { q.field, exact(q.id) .. ' ' .. exact(q.used), log }
end
if b.said then counts[#counts + 1] = { 'said', said.text(b.said), {} } end

local FIXED = 5
local reply = { key, home or THIS, exact(b.level), b.own, cjson.encode(counts) }
local function add(line)
  local left = most - (#reply - FIXED) / 4
  local ids = left > 0 and redis.call('ZRANGE', line, 0, left - 1, 'WITHSCORES') or {}
  for i = 1, #ids, 2 do
    local r = record(b, ids[i])
    local n, at = #reply, tonumber(ids[i + 1])
    if line == b.d then at = at + real - now end
    if r.name ~= '-' and holder(b.key, r.name) ~= ids[i] then r.name = '-' end
    redis.call('ZADD', SHARD .. 'arrived', int(now), ids[i] .. ' ' .. int(r.seq) .. ' ' .. b.key)
    reply[n + 1], reply[n + 2], reply[n + 3] = ids[i], encode(r), int(at)
    reply[n + 4] = redis.call('HGET', b.j, ids[i]) or ''
  end
end
if home and not (b.ordered and b.flight > 0) then
  add(b.w)
  add(b.d)
end
if #reply == FIXED and home and b.flight > 0 and b.ordered then
  return {}
elseif #reply == FIXED then
  redis.call('SREM', SHARD .. 'moving', key)
  if not home then
    arm(b, now)
    commit()
  end
end
return reply
