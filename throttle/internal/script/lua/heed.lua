-- What the other side of a key's calls said about its pace, and how its calls fare: stored
-- in a bucket as "rest factor edge refused tuned fails failing opened ratio calls off since".
--   rest      instant until which the key rests: it cools down, or its circuit is open
--   factor    of the policy's rate and burst, where the policy adapts; at most 1
--   edge      factor at which a call was refused last, 0: none was
--   refused   instant of that
--   tuned     instant at which the factor was raised last
--   fails     calls that failed in a row
--   failing   instant of the first of them
--   opened    how often in a row the circuit opened, 0: it is closed. Once it has rested one
--             call at a time goes, until one succeeds
--   ratio     of calls that fail, of late; calls: how many of these there were
--   off       instant at which the key was paused since its calls kept failing, 0: it is not
--   since     instant at which the circuit opened last: runs that departed before say nothing of it
-- See listen.lua for what becomes of it when a run ends.

local said = {} -- one local for all: scripts may not have many more than they have
do
  local SAID = { 'rest', 'factor', 'edge', 'refused', 'tuned', 'fails', 'failing', 'opened', 'ratio', 'calls', 'off', 'since' }

  -- Nothing was said.
  function said.none()
    return { rest = 0, factor = 1, edge = 0, refused = 0, tuned = 0, fails = 0, failing = 0, opened = 0, ratio = 0, calls = 0, off = 0, since = 0 }
  end

  function said.parse(text)
    if not text or text == '' then return nil end
    local s, i = said.none(), 0
    for word in string.gmatch(text, '%S+') do
      i = i + 1
      local n = tonumber(word)
      if not SAID[i] or not n or not (n >= 0 and n <= 9007199254740991) then return nil end
      s[SAID[i]] = n
    end
    if i ~= #SAID or s.factor <= 0 or s.factor > 1 then return nil end
    return s
  end

  function said.text(s)
    local list = {}
    for i, field in ipairs(SAID) do list[i] = string.format('%.10g', s[field]) end
    for _, i in ipairs({ 1, 4, 5, 7, 11, 12 }) do list[i] = int(s[SAID[i]]) end
    return table.concat(list, ' ')
  end

  -- The lowest factor that the policy has.
  function said.floor(b)
    local floor = b.more.floor
    return math.min(1, floor and floor[1] / floor[2] * b.policy_period / b.rate or 0.01)
  end

  -- Has a bucket keep to it, on top of what its policy and holds say.
  function said.heed(b)
    local s = b.said
    b.period, b.burst = b.policy_period, b.policy_burst
    if not s then return end
    local mode, cut = b.more and b.more.say, b.more and b.more.cut
    local open = cut and s.opened > 0
    if open or mode ~= 'x' and s.opened == 0 then b.cool = math.max(b.cool, s.rest) end
    if s.off > 0 then b.paused = true end
    if open then b.max = 1 end
    if mode == 'a' and s.factor < 1 then
      local factor = math.max(s.factor, said.floor(b)) -- the policy may have changed
      b.period = math.min(FOREVER, math.ceil(b.policy_period / factor))
      b.burst = math.max(1, math.floor(b.policy_burst * factor))
    end
  end

  -- How long it is worth keeping for a key without jobs.
  function said.worth(b)
    local s, cut = b.said, b.more and b.more.cut
    if s.off > 0 then return FOREVER end
    local keep = math.max(0, s.rest - now)
    if s.fails > 0 or s.opened > 0 or cut and cut[2] > 0 and s.calls > 0 then return math.max(keep, 86400000000) end
    if s.factor < 1 then return math.max(keep, s.tuned + 3600000000 - now) end
    return keep
  end
end
