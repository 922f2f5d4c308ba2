-- The leaky bucket, as a meter and as a queue: the arithmetic of leakybucket.go.
-- Stored: the instant at which it will be empty, µs, and a fraction of one in parts of the reduced
-- rate. Without parts it is the µs alone, with less than 1000 of them their three digits follow those of the
-- µs: whole numbers, which Redis keeps in 16 bytes. With more of them, or where a slot ahead was charged, it
-- is three numbers: µs, parts, and when that was (0 if none was).
-- ARGV[1@]    reduced rate
-- ARGV[2@]    time in which the cost leaks, µs
-- ARGV[3@]    parts to add to that
-- ARGV[4@]    time in which the burst leaks, µs
-- ARGV[5@]    parts to add to that
-- State: instant, parts.

--- read
local rate@, leak@, leak_parts@ = tonumber(ARGV[1@]), tonumber(ARGV[2@]), tonumber(ARGV[3@])
local fill@, fill_parts@ = tonumber(ARGV[4@]), tonumber(ARGV[5@])
local at@, parts@, written@ = now, 0, 0
local value@ = redis.pcall('GET', KEYS[@])
if value@ then
  local n = tonumber(value@)
  if n and n - now < FAR then
    at@ = n
  else
    local at, parts, written
    if n and #value@ == 19 and string.find(value@, '^%d+$') then
      at, parts, written = tonumber(string.sub(value@, 1, -4)), tonumber(string.sub(value@, -3)), 0
    else
      at, parts, written = string.match(type(value@) == 'string' and value@ or '', '^(%d+) (%d+) (%d+)$')
    end
    if at and math.max(at, parts, written) < EXACT and at - now < FAR then
      at@, parts@, written@ = tonumber(at), tonumber(parts), tonumber(written)
    else
      damaged = damaged + 1
    end
  end
  if parts@ >= rate@ then at@, parts@ = at@ + 1, 0 end -- of another rate
  if written@ > now then
    at@, written@, moved = at@ - (written@ - now), now, true
  elseif written@ == 0 and (at@ - now > fill@ or at@ - now == fill@ and parts@ > fill_parts@) then
    at@, parts@, moved = now + fill@, fill_parts@, true
  end
  if at@ < now then at@, parts@ = now, 0 end
end

--- slot
if reserves and QUEUE@ then -- when all before it have left
  slot = math.max(slot, parts@ > 0 and at@ + 1 or at@)
else
  local ready = at@ - fill@ + leak@
  local over = parts@ + leak_parts@ - fill_parts@
  if over > rate@ then
    ready = ready + 2
  elseif over > 0 then
    ready = ready + 1
  end
  if ready > slot then slot = ready end
end

--- charge
if at@ < slot and not (QUEUE@ and parts@ > 0 and at@ + 1 == slot) then at@, parts@ = slot, 0 end
at@, parts@ = at@ + leak@, parts@ + leak_parts@
if parts@ >= rate@ then at@, parts@ = at@ + 1, parts@ - rate@ end
written@ = slot > now and now or 0

--- give back
-- Others have got the room that comes next.

--- keep
if written@ > 0 or parts@ > 999 then
  value@ = string.format('%.0f %.0f %.0f', at@, parts@, written@)
elseif parts@ > 0 then
  value@ = string.format('%.0f%03d', at@, parts@)
else
  value@ = at@
end
redis.call('SET', KEYS[@], value@, 'PX', math.max(1, math.ceil((at@ + 1 - now) / 1000)))

--- state
at@, parts@
