-- Purpose: takes a charge back whose slot has not come.
-- Guarantee: all is as before if nothing was charged since. Otherwise what came after keeps its
-- slot, and no more is given back than leaves it within the rules. Once is enough: a
-- caller cancels a charge no second time.
-- KEYS[i]     value of the i-th rule
-- ARGV[1]     cost that was charged
-- ARGV[2]     its slot, µs since 1970
-- ARGV[3..]   for each rule its algorithm, what that one takes, and the values before and after the charge
-- Reply: 1, or 0 if the slot has come.

local slot, a = tonumber(ARGV[2]), 3
if slot <= now then return 0 end
for _, name in ipairs(KEYS) do
  local kind = algorithms[ARGV[a]]
  local before, after = ARGV[a + 1 + kind.arguments], ARGV[a + 2 + kind.arguments]
  if after == '' or held(name) ~= after then
    kind.give_back(kind.read(name, a + 1), name, slot)
  elseif before == '' then
    redis.call('DEL', name)
  else
    redis.call('SET', name, before, 'KEEPTTL')
  end
  a = a + 3 + kind.arguments
end
return 1
