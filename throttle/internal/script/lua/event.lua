-- Events: a stream of what became of keys and, where their policies want that, of their jobs. Of each shard about the
-- last 10 000 are kept. Fields: w(hat), k(ey); of a job i(d) and n, its attempt; else n is a number
-- that says more; d, a text that does.
local function event(key, what, id, n, detail)
  redis.call('XADD', SHARD .. 'events', 'MAXLEN', '~', 10000, '*', 'w', what, 'k', key, 'i', id, 'n', int(n), 'd', detail)
end
