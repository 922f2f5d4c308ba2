-- Time of day in a named zone. Its offsets from UTC are stored by whoever wrote the
-- policy; between two of them local time runs like the server's.

local DAY, MINUTE, WEEK = 86400000000, 60000000, 10080

-- The offset of a zone at an instant, and the instant from which another holds.
local function offset_at(zone, at)
  if zone == '' then return 0, FAR end
  local name = SHARD .. 'zone:' .. zone
  local from = redis.call('ZREVRANGEBYSCORE', name, int(at), '-inf', 'LIMIT', 0, 1)
  local to = redis.call('ZRANGEBYSCORE', name, '(' .. int(at), '+inf', 'LIMIT', 0, 1, 'WITHSCORES')
  return tonumber(string.match(from[1] or '', ' (-?%d+)$') or 0), tonumber(to[2] or FAR)
end

-- The first instant from at on that find accepts. find gets local time and answers
-- with how long it is until what is sought, as local time runs.
local function first_local(zone, at, find)
  for _ = 1, 16 do
    local offset, change = offset_at(zone, at)
    local wait = find(at + offset)
    if at + wait < change then return at + wait end
    at = change
  end
  return at
end

-- The first instant from at on at which b's calendar is open.
local function open_from(b, at)
  local hours = b.more.open
  return first_local(hours[1], at, function(here)
    -- 1970 began on a Thursday.
    local minute = (here / MINUTE + 3 * 1440) % WEEK
    local wait = FAR
    for i = 2, #hours, 2 do
      if minute >= hours[i] and minute < hours[i + 1] then return 0 end
      wait = math.min(wait, (hours[i] - minute) % WEEK)
    end
    return math.ceil(wait * MINUTE)
  end)
end

-- The number of the fixed window that holds an instant, and its end.
local function window(per, zone, at)
  if zone == '' then
    local id = math.floor(at / per)
    return id, (id + 1) * per
  end
  local id = math.floor((at + offset_at(zone, at)) / DAY)
  return id, first_local(zone, at, function(here) return math.max(0, (id + 1) * DAY - here) end)
end
