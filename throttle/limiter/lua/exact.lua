-- Exact arithmetic on whole numbers, which a Lua number holds up to 2^53.

-- a * b / c rounded down, and what remains, of whole numbers from 0: a and the result below 2^53,
-- b below 2^30, c below 2^45. Where the product is more than a number holds, b goes in piece by piece.
local function muldiv(a, b, c)
  if a * b < 9007199254740992 then
    local quotient = math.floor(a * b / c)
    return quotient, a * b - quotient * c
  end
  local whole = math.floor(a / c)
  a = a - whole * c
  local quotient, rest = 0, 0
  for place = 4, 0, -1 do
    local digit = math.floor(b / 64 ^ place) % 64
    rest = rest * 64 + a * digit
    local part = math.floor(rest / c)
    rest = rest - part * c
    quotient = quotient * 64 + part
  end
  return whole * b + quotient, rest
end
