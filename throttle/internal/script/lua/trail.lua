-- The audit trail: who changed what, the newest ten thousand changes of a shard.

local function trail(who, what, name, old, new)
  redis.call('XADD', SHARD .. 'trail', 'MAXLEN', '~', 10000, '*',
    'who', who, 'what', what, 'name', name, 'old', old, 'new', new)
end
