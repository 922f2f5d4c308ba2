-- Purpose: take.lua, so that the charge can be cancelled.
-- Reply: that of take.lua, then for each rule the value before and after, '' for none.

-- A value as Redis has it, or ''.
local function text(value)
  if type(value) == 'number' then return string.format('%.0f', value) end
  return type(value) == 'string' and value or ''
end

--@ each
reply[#reply + 1], reply[#reply + 2] = text(before@), text(value@)
--@ end
