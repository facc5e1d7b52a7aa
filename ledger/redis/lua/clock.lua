-- Time is in microseconds. `wall` is the server's clock; `now` is the ledger's own time,
-- which never goes back: where the clock has stepped back, `offset` makes up for it, and
-- time goes on at its rate from where it was.

local LIMIT = 4503599627370496 -- 2^52: amounts saturate there, so that sums stay exact
local SCHEMA = 1
local KEEP = 300000000 -- how much longer than needed keys are kept
local OK, FOREIGN, BURY, BOUNDS, STALE = 0, 1, 2, 3, 4 -- how a script answers

local wall, now, offset, step

-- least is what the ledger's time must be by now, as the caller has heard it and waited
-- since: without it the time from the last batch to the step would be lost.
local function read_clock(o, last, least)
  local t = redis.call('TIME')
  wall = t[1] * 1000000 + t[2]
  offset, step = tonumber(o) or 0, 0
  now, last = wall + offset, math.max(tonumber(last) or 0, least)
  if now < last then
    step = last - now
    now, offset = last, offset + step
  end
end

local function add(a, b)
  return math.min(a + b, LIMIT)
end

-- down and up are a*b/c, rounded; to the side that is meant also where a*b is not exact.
local function down(a, b, c)
  local p = a * b
  if p < 9007199254740992 then return math.floor(p / c) end
  return math.max(0, math.floor(p / c * (1 - 1e-15)) - 1)
end

local function up(a, b, c)
  local p = a * b
  if p < 9007199254740992 then return math.ceil(p / c) end
  return math.ceil(p / c * (1 + 1e-15)) + 1
end

local function ceil(t, unit)
  return math.ceil(t / unit) * unit
end

local function int(n)
  return string.format('%.0f', n)
end

local function numbers(text)
  local all = {}
  for word in string.gmatch(text, '%S+') do all[#all + 1] = tonumber(word) end
  return all
end
