-- Events: a stream of what became of keys and, where that is asked for, of jobs, of which about the last 10 000 are
-- kept: "what detail key".
local function event(key, what, detail)
  redis.call('XADD', SHARD .. 'events', 'MAXLEN', '~', 10000, '*', 'e', what .. '\n' .. detail .. '\n' .. key)
end
