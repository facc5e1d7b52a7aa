-- token_bucket, kept as the instant at which it is full again. A unit costs per/max of
-- time; a charge is rounded up to microseconds, a refund down.
--
-- dips are the last charges at which it missed least of all from then on, at and level by
-- turns: a refund brings back no more than that, for the rest would have been lost to a
-- full bucket.

local DIPS = 16
local bucket = {}

function bucket.init(c)
  c.st.full, c.st.dips = c.st.full or 0, c.st.dips or {}
end

local function missing(c) return math.max(0, c.st.full - now) end

local function cost(c, n) return up(n, c.per, c.max) end

function bucket.look(c, room)
  return math.max(now, c.st.full - down(room, c.per, c.max))
end

local function dip(c, at)
  local d, level = c.st.dips, math.max(0, c.st.full - at)
  if #d > 0 and at <= d[#d - 1] then return end
  while #d > 0 and d[#d] >= level do d[#d], d[#d - 1] = nil, nil end
  if #d == 2 * DIPS then
    d[4] = d[2]
    table.remove(d, 1)
    table.remove(d, 1)
  end
  d[#d + 1], d[#d + 2] = at, level
end

function bucket.charge(c, at, n)
  dip(c, at)
  c.st.full = math.max(c.st.full, at) + cost(c, n)
end

function bucket.refund(c, at, n, tol)
  local d, least, first = c.st.dips, down(n, c.per, c.max), nil
  for i = 1, #d, 2 do
    if d[i] > at + tol then first = i; break end
  end
  if first then
    least = math.min(least, d[first + 1])
    for i = first, #d, 2 do d[i + 1] = d[i + 1] - least end
    for i = first - 2, 1, -2 do
      if d[i + 1] < d[first + 1] then break end
      table.remove(d, i)
      table.remove(d, i)
      first = first - 2
    end
  end
  c.st.full = c.st.full - least
end

function bucket.used(c) return up(missing(c), c.max, c.per) end

function bucket.room(c, size) return size - bucket.used(c) end

function bucket.adopt(c, old)
  if c.per == old.per and c.max == old.max then return end
  local function convert(d) return up(d * old.max / old.per, c.per, c.max) end
  c.st.full, c.st.dips = now + convert(missing(c)), {}
end

function bucket.keep(c) return missing(c) end
