-- Everything is decided; from here on it is written. The first command is one that is
-- refused where there is no memory.
for i = 1, n_counters do
  if counters[i] and counters[i].alg.note then counters[i].alg.note(counters[i]) end
end
if moved or afresh then version = math.max(version + 1, now) end
redis.call('HSET', place_key, 'v', SCHEMA, 'e', int(epoch), 'g', int(generation), 'n', int(version), 'b', int(born))
redis.call('HSET', common_key, 'o', int(offset), 't', int(now))

local need = lease + KEEP
if afresh then redis.call('DEL', pauses_key) end
if next(changed) then need = math.max(need, save_pauses(pauses_key)) end
for i = 1, n_counters do -- all that are named, so that they are kept while something is held
  if counters[i] then need = math.max(need, save(counters[i])) end
end

local HOUR = 3600000000
if fresh_holds and mine[1] then redis.call('DEL', holds_key) end
if mode == 0 then
  written.g, written.k, written.s = int(generation), int(send), int(math.max(seq, tonumber(mine[2]) or 0))
end
local set, del, expires = {}, {}, tonumber(mine[4]) or 0
if expires < now + need or fresh_holds then
  expires = now + need + HOUR
  written.x = int(expires)
end
for name, text in pairs(written) do
  if text then
    set[#set + 1], set[#set + 2] = name, text
  else
    del[#del + 1] = name
  end
end
for from = 1, #set, 4000 do redis.call('HSET', holds_key, unpack(set, from, math.min(#set, from + 3999))) end
for from = 1, #del, 4000 do redis.call('HDEL', holds_key, unpack(del, from, math.min(#del, from + 3999))) end
if written.x then redis.call('PEXPIREAT', holds_key, int(math.ceil((wall + need + HOUR) / 1000))) end

local place_expires, longer = tonumber(place[5]) or 0, false
if place_expires < math.max(now + need + HOUR, expires) then
  place_expires, longer = math.max(now + need, expires) + HOUR, true
  redis.call('HSET', place_key, 'x', int(place_expires))
  redis.call('PEXPIREAT', place_key, int(math.ceil((wall + place_expires - now) / 1000)))
end

-- Only who holds something has a lease here. Who is gone has none from now on, and what
-- is left is charged by who comes next.
if redis.call('HLEN', holds_key) <= FIELDS then
  redis.call('ZREM', leases_key, holder)
elseif not bury then
  longer = redis.call('ZADD', leases_key, int(gone and now or now + lease), holder) == 1 or longer
end
if longer then redis.call('PEXPIREAT', leases_key, int(math.ceil((wall + place_expires - now) / 1000))) end

local list = {}
for _, p in pairs((moved or afresh or by_pause) and pauses or {}) do
  list[#list + 1], list[#list + 2], list[#list + 3] = p.s, p.n, int(p.u - now)
  list[#list + 1], list[#list + 2] = p.w, p.d
end
return {OK, int(now), int(before), int(born), int(step), (moved or forget) and int(version) or '0',
  int(place_expires - now), grants, refusals, usages, list}
