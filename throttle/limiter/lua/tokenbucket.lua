-- The token bucket: the arithmetic of tokenbucket.go.
-- Stored: instant at which the last token came back, fraction of a µs to add to it in parts of
-- the reduced rate, tokens there were then, when a slot ahead was charged last (0 if none was).
-- ARGV[1@]    reduced rate
-- ARGV[2@]    its period, µs
-- ARGV[3@]    burst
-- ARGV[4@]    time in which all of it comes back, µs
-- ARGV[5@]    parts to add to that
-- State: instant, parts, tokens.

--- read
local rate@, period@, most@ = tonumber(ARGV[1@]), tonumber(ARGV[2@]), tonumber(ARGV[3@])
local fill@, fill_parts@ = tonumber(ARGV[4@]), tonumber(ARGV[5@])
local at@, parts@, tokens@, written@ = now, 0, most@, 0
local value@ = redis.pcall('GET', KEYS[@])
if value@ then
  local at, parts, tokens, written = string.match(type(value@) == 'string' and value@ or '', '^(%d+) (%d+) (%d+) (%d+)$')
  if at and math.max(at, parts, tokens, written) < EXACT and at - now < FAR then
    at@, parts@, tokens@, written@ = tonumber(at), tonumber(parts), tonumber(tokens), tonumber(written)
  else
    damaged = damaged + 1
  end
end
local back@ = (written@ > 0 and written@ or at@) - now
if back@ > 0 then
  at@, written@, moved = at@ - back@, math.min(written@, now), true
end

-- The instant, and parts, at which so many more tokens will have come back.
local function after@(more)
  local span, rest = muldiv(period@, more, rate@)
  if parts@ + rest >= rate@ then return at@ + span + 1, parts@ + rest - rate@ end
  return at@ + span, parts@ + rest
end

-- Puts in the tokens that come back until an instant.
local function refill@(to)
  if parts@ >= rate@ then at@, parts@ = at@ + 1, 0 end -- of another rate
  local span, parts = to - at@, 0
  if span > 0 then
    if parts@ > 0 then span, parts = span - 1, rate@ - parts@ end
    if span > fill@ or span == fill@ and parts >= fill_parts@ then
      tokens@ = most@
    else
      local whole, rest = muldiv(span, rate@, period@)
      whole = whole + math.floor((rest + parts) / period@)
      at@, parts@ = after@(whole)
      tokens@ = tokens@ + whole
    end
  end
  if tokens@ >= most@ then tokens@, at@, parts@ = most@, math.max(at@, to), 0 end
end
refill@(now)

--- slot
do
  local at, parts = at@, parts@
  if cost > tokens@ then at, parts = after@(cost - tokens@) end
  if parts > 0 then at = at + 1 end
  slot = math.max(slot, at)
end

--- charge
if slot > now then refill@(slot) end
tokens@ = tokens@ - cost
written@ = slot > now and now or 0

--- give back
-- Others have got the tokens that come next.

--- keep
value@ = string.format('%.0f %.0f %.0f %.0f', at@, parts@, tokens@, written@)
redis.call('SET', KEYS[@], value@, 'PX', math.max(1, math.ceil(((after@(most@ - tokens@)) + 1 - now) / 1000)))

--- state
at@, parts@, tokens@
