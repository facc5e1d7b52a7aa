-- What is common to all providers: the epoch, who is there, and a copy of all pauses for
-- those who only listen.
--
-- KEYS: the common record, holders by the end of their lease, their names, the news.
-- ARGV: epoch, holder, lease, gone, renew, known version, least time; then of each provider whose
-- pauses have changed: name, version, how many, and of each scope, name, for how long,
-- why, detail.

local record_key, holders_key, names_key, news_key = unpack(KEYS)
local DAY = 86400000000

-- The record: v schema, e epoch, q until when nothing is granted (on the server's clock;
-- none: nobody has come with another epoch), o, t the clock's, n version, x when it expires.
local record = redis.call('HMGET', record_key, 'v', 'e', 'q', 'o', 't', 'n', 'x')
if record[1] and tonumber(record[1]) > SCHEMA then
  return redis.error_reply('HEADGATE schema ' .. record[1])
end
read_clock(record[4], record[5], tonumber(ARGV[7]))
local theirs, holder, till = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local gone, renew, known = ARGV[4] == '1', ARGV[5] == '1', tonumber(ARGV[6])
local epoch, quiet, version = tonumber(record[2]), tonumber(record[3]), tonumber(record[6]) or now
local foreign = theirs > 0 and theirs ~= epoch

-- A greater epoch than the one that is here is of a state that this one does not know.
if not epoch or theirs > epoch or renew and theirs == epoch then
  epoch, quiet = math.max(wall, theirs + 1), nil
  foreign, version = theirs > 0, math.max(now, version + 1)
  redis.call('DEL', news_key)
end
if foreign and not quiet then quiet = wall + 2000000 end

-- write_record's first command is one that is refused where there is no memory.
local function write_record()
  redis.call('HSET', record_key, 'v', SCHEMA, 'e', int(epoch), 'o', int(offset), 't', int(now), 'n', int(version))
  if quiet then redis.call('HSET', record_key, 'q', int(quiet)) else redis.call('HDEL', record_key, 'q') end
  if (tonumber(record[7]) or 0) < now + 40 * DAY then
    redis.call('HSET', record_key, 'x', int(now + 50 * DAY))
    redis.call('PEXPIRE', record_key, int(50 * DAY / 1000))
  end
end

local function hear()
  local i = 8
  while ARGV[i] do
    local old = redis.call('HGET', news_key, ARGV[i])
    local told = {n = tonumber(ARGV[i + 1])}
    for p = 1, tonumber(ARGV[i + 2]) do
      local at = i + 3 + 5 * (p - 1)
      told[p] = {ARGV[at], ARGV[at + 1], now + tonumber(ARGV[at + 2]), ARGV[at + 3], ARGV[at + 4]}
    end
    if not old or cmsgpack.unpack(old).n < told.n then
      redis.call('HSET', news_key, ARGV[i], cmsgpack.pack(told))
      redis.call('PEXPIRE', news_key, int(50 * DAY / 1000))
      version = math.max(version + 1, now)
    end
    i = i + 3 + 5 * #told
  end
end

local function pauses()
  local list, got = {}, redis.call('HGETALL', news_key)
  for i = 1, #got, 2 do
    for _, p in ipairs(cmsgpack.unpack(got[i + 1])) do
      if p[3] + DAY > now then
        for _, field in ipairs({got[i], p[1], p[2], int(p[3] - now), p[4], p[5]}) do list[#list + 1] = field end
      end
    end
  end
  return list
end

local function renew_lease()
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', holders_key, '-inf', int(now), 'LIMIT', 0, 100)) do
    redis.call('ZREM', holders_key, name)
    redis.call('ZREM', names_key, name)
  end
  if gone then
    redis.call('ZREM', holders_key, holder)
    redis.call('ZREM', names_key, holder)
    return
  end
  if redis.call('ZADD', holders_key, int(now + till), holder) == 1 then
    redis.call('ZADD', names_key, 0, holder)
  end
  for _, key in ipairs({holders_key, names_key}) do redis.call('PEXPIRE', key, int(math.ceil((till + KEEP) / 1000))) end
end

if foreign then
  write_record()
  return {FOREIGN, int(epoch), int(math.max(0, quiet - wall))}
end
hear()
write_record()
if holder ~= '' then renew_lease() end
local rank = redis.call('ZRANK', names_key, holder)
return {OK, int(epoch), int(math.max(0, (quiet or 0) - wall)), redis.call('ZCARD', holders_key),
  rank or 0, int(version), int(now), int(step), version ~= known and pauses() or {}}
