-- The token bucket. Stored: instant at which the last token came back, fraction of a µs
-- to add to it in parts of the reduced rate, tokens there were then, when a slot ahead was
-- charged last (0 if none was). The arithmetic is that of tokenbucket.go.
-- ARGV from a: reduced rate, its period in µs, burst, time in µs in which all of it comes
-- back, parts to add to that.

algorithm = { arguments = 5 }

-- The instant at which so many more tokens will have come back.
local function after(m, tokens)
  local span, rest = muldiv(m.period, tokens, m.rate)
  if m.parts + rest >= m.rate then return m.at + span + 1, m.parts + rest - m.rate end
  return m.at + span, m.parts + rest
end

-- Puts in the tokens that come back until an instant.
local function refill(m, at)
  if m.parts >= m.rate then m.at, m.parts = m.at + 1, 0 end -- of another rate
  local span, parts = at - m.at, 0
  if span > 0 then
    if m.parts > 0 then span, parts = span - 1, m.rate - m.parts end
    local tokens = m.most
    if span < m.fill or span == m.fill and parts < m.fill_parts then
      local whole, rest = muldiv(span, m.rate, m.period)
      tokens = whole + math.floor((rest + parts) / m.period)
      m.at, m.parts = after(m, tokens)
    end
    m.tokens = m.tokens + tokens
  end
  if m.tokens >= m.most then m.tokens, m.at, m.parts = m.most, math.max(m.at, at), 0 end
end

function algorithm.read(name, a)
  local m = {
    rate = tonumber(ARGV[a]), period = tonumber(ARGV[a + 1]), most = tonumber(ARGV[a + 2]),
    fill = tonumber(ARGV[a + 3]), fill_parts = tonumber(ARGV[a + 4]),
  }
  local v = numbers(stored(name), 4) or { now, 0, m.most, 0 }
  m.at, m.parts, m.tokens, m.written = v[1], v[2], v[3], v[4]
  m.at = m.at - math.max(0, (m.written > 0 and m.written or m.at) - now)
  m.written = math.min(m.written, now)
  refill(m, now)
  return m
end

local function ready(m, tokens)
  local at, parts = after(m, tokens)
  if parts > 0 then return at + 1 end
  return at
end

function algorithm.slot(m) return ready(m, math.max(0, cost - m.tokens)) end

function algorithm.charge(m, name, slot)
  refill(m, slot)
  m.tokens = m.tokens - cost
  m.written = slot > now and now or 0
  keep(name, string.format('%.0f %.0f %.0f %.0f', m.at, m.parts, m.tokens, m.written), ready(m, m.most - m.tokens))
end

function algorithm.give_back() end -- others have got the tokens that come next

function algorithm.state(m) return m.at, m.tokens, m.parts, m.written end
