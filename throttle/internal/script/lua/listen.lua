-- How a key listens to the other side when a run of it ends: a verdict of "ok", "failed", "refused" or ""
-- (none), and how long it was told to rest.

local listen
do -- scripts may not have many more locals than they have
  -- A call that was refused lowers the rate to half of what it was, or to nine tenths near the edge that is
  -- known. From there it nears the edge in a few seconds, and then creeps up ever faster until it finds it
  -- again (after CUBIC, RFC 9438): the edge moves.
  local NEAR, KNOWN, NEW = 0.95, 0.9, 0.5

  local function lower(b, s, r)
    if r.slot <= s.refused then return end -- it left before the rate was lowered
    local floor = said.floor(b)
    local known = s.edge > 0 and s.factor > 0.8 * s.edge
    s.edge, s.refused, s.tuned = s.factor, now, now
    s.factor = math.min(1, math.max(floor, s.factor * (known and KNOWN or NEW)))
  end

  local function raise(b, s, r)
    if s.factor >= 1 or r.slot <= s.refused then return end
    if b.backlog == 0 then
      s.tuned = now -- it was not the rate that held it
      return
    end
    local span = math.min(1, math.max(0, now - s.tuned) / 1000000)
    local since = math.max(0, now - s.refused) / 1000000
    s.tuned = now
    if s.factor < NEAR * s.edge then
      s.factor = s.factor + (s.edge - s.factor) * (1 - math.exp(-span / 3))
    else
      s.factor = s.factor + s.edge * 0.001 * (1 + since / 5) * span
    end
    s.factor = math.min(1, s.factor)
  end

  local function open_circuit(b, s)
    local cut = b.more.cut
    s.opened = s.opened + 1
    s.since = now
    s.rest = math.max(s.rest, now + cut[3] * 2 ^ math.min(5, s.opened - 1))
    event(b.key, 'opened', '', s.fails, int(s.rest + real - now))
  end

  local LATELY, FEWEST = 50, 20 -- calls that a ratio is of

  local function fare(b, s, r, failed)
    local cut = b.more and b.more.cut
    if not cut then -- nobody asks how calls fare, and what was counted for a circuit that there was is over
      if s.opened > 0 then s.rest = 0 end
      s.fails, s.failing, s.opened, s.calls, s.ratio = 0, 0, 0, 0, 0
      return
    end
    if s.opened > 0 and r.slot <= s.since then return end -- it left before the circuit opened
    s.calls = math.min(LATELY, s.calls + 1)
    s.ratio = s.ratio + ((failed and 1 or 0) - s.ratio) / s.calls
    if not failed then
      if s.opened > 0 then event(b.key, 'closed', '', s.fails, '') end
      if s.opened > 0 then s.calls, s.ratio = 0, 0 end
      s.fails, s.failing, s.opened = 0, 0, 0
      return
    end
    s.fails = s.fails + 1
    if s.fails == 1 then s.failing = now end
    local many = cut[1] > 0 and s.fails >= cut[1] or cut[2] > 0 and s.calls >= FEWEST and s.ratio >= cut[2]
    if s.opened > 0 and now >= s.rest or s.opened == 0 and many then open_circuit(b, s) end
    if cut[4] > 0 and now - s.failing >= cut[4] and s.off == 0 then
      s.off = now
      event(b.key, 'disabled', '', s.fails, '')
    end
  end

  function listen(b, r, verdict, rest)
    local cut = b.more and b.more.cut
    local counts = cut and cut[2] > 0
    local told = verdict == 'ok' and counts or verdict == 'failed' and cut or verdict == 'refused' or verdict ~= '' and b.said
    if rest == 0 and not told then return end
    local mode = b.more and b.more.say or 'o'
    if mode == 'x' and verdict == 'refused' then verdict = 'failed' end
    local s = b.said or said.none()
    local before, rate, rested, off = said.text(s), s.factor, math.max(now, s.rest), s.off
    leak(b)
    if verdict == 'failed' then fare(b, s, r, true) end
    if verdict == 'ok' then fare(b, s, r, false) end
    if mode == 'a' and verdict == 'refused' then lower(b, s, r) end
    if mode == 'a' and verdict == 'ok' then raise(b, s, r) end
    if mode ~= 'x' and rest > 0 and now + rest > s.rest then
      if s.rest <= now then event(b.key, 'cooled', '', 0, int(rest + real)) end
      s.rest = now + rest
    end
    if said.text(s) == before then return end
    b.said = s
    if s.rest <= now and s.factor == 1 and s.fails + s.opened + s.off == 0 and not counts then b.said = nil end
    adopt(b)
    if s.factor ~= rate then b.booked, b.changed = 0, now end
    if s.rest > rested or s.off > off then redis.call('PUBLISH', 'weir:cool', b.key) end
    b.stir = true
  end
end
