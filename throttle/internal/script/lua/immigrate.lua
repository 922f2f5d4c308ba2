-- Purpose: stores jobs that another shard held.
-- Guarantee: a job that is there already is left as it is, so the call can be
-- repeated. Jobs keep the order that they had there.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     key
-- ARGV[2]     level of its bucket there
-- ARGV[3]     policy that a job brought along, or ""
-- ARGV[4..]   groups of 4: as emigrate replies
-- Reply: how many of them are stored here now

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
local stored = 0
for i = 4, #ARGV, 4 do
  local id, r, at = ARGV[i], parse(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if r and redis.call('HSETNX', b.j, id, ARGV[i + 3]) == 1 then
    if r.state == 'd' then
      redis.call('ZADD', b.d, int(at + now - real), id)
      put(b, id, r)
      arm(b, at + now - real)
    else
      rejoin(b, id, r)
    end
  end
  stored = stored + 1
end
arm(b, now)
commit()
return stored
