-- Names by which jobs of a key are known as the same one. A job that has a name keeps
-- it until it ends; when it is done, for its window longer. Nobody can repeat it that
-- long. A name is "i:" and an id, "n:" and what the producer chose, or "c:" and a hash.

local function name_of(key, name) return SHARD .. 'u:' .. name .. ' ' .. key end

local function take_name(b, id, r, since)
  redis.call('SET', name_of(b.key, r.name), id .. ' ' .. int(since))
end

-- The job that has a name, the instant from which it has it, and whether it is done.
local function holder(key, name)
  local id, since, done = string.match(redis.call('GET', name_of(key, name)) or '', '^(%S+) (%d+)( ?d?)$')
  return id, tonumber(since), done == ' d'
end

local function free_name(b, id, r, done)
  local name = name_of(b.key, r.name)
  if holder(b.key, r.name) ~= id then return end
  if done and r.window > 0 then
    redis.call('SET', name, id .. ' ' .. int(now) .. ' d', 'PX', int(math.ceil(r.window / 1000)))
  else
    redis.call('DEL', name)
  end
end
