-- The sliding window counter. Stored: start of the window, count, count of the window
-- before, latest slot, when a slot ahead was charged last (the last two are 0 if none
-- was). The arithmetic is that of slidingcounter.go.
-- ARGV from a: length of a window in µs, most cost.

algorithm = { arguments = 2 }

-- Begins the window of an instant, if it is another one.
local function roll(m, at)
  local start = at - at % m.window
  if m.start + 2 * m.window <= start then
    m.before, m.count = 0, 0
  elseif m.start + m.window <= start then
    m.before, m.count = m.count, 0
  end
  m.start = start
end

function algorithm.read(name, a)
  local m = { window = tonumber(ARGV[a]), most = tonumber(ARGV[a + 1]) }
  local v = numbers(stored(name), 5) or { 0, 0, 0, 0, 0 }
  m.start, m.count, m.before, m.last, m.written = v[1], v[2], v[3], v[4], v[5]
  local back = math.max(0, (m.written > 0 and m.written or m.start) - now)
  if back > 0 then
    m.before, m.count = math.min(m.most, math.max(m.before, m.count)), 0
    m.start = now
    if m.written > 0 then
      m.last = m.last - back
      m.start = math.max(now, m.last)
    end
    m.start = m.start - m.start % m.window
  end
  m.written = math.min(m.written, now)
  roll(m, math.max(m.start, now))
  return m
end

-- How long after the start of a window the count of the one before weighs no more than
-- is free.
local function weighs(m, count, free)
  if count <= free then return 0 end
  return m.window - muldiv(m.window, free, count)
end

function algorithm.slot(m)
  local from = m.written > 0 and m.last or 0
  local free = m.most - m.count - cost
  if free >= 0 then return math.max(from, m.start + weighs(m, m.before, free)) end
  return math.max(from, m.start + m.window + weighs(m, m.count, m.most - cost))
end

local function store(m, name)
  local windows = m.count > 0 and 2 or 1
  keep(name, string.format('%.0f %.0f %.0f %.0f %.0f', m.start, m.count, m.before, m.last, m.written),
    m.start + windows * m.window)
end

function algorithm.charge(m, name, slot)
  roll(m, slot)
  m.count = m.count + cost
  m.last, m.written = 0, 0
  if slot > now then m.last, m.written = slot, now end
  store(m, name)
end

function algorithm.give_back(m, name, slot)
  local start = slot - slot % m.window
  if start == m.start then
    m.count = math.max(0, m.count - cost)
  elseif start == m.start - m.window then
    m.before = math.max(0, m.before - cost)
  end
  store(m, name)
end

function algorithm.state(m) return m.start, m.count, m.before, m.last, m.written end
