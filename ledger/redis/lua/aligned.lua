-- fixed_window and sliding_window_counter: what was charged in the current window of the
-- server's clock and in the one before. s, e are the current window on `wall`; cur counts
-- from since on, old from earlier on, on `now`; last is the latest charge. See package
-- limit for why the two clocks are told apart.

local aligned = {}

-- frame is the window that contains an instant; nil: so far away that it is not known, as
-- nothing in it counts. The bounds of calendar windows come along with the batch.
local function frame(c, at)
  local b = c.bounds
  if not b then
    local s = at - at % c.per
    return s, s + c.per
  end
  for i = 1, #b - 1 do
    if b[i] <= at and at < b[i + 1] then return b[i], b[i + 1] end
  end
end

function aligned.init(c)
  local st = c.st
  if st.s then return end
  st.s, st.e, st.since, st.earlier, st.last, st.cur, st.old = 0, 0, 0, 0, 0, 0, 0
end

local function outside(a, at)
  return at >= a.e or at < a.s and at < a.s - math.min(1000000, (a.e - a.s) / 100)
end

-- turn makes the window that contains an instant the current one.
local function turn(c, a, at)
  local s, e = frame(c, at)
  if not s then return false end
  local since = s - wall + now
  if a.s == a.e then
    a.since, a.earlier = since, since
  elseif at >= a.e then
    a.follows = s == a.e
    a.cur, a.old = 0, a.cur
    a.since, a.earlier = math.max(since, a.last + 1), a.since
  else -- the clock has stepped back
    a.follows = false
    a.cur, a.old = add(a.cur, a.old), 0
    a.since = a.earlier
  end
  a.s, a.e = s, e
  return true
end

function aligned.charge(c, at, n)
  local a = c.st
  if at < a.last and a.s ~= a.e then
    if at >= a.since or not a.follows then
      a.cur = add(a.cur, n)
    elseif at >= a.earlier then
      a.old = add(a.old, n)
    end
    return
  end
  local on = at - now + wall
  if outside(a, on) and not turn(c, a, on) then return end
  a.last = at
  a.cur = add(a.cur, n)
end

function aligned.refund(c, at, n, tol)
  local a = c.st
  if at + tol >= a.since then
    a.cur = math.max(0, a.cur - n)
  elseif at + tol >= a.earlier then
    a.old = math.max(0, a.old - n)
  end
end

-- view is the state with the window that contains now as the current one.
local function view(c)
  local v = {}
  for k, x in pairs(c.st) do v[k] = x end
  if outside(v, wall) then turn(c, v, wall) end
  if not v.follows then v.old = 0 end
  return v
end

local function on(at) return at - wall + now end

-- adopt goes over to other windows. The current one takes what was charged in the current
-- one of the old, and in the one before as well if it reaches so far back.
function aligned.adopt(c, old)
  local a = c.st
  if a.s == a.e or c.per == old.per and c.grid == old.grid then return end
  local s, e = frame(c, wall)
  if not a.follows then a.old = 0 end
  if s >= a.e then
    a.follows, a.cur, a.old = s == a.e, 0, a.cur
    a.since, a.earlier = math.max(on(s), a.last + 1), a.since
  elseif s < a.s then
    a.cur, a.old, a.since = add(a.cur, a.old), 0, a.earlier
  end
  a.s, a.e, a.last = s, e, math.max(a.last, now)
end

local fixed = setmetatable({}, {__index = aligned})

-- guard is how long after its start a window opens for us: until then the window before
-- is in force, too, as the provider's clock may be behind.
local function guard(s, e) return math.min(1000000, math.ceil((e - s) / 100)) end

local function opened(v)
  if not v.follows then return -math.huge end
  return v.s + guard(v.s, v.e)
end

local function opens(c, v)
  local s, e = frame(c, v.e)
  if not s then s, e = v.s, v.e end
  return v.e + guard(s, e)
end

function fixed.look(c, room)
  local v = view(c)
  if v.cur > room then return on(opens(c, v)) end
  if wall < opened(v) and add(v.cur, v.old) > room then return on(opened(v)) end
  return now
end

function fixed.used(c)
  local v = view(c)
  if wall < opened(v) then return add(v.cur, v.old) end
  return v.cur
end

function fixed.room(c, size) return size - fixed.used(c) end

function fixed.keep(c)
  local a = c.st
  return math.max(0, on(a.e) - now) + (a.e - a.s)
end

local estimate = setmetatable({}, {__index = aligned})

-- covered is how far into a window no more than room counts of a previous one of that
-- many units.
local function covered(c, previous, room)
  if previous == 0 then return 0 end
  return math.max(0, c.per - down(room, c.per, previous))
end

function estimate.look(c, room)
  local v = view(c)
  if v.cur <= room then
    local enough = covered(c, v.old, room - v.cur)
    if enough <= math.max(0, wall - v.s) then return now end
    if enough < c.per then return on(v.s + enough) end
  end
  return on(v.e + covered(c, v.cur, room))
end

function estimate.used(c)
  local v = view(c)
  return add(v.cur, up(v.old, math.min(v.e - wall, c.per), c.per))
end

function estimate.room(c, size) return size - estimate.used(c) end

function estimate.keep(c)
  return math.max(0, on(c.st.e) - now) + c.per
end
