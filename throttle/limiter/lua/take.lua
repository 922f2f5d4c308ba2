-- Purpose: decides whether a cost may be charged to all rules of a key, and charges it.
-- Guarantee: it is charged to all of them, at one slot, or to none. A denial writes nothing, but for what a
-- clock that stepped back, or a lowered burst, has changed. Every name that is written has an expiry: the instant from which it would count as none.
-- KEYS[i]     value of the i-th rule
-- ARGV[1]     cost, from 1 to the most of every rule
-- ARGV[2]     longest wait for the slot, µs; -1 charges nothing in any case
-- ARGV[3..]   for each rule what its algorithm takes
-- Reply: now, wait for the slot (µs), for each rule the state after that, how many values were damaged.

--@ each
--@ read
--@ end
local slot = now
--@ each
--@ slot
--@ end
--@ each
local before@ = value@
--@ end
local charged, given = slot - now <= tonumber(ARGV[2]), false
if charged then
--@ each
--@ charge
--@ end
end
if charged or moved then
--@ each
--@ keep
--@ end
end
local reply = {
  now, slot - now,
--@ each
--@ state
  ,
--@ end
  damaged,
}
