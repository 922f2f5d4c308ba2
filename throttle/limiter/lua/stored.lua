-- What the algorithms share. What they store are texts of whole numbers, each with an expiry.

local format, match, sub = string.format, string.match, string.sub
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local EXACT = 9007199254740992 -- a Lua number holds whole numbers below it exactly
local damaged = 0 -- values that could not be read, which count as none
