-- What scripts do that change policies or holds.

local function is_pattern(name) return string.find(name, '*', 1, true) ~= nil end

-- Keeps the list of patterns in step with the tables they stand in.
local function list_pattern(name)
  if not is_pattern(name) or name == '*' then return end
  for _, names in ipairs({ 'live', 'file', 'hold' }) do
    if redis.call('HEXISTS', SHARD .. names, name) == 1 then
      redis.call('ZADD', SHARD .. 'patterns', 1 - #name, name)
      return
    end
  end
  redis.call('ZREM', SHARD .. 'patterns', name)
end

-- Has the bucket of an exact name, if it has jobs, feel a change of rules at once.
local function feel(name)
  if not redis.call('ZSCORE', DUE, name) then return end
  local b = bucket(name)
  leak(b)
  arm(b, now)
end
