-- What every script stands on: the names of a shard's keys and its clock. KEYS[1]
-- is always the shard's due set; its name up to 'due' is the prefix of all that the
-- script touches, so everything is in the hash slot of KEYS[1].
--
--   due            sorted set: bucket -> instant at which it is next worth looking at,
--                  FAR if something else will say so; every bucket with jobs is in it
--   clock          "last offset grace": see shard_time
--   sweep          cursor over due while a change of rules is being passed on
--   version        "n live hold patterns shards": counts the changes of rules, and
--                  tells which of these tables are empty; shards is 0 without families
--   file, live     hash: name -> policy, see policy.lua
--   hold           hash: name -> "paused draining cool resumed", see policy.lua
--   patterns       sorted set: pattern in any of the three -> less its literal bytes
--   zone:NAME      sorted set: "instant offset" -> instant from which it is in force
--   lease          sorted set: "id key" of a job in flight -> end of its lease
--   expiry         sorted set: "id key" of a job -> instant at which it expires
--   forced         sorted set: "id key" of a job that an operator has leave -> since when
--   dead           sorted set: "id key" of a dead job -> instant of its death
--   done           sorted set: "id key" of a job that is done and kept -> end of that
--   ended:job      hash: "id key" of a dead or done job -> encoded job
--   ended:why      hash: "id key" -> "dead|done attempts cost priority pool reason"
--   ended:log      hash: "id key" -> its attempts, see record.lua
--   most           string: jobs that may wait in all shards together
--   stats          hash: counter -> number, see store.lua
--   moving         set: key whose jobs belong to another shard
--   trail          stream: who changed what
--   events         stream: what became of keys and jobs, see event.lua
--   b:KEY          hash: the bucket, see bucket.lua
--   w:KEY          sorted set: waiting job -> its place in the line
--   d:KEY          sorted set: delayed job -> instant at which it joins the line again
--   j:KEY          hash: job -> encoded job
--   s:KEY          hash: job -> record (see record.lua); a waiting job that was never
--                  released has none if nothing about it is out of the ordinary
--   f:KEY          sorted set: job in flight -> instant of its release
--   a:KEY          hash: job -> its attempts so far, see record.lua
--   x:KEY          sorted set: dead or done job that is kept -> instant of its end
--   h:KEY          stream: departures, see history.lua
--   u:NAME KEY     string: "id since" of the job that has a name, " d" behind it if it is
--                  done, see names.lua
--   q:PER:KEY      sorted set: "first cost" -> last instant, of what left in a sliding
--                  window of PER µs
--   reply:NAME     string: what a call was answered, for when it is repeated
--   arrived        sorted set: "id seq key" -> instant at which it came from another shard
--   none           never there, see go_on_when_full
--   r:KEY          sorted set: child that is ready -> start tag, see family.lua
--   m:KEY          sorted set: child with a minimum -> instant from which it is owed
--
-- Instants are microseconds of the shard's time. Cost is in cost units.

local DUE = KEYS[1]
local SHARD = string.sub(DUE, 1, -4)
local WAKE = 'weir:wake'

-- Beyond every instant: the greatest whole number that is exact.
local FAR = 9007199254740991

-- Stands for every longer wait, µs: 158 years. Sums with an instant stay exact, and
-- no command refuses it as out of range.
local FOREVER = 5000000000000000

-- Nobody saw to a bucket for that long: an outage.
local OUTAGE = 30000000

-- How long before its slot a job is released, µs. Scripts that are told set it.
local lead = 100000

local function int(n) return string.format('%.0f', n) end
local function exact(n) return string.format('%.17g', n) end

-- The number that a text says, nil unless it is a sane one: what is stored may have been
-- damaged, and "nan" would spread.
local function finite(text)
  local n = tonumber(text or '')
  return n and n == n and n <= FAR and n >= -FAR and n or nil
end

local real = server_time()

-- Bookkeeping must go on when memory is full, or nothing could end and make room.
-- Redis refuses a script's writes only until it has made one that cannot grow.
local function go_on_when_full() redis.call('DEL', SHARD .. 'none') end

-- The shard's time never steps back. When the server's clock does, the offset
-- takes up the difference: nothing leaks for the step and nothing waits for the
-- clock to catch up. After a gap, a jump forward or an outage, leases are held good
-- for the time in grace, so that live holders can renew them.
-- Written once in 50 ms at most; within those an instant may lie ahead, which leak()
-- takes care of, and what is due after a step back comes that much later.
local GAP, GRACE = 60000000, 30000000
local grace = 0
local function shard_time()
  local last, offset, until_ = string.match(redis.call('GET', SHARD .. 'clock') or '', '^(%d+) (%d+) (%d+)$')
  last, offset, grace = tonumber(last or 0), tonumber(offset or 0), tonumber(until_ or 0)
  local t = real + offset
  if t < last then
    offset = last - real
    t = last
  end
  if last > 0 and t - last > GAP then grace = t + GRACE end
  if t - last >= 50000 or t == last then
    -- A full server refuses this; the next call that goes through makes up for it.
    redis.pcall('SET', SHARD .. 'clock', int(t) .. ' ' .. int(offset) .. ' ' .. int(grace))
  end
  return t
end

local now = shard_time()

local function ref(key, id) return id .. ' ' .. key end

-- How long until the first instant of a sorted set, -1 if there is none.
local function time_to_first(name)
  local head = redis.call('ZRANGE', name, 0, 0, 'WITHSCORES')
  if not head[2] or tonumber(head[2]) >= FAR then return -1 end
  return math.max(0, tonumber(head[2]) - now)
end
