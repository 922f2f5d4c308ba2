-- What a history has been told of the policy in force: see history.lua.

do
  local REST = 86400000 -- ms that it is kept after the last departure

  log_entry = function(x, text)
    local name = SHARD .. 'h:' .. x.key
    redis.call('XADD', name, 'MAXLEN', '~', int(x.more.log), '*', 'e', text)
    redis.call('PEXPIRE', name, int(REST))
  end

  -- Tells of the policy in force, if the history has not yet: as soon as a bucket takes it
  -- over, since it leaks at its rate from then on.
  log_policy = function(x)
    if not (x.more and x.more.log) then
      x.told = ''
    elseif x.told ~= x.policy then
      -- The entry that told of the old one may have been dropped.
      if x.told ~= '' then log_entry(x, 'o ' .. int(now) .. ' ' .. x.told) end
      log_entry(x, 'p ' .. int(now) .. ' ' .. x.policy)
      x.told = x.policy
    end
  end
end
