-- The fixed window counter. Stored: start of the window, count, when a slot ahead was
-- charged last (0 if none was). The arithmetic is that of fixedwindow.go.
-- ARGV from a: length of a window in µs, most cost.

algorithm = { arguments = 2 }

function algorithm.read(name, a)
  local m = { window = tonumber(ARGV[a]), most = tonumber(ARGV[a + 1]) }
  local v = numbers(stored(name), 3) or { 0, 0, 0 }
  m.start, m.count, m.written = v[1], v[2], v[3]
  if m.written > 0 then
    m.start = m.start - math.max(0, m.written - now)
    m.written = math.min(m.written, now)
  end
  if m.start + m.window <= now then m.count = 0 end
  if m.written == 0 or m.start < now then m.start = now end
  m.start = m.start - m.start % m.window
  return m
end

function algorithm.slot(m)
  if m.count + cost > m.most then return m.start + m.window end
  return m.start
end

function algorithm.charge(m, name, slot)
  local start = slot - slot % m.window
  if start > m.start then m.start, m.count = start, 0 end
  m.count = m.count + cost
  m.written = slot > now and now or 0
  keep(name, string.format('%.0f %.0f %.0f', m.start, m.count, m.written), m.start + m.window)
end

function algorithm.give_back(m, name, slot)
  if slot - slot % m.window ~= m.start or m.count == 0 then return end
  m.count = math.max(0, m.count - cost)
  keep(name, string.format('%.0f %.0f %.0f', m.start, m.count, m.written), m.start + m.window)
end

function algorithm.state(m) return m.start, m.count, m.written end
