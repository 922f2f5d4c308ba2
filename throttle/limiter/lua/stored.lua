-- What is stored of a meter: whole numbers in a text.

local damaged = 0 -- names whose value could not be read, which count as never charged

-- The value of a name, or nil.
local function stored(name)
  local value = redis.pcall('GET', name)
  if type(value) == 'table' then -- of another kind
    damaged = damaged + 1
    return nil
  end
  return value or nil
end

-- The value of a name that is a text, as it stands, or ''.
local function held(name)
  local value = redis.pcall('GET', name)
  return type(value) == 'string' and value or ''
end

-- The numbers of a value, n of them, or nil.
local function numbers(value, n)
  if not value then return nil end
  local list = {}
  for word in string.gmatch(value, '%S+') do
    local x = tonumber(word)
    if not x or x < 0 or x % 1 ~= 0 or x > 9007199254740992 then break end
    list[#list + 1] = x
    if #list > n then break end
  end
  if #list == n then return list end
  damaged = damaged + 1
  return nil
end

-- Stores a value until an instant, from which it would count as none.
local function keep(name, value, fresh)
  redis.call('SET', name, value, 'PX', math.max(1, math.ceil((fresh - now) / 1000)))
end
