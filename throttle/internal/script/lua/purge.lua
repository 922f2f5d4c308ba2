-- Purpose: removes waiting and delayed jobs of a key that a filter lets through, a
-- page of them.
-- Guarantee: jobs in flight stay. Looks at most at the given number a call.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     "w" for those in the line, "d" for those delayed
-- ARGV[3]     how many to pass over: those that stayed
-- ARGV[4]     most jobs to look at
-- ARGV[5]     type, "" for any
-- ARGV[6]     what the id begins with
-- ARGV[7]     enqueued before, µs of the server's clock, 0 for any
-- Reply: how many were looked at, how many were removed

go_on_when_full()
local b = bucket(ARGV[1])
local from, most = tonumber(ARGV[3]), tonumber(ARGV[4])
local type_, start, before = ARGV[5], ARGV[6], tonumber(ARGV[7])
local line = ARGV[2] == 'w' and b.w or b.d

local function has_type(id)
  if type_ == '' then return true end
  local text = string.match(redis.call('HGET', b.j, id) or '', '^[^\n]*')
  local ok, job = pcall(cjson.decode, text)
  return ok and type(job) == 'table' and job.type == type_
end

local ids = redis.call('ZRANGE', line, from, from + most - 1)
local removed = 0
for _, id in ipairs(ids) do
  local r = record(b, id)
  if string.sub(id, 1, #start) == start and (before == 0 or r.seq + real - now < before) and has_type(id) then
    take_out(b, id, r)
    forget(b, id, r)
    removed = removed + 1
  end
end
tally('purged', removed)
if removed > 0 then commit() end
return { #ids, removed }
