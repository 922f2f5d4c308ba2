-- What a forecast of departures starts from: a bucket and its parents as they stand.
--
-- For each from the key up a line of "level out paused cool ramped share flight run period burst",
-- a line with its policy, and a line for each of its quotas: "window used" of a fixed
-- one, "used instant cost instant cost …" of a sliding one that is near its limit.

local POINTS = 128 -- of a sliding window's log, at most

local function log_points(q)
  local points, part, n = {}, 0, 0
  local every = math.ceil(redis.call('ZCARD', q.log) / POINTS)
  for from = 0, 4096, 512 do
    local page = redis.call('ZRANGE', q.log, from, from + 511, 'WITHSCORES')
    for i = 1, #page, 2 do
      part, n = part + tonumber(string.match(page[i], ' (%S+)$') or 0), n + 1
      if n % every == 0 then
        points[#points + 1] = int(tonumber(page[i + 1])) .. ' ' .. exact(part)
        part = 0
      end
    end
    if #page < 1024 then
      if part > 0 then points[#points + 1] = int(tonumber(page[#page])) .. ' ' .. exact(part) end
      break
    end
  end
  return table.concat(points, ' ')
end

-- How much of a parent's rate is one child's, as long as the others that wait for
-- their turn go on to.
local function share_of(parent, child)
  local names = redis.call('ZRANGE', SHARD .. 'r:' .. parent.key, 0, 15)
  local others, weight = 0, 0
  for _, name in ipairs(names) do
    if name ~= child.key then
      others, weight = others + 1, weight + (name == '' and 1 or bucket(name).weight)
    end
  end
  if others == 0 then return 1 end
  local all = redis.call('ZCARD', SHARD .. 'r:' .. parent.key)
  if redis.call('ZSCORE', SHARD .. 'r:' .. parent.key, child.key) then all = all - 1 end
  return child.weight / (child.weight + weight * all / others)
end

-- Call it after what has changed was stored: it loads siblings.
local function outlook(b)
  local lines = {}
  for i, x in ipairs(chain(b)) do
    leak(x)
    local share = i > 1 and share_of(x, b.chain[i - 1]) or 1
    lines[#lines + 1] = exact(x.level) .. ' ' .. exact(x.out + x.below) .. ' ' .. (x.paused and 1 or 0) .. ' ' .. int(x.cool)
      .. ' ' .. int(x.ramped or 0) .. ' ' .. exact(share) .. ' ' .. int(x.flight) .. ' ' .. int(x.run)
      .. ' ' .. int(x.period) .. ' ' .. int(x.burst)
    lines[#lines + 1] = x.policy
    for _, q in ipairs(load_quotas(x)) do
      if not q.sliding then
        lines[#lines + 1] = int(q.id) .. ' ' .. exact(q.used)
      elseif q.used > 0 and q.used + x.out + x.below + b.backlog + 1 > q.limit then
        lines[#lines + 1] = exact(q.used) .. ' ' .. log_points(q)
      else
        lines[#lines + 1] = exact(q.used)
      end
    end
  end
  return table.concat(lines, '\n')
end
