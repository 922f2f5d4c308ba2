-- The sliding window counter: the arithmetic of slidingcounter.go.
-- Stored: start of the window, count, count of the window before, latest slot, when a slot
-- ahead was charged last (the last two are 0 if none was).
-- ARGV[1@]    length of a window, µs
-- ARGV[2@]    most cost
-- State: start of the window, count, count of the window before, latest slot ahead.

--- read
local window@, most@ = tonumber(ARGV[1@]), tonumber(ARGV[2@])
local start@, count@, earlier@, last@, written@ = 0, 0, 0, 0, 0
local value@ = redis.pcall('GET', KEYS[@])
if value@ then
  local start, count, before, last, written = string.match(type(value@) == 'string' and value@ or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if start and math.max(start, count, before, last, written) < EXACT then
    start@, count@, earlier@ = tonumber(start), tonumber(count), tonumber(before)
    last@, written@ = tonumber(last), tonumber(written)
  else
    damaged = damaged + 1
  end
end
local back@ = (written@ > 0 and written@ or start@) - now
if back@ > 0 then
  -- What was charged in a window that is now to come counts as that of the last one.
  earlier@, count@ = math.min(most@, math.max(earlier@, count@)), 0
  last@ = math.max(0, last@ - back@)
  start@ = math.max(now, last@)
  written@, moved = math.min(written@, now), true
end
start@ = start@ - start@ % window@ -- it may have had another length

-- Begins the window of an instant, if it is another one.
local function roll@(at)
  local start = at - at % window@
  if start@ + 2 * window@ <= start then
    earlier@, count@ = 0, 0
  elseif start@ + window@ <= start then
    earlier@, count@ = count@, 0
  end
  start@ = start
end
roll@(math.max(start@, now))

--- slot
local free@ = most@ - count@ - cost
if free@ >= 0 then
  slot = math.max(slot, last@, start@ + weighs(window@, earlier@, free@))
else
  slot = math.max(slot, last@, start@ + window@ + weighs(window@, count@, most@ - cost))
end

--- charge
roll@(slot)
count@, last@, written@ = count@ + cost, 0, 0
if slot > now then last@, written@ = slot, now end

--- give back
if slot >= start@ and slot < start@ + window@ and count@ > 0 then
  count@, given = math.max(0, count@ - cost), true
elseif slot >= start@ - window@ and slot < start@ and earlier@ > 0 then
  earlier@, given = math.max(0, earlier@ - cost), true
end

--- keep
value@ = string.format('%.0f %.0f %.0f %.0f %.0f', start@, count@, earlier@, last@, written@)
redis.call('SET', KEYS[@], value@, 'PX', math.max(1, math.ceil((start@ + 2 * window@ - now) / 1000)))

--- state
start@, count@, earlier@, last@
