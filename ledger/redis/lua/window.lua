-- sliding_window: what was charged, in order of time. All entries but the last are in a
-- Redis list, at and units by turns; the last, to which most is added, is in the record
-- (lat, ln). Only as much of the list is read as is needed, from its front or its end.
--
-- c.at and c.n are the entries c.lo to c.hi, as far as they are known: those up to c.front
-- and those from c.back on. The list keeps its first c.stored entries; what comes after
-- them is written anew.

local EXACT, MOST, CHUNK = 1024, 1032, 8
local window = {}

function window.init(c)
  local st = c.st
  st.total, st.count = st.total or 0, st.count or 0
  c.at, c.n, c.lo, c.hi = {}, {}, 1, st.count
  c.had = math.max(0, st.count - 1)
  c.stored, c.front, c.back = c.had, 0, math.max(1, st.count)
  if c.hi > 0 then c.at[c.hi], c.n[c.hi] = st.lat, st.ln end
  if st.first and st.first + c.per < now then window.drop(c) end
end

-- evicted: what the list held counts as long as the last entry does.
local function evicted(c)
  local rest = c.st.total
  for i = c.lo, c.hi do
    rest = rest - (c.n[i] or 0)
    c.at[i], c.n[i] = c.at[i] or c.st.lat, c.n[i] or 0
  end
  c.n[c.hi] = c.n[c.hi] + math.max(0, rest)
  c.front, c.back, c.stored = c.hi, 1, 0
end

local function read_list(c, from, to)
  local got = redis.call('LRANGE', c.list, 2 * (from - 1), 2 * to - 1)
  if #got < 2 * (to - from + 1) then return evicted(c) end
  for i = 1, #got, 2 do
    local j = from + (i - 1) / 2
    c.at[j], c.n[j] = tonumber(got[i]), tonumber(got[i + 1])
  end
end

-- forward makes entry i known, and so all before it.
local function forward(c, i)
  while i > c.front and i < c.back do
    local to = math.min(c.back - 1, math.max(i, c.front + CHUNK, 2 * c.front))
    read_list(c, c.front + 1, to)
    c.front = math.max(c.front, to)
  end
end

-- backward makes entry i known, and so all after it.
local function backward(c, i)
  while i < c.back and i > c.front do
    local from = math.max(c.front + 1, math.min(i, c.back - CHUNK, 2 * c.back - c.hi))
    read_list(c, from, c.back - 1)
    c.back = math.min(c.back, from)
  end
end

local function all(c) forward(c, c.back - 1) end

-- changed_from tells that the list is to be written anew from entry i on.
local function changed_from(c, i) c.stored = math.min(c.stored, i - 1) end

function window.drop(c)
  while c.lo <= c.hi do
    forward(c, c.lo)
    if c.at[c.lo] + c.per >= now then break end
    c.st.total = math.max(0, c.st.total - c.n[c.lo])
    c.lo = c.lo + 1
  end
  if c.st.slotted and c.hi - c.lo < EXACT / 2 then c.st.slotted = nil end
end

-- replace has other entries take the place of all.
local function replace(c, at, n)
  c.at, c.n, c.lo, c.hi, c.stored, c.front, c.back = at, n, 1, #at, 0, #at, 1
end

