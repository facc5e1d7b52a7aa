-- One batch's part of one provider, carried out at one instant: everything is read, then
-- decided, then written, so that an error (a key of another type, no memory) leaves all as
-- it was.
--
-- KEYS: the provider's record, its leases, its pauses, what the holder holds, the common
-- record (the first once more where that is on another server), and of each counter its
-- record and its list.

local arg_at = 0
local function arg()
  arg_at = arg_at + 1
  return ARGV[arg_at]
end
local function num() return tonumber(arg()) end

local place_key, leases_key, pauses_key, holds_key, common_key = unpack(KEYS, 1, 5)
local epoch, holder, send, seq = num(), arg(), num(), num()
lease = num()
-- mode: 0 as the holder; 1 for a dead one, which is buried; 2 to take back what has just
-- been granted.
local gone, forget, mode, grace, least, sent = arg() == '1', arg() == '1', num(), num(), num(), num()
local bury = mode == 1
local n_counters, n_shapes, n_holds, n_charges, n_settlements, n_news, n_takes, n_peeks =
  num(), num(), num(), num(), num(), num(), num(), num()

-- The provider's record: v schema, e epoch, g generation (counters and holds of another
-- one are forgotten), n version of the pauses, x when it expires, b when it was made: who
-- knew another one knows that all has been lost here. The clock's o and t are in the
-- common record: one for all that are on a server.
local place = redis.call('HMGET', place_key, 'v', 'e', 'g', 'n', 'x', 'b')
if place[1] and tonumber(place[1]) > SCHEMA then
  return redis.error_reply('HEADGATE schema ' .. place[1])
end
local common = redis.call('HMGET', common_key, 'o', 't', 'e', 'q')
read_clock(common[1], common[2], least)
if common_key ~= place_key then
  if (tonumber(common[3]) or 0) ~= epoch then return {FOREIGN, 0} end
  grace = math.max(grace, (tonumber(common[4]) or 0) - wall)
end
local theirs = tonumber(place[2])
if theirs and theirs > epoch then return {FOREIGN, int(theirs)} end
local afresh, born = forget or not theirs or theirs < epoch, now
if theirs then born = tonumber(place[6]) or 0 end
generation = tonumber(place[3])
if afresh then generation = math.max(now, (generation or 0) + 1) end
local version = tonumber(place[4]) or now

-- What the holder holds: g generation, s seq, k send, x when it expires; and its holds by
-- their number, as text: since when, then units and counter by turns (0: settled).
local FIELDS = 4
local mine = redis.call('HMGET', holds_key, 'g', 's', 'k', 'x')
local before, fresh_holds = tonumber(mine[3]) or 0, tonumber(mine[1]) ~= generation
local again, lease_end = (tonumber(mine[2]) or 0) >= seq, nil
if bury then
  lease_end, again = tonumber(redis.call('ZSCORE', leases_key, holder) or nil), false
  if not lease_end or lease_end > now then return {STALE} end
elseif mode == 2 then
  again = false
else
  if before >= send then return {STALE} end
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', leases_key, '-inf', int(now), 'LIMIT', 0, 2)) do
    if name ~= holder then return {BURY, name} end
  end
end

-- The counters: id, spec ('': as the record has it), bounds of its windows.
local specs = {}
for i = 1, n_counters do
  local s = {id = arg(), spec = arg(), bounds = arg()}
  s.bounds = s.bounds ~= '' and numbers(s.bounds) or nil
  if s.bounds and (wall < s.bounds[2] or wall >= s.bounds[3]) then return {BOUNDS, int(wall)} end
  specs[i] = s
end
for i, s in ipairs(specs) do
  local key, list = KEYS[4 + 2 * i], KEYS[5 + 2 * i]
  load(i, s.id, redis.call('GET', key), list, key, s.spec, s.bounds)
end
if not afresh then load_pauses(pauses_key) end

-- What takes and holds are of: whether pauses are asked, endpoint, key, and counters with
-- their units by turns; sums are what is asked of each counter up to there, as it may be
-- named more than once; text is what is written of a hold.
local shapes = {}
for i = 1, n_shapes do
  local s = {own = arg() == '1', endpoint = arg(), key = arg(), units = numbers(arg()), sums = {}, text = ''}
  local sums = {}
  for u = 1, #s.units, 2 do
    local c, n = s.units[u], math.min(s.units[u + 1], LIMIT)
    sums[c] = add(sums[c] or 0, n)
    s.units[u + 1], s.sums[u] = n, sums[c]
    s.text = s.text .. ' ' .. int(n) .. ' ' .. counters[c].id
  end
  shapes[i] = s
end

local function read(n, f)
  local all = {}
  for i = 1, n do all[i] = f() end
  return all
end

-- instant is one of the caller's, on the ledger's time. It knows that to the time that a
-- batch is under way, and is strict. Where it is off by more (it has heard nothing yet, or
-- a clock has been set), what counts is how long it was before the batch was sent.
local shift = now - sent
if shift >= 0 and shift < 100000 then shift = 0 end
local function instant() return math.min(now, num() + shift) end

-- part is which places of a take's units are meant, with an amount; nil: all.
local function part(text)
  if text == '' then return nil end
  local p = {}
  for unit, n in string.gmatch(text, '(%d+):(%d+)') do p[unit + 1] = tonumber(n) end
  return p
end

local told_holds = read(n_holds, function()
  return {hold = arg(), at = instant(), shape = shapes[num()], part = part(arg())}
end)
local charges = read(n_charges, function()
  return {c = counters[num()], at = instant(), n = num()}
end)
local settlements = read(n_settlements, function()
  return {hold = arg(), at = instant(), back = arg() == '1', trial = arg(), part = part(arg())}
end)
local news = read(n_news, function()
  return {kind = arg(), arg(), arg(), arg(), arg(), arg()}
end)

-- holds are those that the batch names; what becomes of them is in written (false: nothing
-- is held any more).
local holds, written = {}, {}
if not fresh_holds then
  local names = {}
  for _, h in ipairs(told_holds) do names[#names + 1] = h.hold end
  for _, s in ipairs(settlements) do names[#names + 1] = s.hold end
  for from = 1, #names, 4000 do
    local got = redis.call('HMGET', holds_key, unpack(names, from, math.min(#names, from + 3999)))
    for i, text in ipairs(got) do holds[names[from + i - 1]] = text or nil end
  end
end
