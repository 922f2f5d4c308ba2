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
--        in µs; run number; attempt; rate; period in µs; burst; the parent with the
--        shortest interval ("" for none), its rate, period and burst; 1 if an operator
--        has it leave past the limit, else 0; its deadline in µs (0: none); encoded job
--        (only when it departs for the first time)

go_on_when_full()
lead = tonumber(ARGV[1])
local lease, token = tonumber(ARGV[2]), ARGV[3]
local GONE, GO, PARKED = 0, 1, 2

local reply = { now }

-- The parent that a worker has to space its departures by most closely.
local function fastest_parent(b)
  local fastest
  for i, x in ipairs(chain(b)) do
    if i > 1 and (not fastest or x.period / x.rate < fastest.period / fastest.rate) then fastest = x end
  end
  return fastest or { key = '', rate = 0, period = 0, burst = 0 }
end

local function answer(b, status, slot, r, blob)
  local n = #reply
  reply[n + 1], reply[n + 2] = status, slot
  reply[n + 3], reply[n + 4] = r and r.run or 0, r and r.attempt or 0
  reply[n + 5], reply[n + 6], reply[n + 7] = b.rate, b.period, b.burst
  local up = fastest_parent(b)
  reply[n + 8], reply[n + 9], reply[n + 10], reply[n + 11] = up.key, up.rate, up.period, up.burst
  reply[n + 12], reply[n + 13] = r and marked(r, 'f') and 1 or 0, r and r.deadline or 0
  reply[n + 14] = blob or ''
end

local function held(r, release, run, blob)
  if not r or r.release ~= release then return false end
  if run == 0 then return r.state == 'r' and blob end
  return r.state == 'g' and r.run == run
end

-- A job that was on its way for long, while no other departed, found no worker: a ramp
-- begins anew.
local function after_outage(b, r)
  if now - r.release * 1000 <= OUTAGE then return end
  for _, x in ipairs(chain(b)) do
    if x.more and x.more.ramp and now - math.max(x.last or 0, x.outage or 0) > OUTAGE then
      x.kin, x.outage = true, now
      adopt(x)
    end
  end
end

-- A slot that was missed was not used: quotas do not count it. The level keeps it, for
-- it leaked while the slot passed.
local function uncount_missed(b, r)
  for _, x in ipairs(chain(b)) do
    for _, q in ipairs(load_quotas(x)) do uncount(x, q, r.slot, r.cost) end
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
      forget(b, id, r)
    end
    answer(b, GONE, 0)
  else
    if run == 0 then
      after_outage(b, r)
    else
      uncount_missed(b, r)
    end
    local forced = marked(r, 'f')
    local wait = forced and 0 or chain_wait(b, r.cost)
    local parked = wait > 2 * lead
    local late = not parked and r.expires > 0 and now + wait > r.expires
    if run > 0 and (parked or late) and marked(r, 'l') then
      land(b, id, r)
      forget(b, id, r)
      tally('cancelled', 1)
      answer(b, GONE, 0)
    elseif parked or late then
      if run > 0 then
        r.attempt = r.attempt - 1
        log_settlement(b, id, r, -r.cost) -- it has not departed after all
      end
      if late then r.expires = now end -- release ends it
      wake = wake or late
      land(b, id, r)
      rejoin(b, id, r)
      answer(b, PARKED, 0, r)
    else
      if run == 0 then
        r.attempt = r.attempt + 1
        b.out = math.max(0, b.out - r.cost)
        if b.up then count_below(b, -r.cost) end
        tally('departed', 1)
      end
      b.since = now
      r.state, r.run, r.token, r.slot = 'g', r.run + 1, token, now + wait
      if r.expires ~= r.deadline then
        r.expires = r.deadline
        redis.call('ZREM', SHARD .. 'expiry', ref(key, id))
      end
      charge(b, r.cost, r.slot)
      log_departure(b, id, r, run)
      put(b, id, r)
      redis.call('ZADD', SHARD .. 'lease', int(r.slot + lease), ref(key, id))
      answer(b, GO, r.slot, r, blob)
    end
  end
end
rearm_all()
commit()
return reply
