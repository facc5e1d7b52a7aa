-- leaky_bucket: a sliding window whose grants are evenly spaced, as package limit has it.
-- la, ls, ln_ are when the last grant went, was scheduled, and its units; ea, es, en of the
-- one before.

local FORGIVEN = 10 -- intervals of lateness that are caught up
local leaky = setmetatable({}, {__index = window})

local function interval(c, n) return up(n, c.per, c.max) end

local function spaced(c)
  local st = c.st
  if not st.gn then return now end
  return math.max(now, st.ga + up(interval(c, st.gn), 9, 10), st.gs + interval(c, st.gn))
end

function leaky.look(c, room)
  return math.max(spaced(c), window.look(c, room))
end

function leaky.grant(c, at, n)
  local st, scheduled = c.st, at
  if st.gn then
    if at < st.ga then return end -- told late, of a state that was lost
    scheduled = math.max(st.gs + interval(c, st.gn), at - down(FORGIVEN, c.per, c.max))
  end
  st.ea, st.es, st.en = st.ga, st.gs, st.gn
  st.ga, st.gs, st.gn = at, scheduled, n
end

-- undo brings the schedule back that was before the grant at an instant, if that was the
-- last.
function leaky.undo(c, granted)
  local st = c.st
  if st.ga == granted then st.ga, st.gs, st.gn = st.ea, st.es, st.en end
end

function leaky.keep(c)
  return c.per + math.max(0, spaced(c) - now) + down(FORGIVEN, c.per, c.max)
end

function leaky.room(c, size)
  if spaced(c) > now then return 0 end
  return size - c.st.total
end
