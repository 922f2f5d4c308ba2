-- What all scripts begin with, after a clock that makes the local now, in µs.

local EXACT = 9007199254740992 -- a Lua number holds whole numbers below it exactly
local FAR = 5100000000000000 -- µs: nothing that is stored lies that far ahead
local moved = false -- the clock stepped back, or a lowered burst had more in it: that is kept in any case
local damaged = 0 -- values that could not be read, which count as none
local cost = tonumber(ARGV[1])
