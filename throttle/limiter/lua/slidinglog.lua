-- The sliding window log: the arithmetic of slidinglog.go.
-- Stored: a list of the slots of each unit of cost, in order. Where a slot ahead was charged, when
-- that was stands before them, as a negative number.
-- ARGV[1@]    length of a window, µs
-- ARGV[2@]    most cost
-- State: how many units count, the last of them.

--- read
local window@, most@ = tonumber(ARGV[1@]), tonumber(ARGV[2@])
local marked@, written@, back@, last@, unsound@ = 0, 0, 0, 0, false
local value@ = false -- what is stored is no text
local size@ = redis.pcall('LLEN', KEYS[@])
local first@ = 0
if size@ ~= 0 then
  if type(size@) == 'number' then
    first@, last@ = tonumber(redis.call('LINDEX', KEYS[@], 0)), tonumber(redis.call('LINDEX', KEYS[@], -1))
  end
  if type(size@) ~= 'number' or not first@ or not last@ or not (math.abs(first@) < EXACT and last@ >= 0 and last@ < EXACT) then
    damaged = damaged + 1
    size@, first@, last@, unsound@ = 0, 0, 0, true
  end
end
if first@ < 0 then marked@, written@ = 1, -first@ end
size@ = size@ - marked@
if size@ > 0 then
  back@ = math.max(0, (marked@ == 1 and written@ or last@) - now)
  last@ = last@ - back@
  written@ = math.min(written@, now)
  moved = moved or back@ > 0
end
local added@ = 0

-- The i-th unit from 1, by the clock as it is now.
local function unit@(i)
  return (tonumber(redis.call('LINDEX', KEYS[@], marked@ + i - 1)) or 0) - back@
end

-- How many units no window covers any more. They are found by halving.
local gone@ = 0
if size@ > 0 and (marked@ == 1 and unit@(1) or first@ - back@) + window@ <= now then
  local high = size@ + 1 -- from there on they count
  gone@ = 1
  while high - gone@ > 1 do
    local middle = math.floor((gone@ + high) / 2)
    if unit@(middle) + window@ <= now then gone@ = middle else high = middle end
  end
end

--- slot
if size@ > gone@ then
  local over = size@ - gone@ + cost - most@
  slot = math.max(slot, last@)
  if over > 0 then slot = math.max(slot, unit@(gone@ + over) + window@) end
end

--- charge
added@, last@ = cost, slot
written@ = slot > now and now or 0

--- give back
given = true

--- keep
clean(KEYS[@], marked@ + gone@, back@, unsound@)
if added@ > 0 then
  push(KEYS[@], slot, added@)
elseif given then
  size@ = size@ - redis.call('LREM', KEYS[@], -cost, string.format('%.0f', slot))
end
size@, gone@ = size@ - gone@ + added@, 0
if size@ > 0 then mark(KEYS[@], written@, last@ + window@) end

--- state
size@ - gone@, last@
