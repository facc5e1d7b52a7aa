-- A counter is its record (c.st: a MessagePack map, in one string) and, for windows, a
-- list. Its spec is what the batch says of the limit; the record remembers the one that it
-- was counted by.
--
--   g generation  spec  held
--   nb, lm, lu    learned: nothing before; a lower size; until then
--   lx            when the list expires

local algorithms = {w = window, l = leaky, b = bucket, f = fixed, c = estimate}
local flight = {
  init = function() end, charge = function() end, refund = function() end,
  used = function() return 0 end, keep = function() return 0 end, adopt = function() end,
  look = function() return now end, room = function(_, size) return size end,
}
algorithms.n = flight

local counters, ids, generation, lease = {}, {}, nil, nil

local function read_spec(c, text)
  local alg, sent, max, cap, per, slot, grid = string.match(text, '^(%a) (%d) (%d+) (%d+) (%d+) (%d+) (%S*)')
  c.spec = text
  c.alg, c.sent, c.grid = algorithms[alg], sent == '1', grid
  c.name, c.max, c.cap, c.per, c.slot = alg, tonumber(max), tonumber(cap), tonumber(per), tonumber(slot)
end

-- adopt lets a record go on under a spec that has changed: what is held and charged stays;
-- where it is counted otherwise, what counts now is charged now.
local function adopt(c, text)
  local old = setmetatable({}, {__index = c})
  read_spec(old, c.st.spec)
  read_spec(c, text)
  if c.name == old.name and c.sent == old.sent then
    c.alg.init(c)
    c.alg.adopt(c, old)
    return
  end
  old.alg.init(old)
  local counts, st = old.alg.used(old), c.st
  if c.sent and not old.sent then counts = counts + st.held end
  c.st, c.fresh = {g = st.g, held = st.held, nb = st.nb, lm = st.lm, lu = st.lu}, true
  c.alg.init(c)
  if counts > 0 then c.alg.charge(c, now, math.min(counts, LIMIT)) end
end

local function load(i, id, record, list, key, spec, bounds)
  local st = record and cmsgpack.unpack(record)
  local c = {id = id, key = key, list = list, bounds = bounds, st = st}
  if not st or st.g ~= generation then
    if spec == '' then return end -- nothing to settle of what nobody knows any more
    c.fresh, c.st = true, {g = generation, held = 0}
    read_spec(c, spec)
    c.alg.init(c)
  elseif spec ~= '' and spec ~= st.spec then
    adopt(c, spec)
  else
    read_spec(c, st.spec)
    c.alg.init(c)
  end
  counters[i], ids[id] = c, i
  if c.st.lu and c.st.lu <= now then c.st.lm, c.st.lu = nil, nil end
  if c.st.nb and c.st.nb <= now then c.st.nb = nil end
end

-- size is how much may count at once: as declared, or learned to be less.
local function size(c) return math.min(c.cap, c.st.lm or c.cap) end

local function held(c)
  if c.sent then return 0 end
  return c.st.held
end

-- look is when n more units may go; nil: only an event opens it.
local function look(c, n)
  local room, t = size(c) - n - held(c), nil
  if room >= 0 then t = c.alg.look(c, room) end
  if c.st.lm and (not t or t > c.st.lu) then
    room = c.cap - n - held(c)
    if room >= 0 then
      local later = math.max(c.st.lu, c.alg.look(c, room))
      t = t and math.min(t, later) or later
    end
  end
  return t and math.max(t, c.st.nb or now)
end

local function room(c)
  if c.st.nb then return 0 end
  return math.max(0, c.alg.room(c, size(c)) - held(c))
end

local function take(c, n, at)
  c.st.held = add(c.st.held, n)
  if c.alg.grant then c.alg.grant(c, at, n) end
  if c.sent then c.alg.charge(c, at, n) end
end

local function settle(c, granted, at, taken, charged)
  c.st.held = math.max(0, c.st.held - taken)
  if not c.sent then
    if charged > 0 then c.alg.charge(c, at, charged) end
  elseif charged > taken then
    c.alg.charge(c, at, charged - taken)
  elseif charged < taken then
    c.alg.refund(c, granted, taken - charged, 0)
  end
end

local function give_back(c, granted, n)
  c.st.held = math.max(0, c.st.held - n)
  if c.alg.undo then c.alg.undo(c, granted) end
  if c.sent then c.alg.refund(c, granted, n, 0) end
end

-- save writes a counter back and returns for how long it is needed. What it has to read
-- for that (note) has been read before.
local function save(c)
  local st = c.st
  local need = math.max(c.alg.keep(c), (st.nb or now) - now, (st.lu or now) - now) + lease + KEEP
  local listed = c.alg.save
  if listed then
    if st.count > 1 and (st.lx or 0) < now + need or c.fresh or c.stored == 0 then
      st.lx, c.expire = now + need + KEEP, true
    end
  end
  st.spec = c.spec
  redis.call('SET', c.key, cmsgpack.pack(st), 'PX', int(math.ceil(need / 1000)))
  if listed then
    c.alg.save(c)
    if c.expire then redis.call('PEXPIRE', c.list, int(math.ceil((need + KEEP) / 1000))) end
  end
  return need
end
