-- What the log needs to write.

-- Adds values to a list; a call takes only so many.
local function add(name, values)
  for i = 1, #values, 1000 do
    redis.call('RPUSH', name, unpack(values, i, math.min(#values, i + 999)))
  end
end

-- Leaves the units that count, without a mark. Where the clock stepped back they are written anew.
local function clean(name, gone, back, unsound)
  if unsound then
    redis.call('DEL', name)
  elseif back > 0 then
    local units = redis.call('LRANGE', name, gone, -1)
    for i, x in ipairs(units) do units[i] = string.format('%.0f', (tonumber(x) or 0) - back) end
    redis.call('DEL', name)
    add(name, units)
  elseif gone > 0 then
    redis.call('LTRIM', name, gone, -1)
  end
end

local function push(name, slot, cost)
  local text = string.format('%.0f', slot)
  if cost == 1 then return redis.call('RPUSH', name, text) end
  local values = {}
  for i = 1, cost do values[i] = text end
  add(name, values)
end

-- Notes when a slot ahead was charged, if one was, and lets the list expire.
local function mark(name, written, fresh)
  if written > 0 then redis.call('LPUSH', name, string.format('-%.0f', written)) end
  redis.call('PEXPIRE', name, math.max(1, math.ceil((fresh - now) / 1000)))
end