-- compact rounds all instants up to the end of their slot.
local function compact(c)
  local at, n = {}, {}
  all(c)
  for i = c.lo, c.hi do
    local slot = ceil(c.at[i], c.slot)
    if at[#at] == slot then
      n[#n] = n[#n] + c.n[i]
    else
      at[#at + 1], n[#n + 1] = slot, c.n[i]
    end
  end
  replace(c, at, n)
  c.st.slotted = true
end

-- saturate drops the oldest units above the largest total: what any later entry and all
-- after it weigh stays true.
local function saturate(c)
  local over = c.st.total - LIMIT
  if over > 0 then all(c) end
  while over > 0 do
    local n = math.min(over, c.n[c.lo])
    c.st.total, over = c.st.total - n, over - n
    c.n[c.lo] = c.n[c.lo] - n
    changed_from(c, c.lo)
    if c.n[c.lo] == 0 then c.lo = c.lo + 1 end
  end
end

local function insert(c, at, n)
  local i = c.hi
  while i >= c.lo do
    backward(c, i)
    if c.at[i] <= at then break end
    i = i - 1
  end
  changed_from(c, math.max(i, 1))
  if i >= c.lo and c.at[i] == at then
    c.n[i] = c.n[i] + n
    return
  end
  for j = c.hi, i + 1, -1 do c.at[j + 1], c.n[j + 1] = c.at[j], c.n[j] end
  c.hi = c.hi + 1
  c.at[i + 1], c.n[i + 1] = at, n
  if c.front > i then c.front = c.front + 1 end
end

-- charge: what comes out of order by less than a slot counts as the last entry does, so
-- that the list need not be written anew for it.
function window.charge(c, at, n)
  if at + c.per < now then return end
  if c.st.slotted then at = ceil(at, c.slot) end
  local last = c.hi >= c.lo and c.at[c.hi]
  c.st.total = c.st.total + n
  if last and at <= last and last - at < c.slot then
    c.n[c.hi] = c.n[c.hi] + n
  elseif last and at < last then
    insert(c, at, n)
  else
    c.hi = c.hi + 1
    c.at[c.hi], c.n[c.hi] = at, n
  end
  if c.hi - c.lo >= EXACT and not c.st.slotted then compact(c) end
  if c.hi - c.lo >= MOST then
    all(c)
    c.n[c.lo + 1] = c.n[c.lo + 1] + c.n[c.lo]
    changed_from(c, c.lo + 1)
    c.lo = c.lo + 1
  end
  saturate(c)
end

-- refund takes up to n units from what was charged between at and at+tol, or what lies
-- later for the sake of slots; the earliest first.
function window.refund(c, at, n, tol)
  local to, first = at + tol + 2 * c.slot, c.hi + 1
  while first > c.lo do
    backward(c, first - 1)
    if c.at[first - 1] < at then break end
    first = first - 1
  end
  local kept = first - 1
  for i = first, c.hi do
    local took = c.at[i] <= to and math.min(n, c.n[i]) or 0
    n, c.st.total = n - took, c.st.total - took
    if took > 0 then changed_from(c, i) end
    if took < c.n[i] then
      kept = kept + 1
      c.at[kept], c.n[kept] = c.at[i], c.n[i] - took
    end
  end
  c.hi = kept
  c.front, c.back = math.min(c.front, c.hi), math.min(c.back, c.hi + 1)
end

-- look is the first instant at which no more than room counts. An entry counts while
-- now <= at + per.
function window.look(c, room)
  local left = c.st.total - room
  if left <= 0 then return now end
  for i = c.lo, c.hi do
    forward(c, i)
    left = left - c.n[i]
    if left <= 0 then return math.max(now, c.at[i] + c.per + 1) end
  end
  return now
end

function window.used(c) return c.st.total end

function window.room(c, size) return size - c.st.total end

function window.adopt(c) window.drop(c) end

function window.keep(c) return c.per end

-- note sums up in the record what will be in the list.
function window.note(c)
  local st = c.st
  if c.lo > c.stored then c.stored = 0 end
  st.count = math.max(0, c.hi - c.lo + 1)
  st.first, st.lat, st.ln = nil, nil, nil
  if st.count == 0 then return end
  forward(c, c.lo)
  if c.stored == c.hi then c.stored = c.hi - 1 end
  backward(c, c.hi)
  backward(c, c.stored + 1)
  st.first, st.lat, st.ln = c.at[c.lo], c.at[c.hi], c.n[c.hi]
end

-- save writes the list. It comes after all reading.
function window.save(c)
  if c.stored == 0 then
    if c.had > 0 or c.fresh then redis.call('DEL', c.list) end
  elseif c.lo > 1 or c.stored < c.had then
    redis.call('LTRIM', c.list, 2 * (c.lo - 1), 2 * c.stored - 1)
  end
  local args = {}
  for i = math.max(c.lo, c.stored + 1), c.hi - 1 do
    args[#args + 1], args[#args + 2] = int(c.at[i]), int(c.n[i])
    if #args >= 4000 then
      redis.call('RPUSH', c.list, unpack(args))
      args = {}
    end
  end
  if #args > 0 then redis.call('RPUSH', c.list, unpack(args)) end
end
