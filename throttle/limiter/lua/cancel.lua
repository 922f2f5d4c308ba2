-- Purpose: takes a charge back whose slot has not come.
-- Guarantee: all is as before if nothing was charged since. Otherwise what came after keeps its
-- slot, and no more is given back than leaves it within the rules. A caller cancels a
-- charge no second time.
-- KEYS[i]     value of the i-th rule
-- ARGV[1]     cost that was charged
-- ARGV[2]     its slot, µs since 1970
-- ARGV[3..]   for each rule the value before and after the charge, and what its algorithm takes
-- Reply: 1, or 0 if the slot has come.

local slot, reserves = tonumber(ARGV[2]), true
if slot <= now then return 0 end

-- Puts the value before a charge back, if that after it is still there.
local function restored(name, before, after)
  if after == '' or redis.pcall('GET', name) ~= after then return false end
  if before == '' then
    redis.call('DEL', name)
  else
    redis.call('SET', name, before, 'KEEPTTL')
  end
  return true
end

--@ each
if not restored(KEYS[@], ARGV[-1@], ARGV[0@]) then
--@ read
local given = false
--@ give back
  if (given or moved) and damaged == 0 then -- else it is of other rules
--@ keep
  end
end
--@ end
return 1
