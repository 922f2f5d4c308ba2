-- What all scripts begin with, after a clock that makes the local now, in µs.

local EXACT = 9007199254740992 -- a Lua number holds whole numbers below it exactly
local damaged = 0 -- values that could not be read, which count as none
local cost = tonumber(ARGV[1])
