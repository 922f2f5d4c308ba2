-- The sliding window log. Stored: a list of the slots of each unit of cost, in order. Where
-- a slot ahead was charged, when that was stands before them, as a negative number. The
-- arithmetic is that of slidinglog.go.
-- ARGV from a: length of a window in µs, most cost.

algorithm = { arguments = 2 }

-- The i-th unit from 1, by the clock as it is now.
local function entry(m, i)
  return (tonumber(redis.call('LINDEX', m.name, m.marked + i - 1)) or 0) - m.back
end

-- How many units no window covers any more. They are found by halving.
local function expired(m)
  if m.size == 0 or entry(m, 1) + m.window > now then return 0 end
  local low, high = 1, m.size + 1 -- up to low they are gone, from high on they count
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if entry(m, middle) + m.window <= now then low = middle else high = middle end
  end
  return low
end

function algorithm.read(name, a)
  local m = {
    name = name, window = tonumber(ARGV[a]), most = tonumber(ARGV[a + 1]),
    marked = 0, written = 0, back = 0, last = 0,
  }
  local size = redis.pcall('LLEN', name)
  local head = size ~= 0 and type(size) == 'number' and redis.call('LINDEX', name, 0)
  local first, last = 0, 0
  if head then first, last = tonumber(head), tonumber(redis.call('LINDEX', name, -1)) end
  if type(size) == 'table' or not first or not last then
    damaged = damaged + 1
    size, first, m.unsound = 0, 0, true
  end
  if first < 0 then m.marked, m.written = 1, -first end
  m.size = size - m.marked
  if m.size > 0 then
    m.back = math.max(0, (m.marked == 1 and m.written or last) - now)
    m.last = last - m.back
    m.written = math.min(m.written, now)
  end
  m.gone = expired(m)
  return m
end

function algorithm.slot(m)
  local used = m.size - m.gone
  if used == 0 then return now end
  local over = used + cost - m.most
  if over <= 0 then return m.last end
  return math.max(m.last, entry(m, m.gone + over) + m.window)
end

-- Adds a slot, so many times; a call takes only so many values.
local function push(name, values)
  for i = 1, #values, 1000 do
    redis.call('RPUSH', name, unpack(values, i, math.min(#values, i + 999)))
  end
end

-- Writes all entries anew where the clock stepped back.
local function rewrite(m)
  local entries = redis.call('LRANGE', m.name, m.marked + m.gone, -1)
  for i, x in ipairs(entries) do entries[i] = string.format('%.0f', (tonumber(x) or 0) - m.back) end
  redis.call('DEL', m.name)
  push(m.name, entries)
end

-- Leaves what counts, without a mark.
local function clean(m)
  if m.unsound then
    redis.call('DEL', m.name)
  elseif m.back > 0 then
    rewrite(m)
  elseif m.marked + m.gone > 0 then
    redis.call('LTRIM', m.name, m.marked + m.gone, -1)
  end
end

local function store(m, slot)
  if m.written > 0 then redis.call('LPUSH', m.name, string.format('-%.0f', m.written)) end
  redis.call('PEXPIRE', m.name, math.max(1, math.ceil((slot + m.window - now) / 1000)))
end

function algorithm.charge(m, _, slot)
  clean(m)
  local values, text = {}, string.format('%.0f', slot)
  for i = 1, cost do values[i] = text end
  push(m.name, values)
  m.size, m.gone, m.last = m.size - m.gone + cost, 0, slot
  m.written = slot > now and now or 0
  store(m, slot)
end

function algorithm.give_back(m, _, slot)
  clean(m)
  if redis.call('LREM', m.name, -cost, string.format('%.0f', slot)) > 0 then store(m, math.max(slot, m.last)) end
end

function algorithm.state(m) return m.size - m.gone, m.last, m.written end
