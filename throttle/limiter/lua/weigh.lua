-- How long after the start of a window the count of the one before weighs no more than is free.
local function weighs(window, count, free)
  if count <= free then return 0 end
  return window - muldiv(window, free, count)
end
