-- The fixed window counter: the arithmetic of fixedwindow.go.
-- Stored: start of the window, count, when a slot ahead was charged last (0 if none was), with colons between.
-- ARGV[1@]    length of a window, µs
-- ARGV[2@]    most cost
-- State: start of the window, count.

--- read
local window@, most@ = tonumber(ARGV[1@]), tonumber(ARGV[2@])
local start@, count@, written@ = 0, 0, 0
local value@ = redis.pcall('GET', KEYS[@])
if value@ then
  local start, count, written = string.match(type(value@) == 'string' and value@ or '', '^(%d+):(%d+):(%d+)$')
  if start and math.max(start, count, written) < EXACT then
    start@, count@, written@ = tonumber(start), tonumber(count), tonumber(written)
  else
    damaged = damaged + 1
  end
end
local back@ = (written@ > 0 and written@ or start@) - now
if back@ > 0 then
  start@, written@, moved = start@ - back@, math.min(written@, now), true
end
start@ = start@ - start@ % window@ -- it may have had another length
if start@ + window@ <= now then start@, count@ = now - now % window@, 0 end

--- slot
if count@ + cost > most@ then
  slot = math.max(slot, start@ + window@)
else
  slot = math.max(slot, start@)
end

--- charge
if slot >= start@ + window@ then start@, count@ = slot - slot % window@, 0 end
count@ = count@ + cost
written@ = slot > now and now or 0

--- give back
if slot >= start@ and slot < start@ + window@ and count@ > 0 then
  count@, given = math.max(0, count@ - cost), true
end

--- keep
value@ = string.format('%.0f:%.0f:%.0f', start@, count@, written@)
redis.call('SET', KEYS[@], value@, 'PX', math.max(1, math.ceil((start@ + window@ - now) / 1000)))

--- state
start@, count@
