-- Purpose: gives each job of a parcel its exact slot and charges its bucket and all
-- parents of it.
-- Guarantee: the slots given out keep departed cost <= burst + rate × time in every
-- window, and every quota, of the key and of its parents; what one of them refuses
-- is charged to none. A job that is not held under the given numbers is not touched.
-- The same token gets the same slot.
--
-- KEYS[1]     due set of the shard
-- ARGV[1]     lead, µs; a job that would wait longer than twice the lead goes back
-- ARGV[2]     lease of a job in a worker's hands, µs beyond its slot
-- ARGV[3]     token of the call
-- ARGV[4..]   groups of 4: key, id, release number, run number (0: departs for the
--             first time since its release; else it missed the slot of that run)
-- Reply: the shard's time in µs, then for each job: 0 gone, 1 go or 2 parked; slot
--        in µs; run number; attempt; rate; period in µs; burst; the shortest interval
--        of a parent in µs, 0 without parents; encoded job (only when it departs for
--        the first time)

go_on_when_full()
lead = tonumber(ARGV[1])
local lease, token = tonumber(ARGV[2]), ARGV[3]
local GONE, GO, PARKED = 0, 1, 2
local OUTAGE = 30000 -- ms

local reply = { now }

local function interval_above(b)
  local shortest = 0
  for i, x in ipairs(chain(b)) do
    if i > 1 then
      local t = math.max(1, math.floor(x.period / x.rate))
      if shortest == 0 or t < shortest then shortest = t end
    end
  end
  return shortest
end

local function answer(b, status, slot, r, blob)
  local n = #reply
  reply[n + 1], reply[n + 2] = status, slot
  reply[n + 3], reply[n + 4] = r and r.run or 0, r and r.attempt or 0
  reply[n + 5], reply[n + 6], reply[n + 7] = b.rate, b.period, b.burst
  reply[n + 8] = b.up and interval_above(b) or 0
  reply[n + 9] = blob or ''
end

local function held(r, release, run, blob)
  if not r or r.release ~= release then return false end
  if run == 0 then return r.state == 'r' and blob end
  return r.state == 'g' and r.run == run
end

-- Jobs that were on their way for long found no worker: a ramp begins anew.
local function after_outage(b, r)
  if b.more and b.more.ramp and now / 1000 - r.release > OUTAGE and (b.outage or 0) / 1000 < r.release then
    b.kin, b.outage = true, now
    adopt(b)
  end
end

for i = 4, #ARGV, 4 do
  local key, id, release, run = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local b = bucket(key)
  leak(b)
  local r = parse(redis.call('HGET', b.s, id))
  local blob = run == 0 and redis.call('HGET', b.j, id)
  if r and r.state == 'g' and r.release == release and r.token == token then
    answer(b, GO, r.slot, r, blob)
  elseif not held(r, release, run, blob) then
    if run == 0 and r and r.state == 'r' and r.release == release and not blob then
      land(b, id, r)
      forget(b, id)
    end
    answer(b, GONE, 0)
  else
    if run == 0 then after_outage(b, r) end
    local wait = chain_wait(b, r.cost)
    if wait > 2 * lead then
      if run > 0 then r.attempt = r.attempt - 1 end
      land(b, id, r)
      rejoin(b, id, r)
      answer(b, PARKED, 0, r)
    else
      if run == 0 then
        r.attempt = r.attempt + 1
        b.out = math.max(0, b.out - r.cost)
        if b.up then count_below(b, -r.cost) end
      end
      r.state, r.run, r.token, r.slot = 'g', r.run + 1, token, now + wait
      charge(b, r.cost, r.slot)
      put(b, id, r)
      redis.call('ZADD', SHARD .. 'lease', int(r.slot + lease), ref(key, id))
      answer(b, GO, r.slot, r, blob)
    end
  end
end
rearm_all()
commit()
return reply
