-- The leaky bucket, as a meter and as a queue. Stored: the instant at which it will be
-- empty, and a fraction of a µs in parts of the reduced rate. They are one number, µs times
-- 1000 plus parts, which Redis keeps in 16 bytes; where parts may be 1000 or more, or a slot
-- ahead was charged, three: µs, parts, and when that was (0 if none was). The arithmetic is that of
-- leakybucket.go.
-- ARGV from a: reduced rate, µs and parts in which the cost leaks, µs and parts in which the burst
-- does.

algorithm = { arguments = 5 }

local function parse(value)
  if value and not string.find(value, ' ', 1, true) then
    local at, parts = tonumber(string.sub(value, 1, -4)), tonumber(string.sub(value, -3))
    if string.find(value, '^%d+$') and #value < 20 then return at or 0, parts, 0 end
  end
  local v = numbers(value, 3)
  if v then return v[1], v[2], v[3] end
  return 0, 0, 0
end

function algorithm.read(name, a)
  local m = {
    rate = tonumber(ARGV[a]), leak = tonumber(ARGV[a + 1]), leak_parts = tonumber(ARGV[a + 2]),
    fill = tonumber(ARGV[a + 3]), fill_parts = tonumber(ARGV[a + 4]),
  }
  m.at, m.parts, m.written = parse(stored(name))
  if m.parts >= m.rate then m.at, m.parts = m.at + 1, 0 end -- of another rate
  if m.written > now then
    m.at, m.written = m.at - (m.written - now), now
  elseif m.written == 0 then
    local over = m.at - now - m.fill
    if over > 0 or over == 0 and m.parts > m.fill_parts then m.at, m.parts = now + m.fill, m.fill_parts end
  end
  if m.at < now then m.at, m.parts = now, 0 end
  return m
end

-- When the bucket will be empty if the cost goes in.
local function filled(m)
  local at, parts = m.at + m.leak, m.parts + m.leak_parts
  if parts >= m.rate then return at + 1, parts - m.rate end
  return at, parts
end

function algorithm.slot(m)
  local at, parts = filled(m)
  if parts > m.fill_parts then at = at + 1 end
  return at - m.fill
end

function algorithm.charge(m, name, slot)
  if m.at < slot then m.at, m.parts = slot, 0 end
  m.at, m.parts = filled(m)
  m.written = slot > now and now or 0
  local value
  if m.written == 0 and m.rate <= 1000 then
    value = string.format('%.0f%03d', m.at, m.parts)
  else
    value = string.format('%.0f %.0f %.0f', m.at, m.parts, m.written)
  end
  keep(name, value, m.at + 1)
end

function algorithm.give_back() end -- others have got the room that comes next

function algorithm.state(m) return m.at, m.parts, m.written end
