-- Purpose: decides whether a cost may be charged to all rules of a key, and charges it.
-- Guarantee: it is charged to all of them, at one slot, or to none; a denial writes
-- nothing. Every name that is written has an expiry: the instant from which it would count
-- as none.
-- KEYS[i]     value of the i-th rule
-- ARGV[1]     cost, from 1 to the most of every rule
-- ARGV[2]     longest wait for the slot, µs; -1 charges nothing in any case
-- ARGV[3]     "hold" if the charge may be cancelled, else ""
-- ARGV[4..]   for each rule its algorithm and what that one takes, see the files of these
-- Reply: names that were damaged, now, wait for the slot (µs), then for each rule the state after
-- that (see its file); with "hold" also the value of each rule before and after ("" for none).

local patience, hold = tonumber(ARGV[2]), ARGV[3] == 'hold'
local slot, a = now, 4
local meters = {}
for i, name in ipairs(KEYS) do
  local kind = algorithms[ARGV[a]]
  local m = kind.read(name, a + 1)
  m.kind = kind
  slot = math.max(slot, kind.slot(m))
  meters[i] = m
  a = a + 1 + kind.arguments
end

local values = {}
for i, name in ipairs(KEYS) do
  if slot - now > patience then break end
  local m = meters[i]
  if hold then values[#values + 1] = held(name) end
  m.kind.charge(m, name, slot)
  if hold then values[#values + 1] = held(name) end
end

local reply = { damaged, now, slot - now }
for _, m in ipairs(meters) do
  for _, x in ipairs({ m.kind.state(m) }) do reply[#reply + 1] = x end
end
for _, v in ipairs(values) do reply[#reply + 1] = v end
return reply
