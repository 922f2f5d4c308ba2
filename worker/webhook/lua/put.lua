-- Purpose: writes the record of one endpoint, or removes it.
-- Guarantee: all or nothing, and only if the record is still the one that the caller read. What is
-- written already counts as written, so a call may be sent again.
--
-- KEYS[1]     hash of the endpoints: id -> record, and ":version" -> any text that changes with each write
-- ARGV[1]     id
-- ARGV[2]     record that is there, "" for none
-- ARGV[3]     record to write, "" to remove it
-- ARGV[4]     version, a text that was never used before
-- Reply: 1 written, 0 the record is another

local there = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if there == ARGV[3] then
  return 1
end
if there ~= ARGV[2] then
  return 0
end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
redis.call('HSET', KEYS[1], ':version', ARGV[4])
return 1
