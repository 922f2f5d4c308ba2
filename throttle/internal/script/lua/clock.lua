-- Reads the only clock that decides anything: Redis' own.
-- Guarantee: an integer number of microseconds, which a Lua number holds exactly.

local function server_time()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end
