-- History: a bounded log of a key's departures, for keys whose policy asks for one.
-- Its entries are texts of a letter and fields, in the order of their instants:
--   o  instant policy                              in force until then
--   p  instant policy                              in force from then on
--   d  slot cost run missed attempt forced id key  a departure, and the run whose slot
--                                                  it gave up (0: none); f if forced
--   s  instant off run id key                      what that run cost more, or less

-- Writes a departure into the histories of a bucket and its parents.
local function log_departure(b, id, r, missed)
  for _, x in ipairs(chain(b)) do
    if x.more and x.more.log then
      log_policy(x)
      log_entry(x, 'd ' .. int(r.slot) .. ' ' .. int(r.cost) .. ' ' .. int(r.run) .. ' ' .. int(missed)
        .. ' ' .. int(r.attempt) .. ' ' .. (marked(r, 'f') and 'f' or '-') .. ' ' .. id .. ' ' .. b.key)
    else
      x.told = ''
    end
  end
end

local function log_settlement(b, id, r, off)
  for _, x in ipairs(chain(b)) do
    if x.more and x.more.log and x.told ~= '' then
      log_entry(x, 's ' .. int(now) .. ' ' .. int(off) .. ' ' .. int(r.run) .. ' ' .. id .. ' ' .. b.key)
    end
  end
end
