local function write_hold(name, at, units)
  holds[name] = int(at) .. units
  written[name] = holds[name]
end

-- A hold that is known already changes nothing.
local function tell_hold(h)
  if holds[h.hold] then return end
  local text = ''
  for i = 1, #h.shape.units, 2 do
    local c, n = counters[h.shape.units[i]], h.shape.units[i + 1]
    if h.part and not h.part[(i + 1) / 2] then n = 0 end
    if n > 0 then take(c, n, h.at) end
    text = text .. ' ' .. int(n) .. ' ' .. c.id
  end
  write_hold(h.hold, h.at, text)
end

-- What is taken back was charged at an instant that is known to a few milliseconds: each
-- time that it is told it has been under way for another length of time.
local function charge(ch)
  if ch.n > 0 then
    ch.c.alg.charge(ch.c, math.min(ch.at, now), math.min(ch.n, LIMIT))
  else
    local about = math.min(50000, math.ceil(ch.c.per / 64))
    ch.c.alg.refund(ch.c, ch.at - about, math.min(-ch.n, LIMIT), 2 * about)
  end
end

local function settle_hold(s)
  local text = holds[s.hold]
  if not text then return end
  local since, units = string.match(text, '^(%d+)(.*)$')
  local unit, left = 0, false
  since = tonumber(since)
  local at = math.min(now, math.max(lease_end or s.at, since))
  units = string.gsub(units, ' (%d+) (%S+)', function(n, id)
    unit, n = unit + 1, tonumber(n)
    local c, charged = counters[ids[id]], s.part and s.part[unit]
    if n == 0 or s.part and not charged or not c then
      left = left or n > 0 and (c or s.part) and true
      return nil
    end
    if s.back then
      give_back(c, since, n)
    else
      settle(c, since, at, n, math.min(charged or n, LIMIT))
    end
    return ' 0 ' .. id
  end)
  holds[s.hold] = left and int(since) .. units or nil
  written[s.hold] = holds[s.hold] or false
  if s.trial ~= '' or not left then tell(holder, s.hold, s.trial == 'opens' and not s.back) end
end

local function learn(c, not_before, most, till)
  if not_before > 0 or most <= 0 then c.st.nb = nil end
  if most > 0 or not_before <= 0 then c.st.lm, c.st.lu = nil, nil end
  if not_before > 0 then c.st.nb = now + not_before end
  if most > 0 and till > 0 then c.st.lm, c.st.lu = math.min(most, LIMIT), now + till end
end

local function hear(n)
  if n.kind == 'P' then
    begin(n[1], n[2], now + tonumber(n[3]), n[4], n[5])
  elseif n.kind == 'R' then
    resume(n[1], n[2])
  else
    learn(counters[tonumber(n[1])], tonumber(n[2]), tonumber(n[3]), tonumber(n[4]))
  end
end

if not again then
  for _, h in ipairs(told_holds) do tell_hold(h) end
  for _, ch in ipairs(charges) do charge(ch) end
  for _, s in ipairs(settlements) do settle_hold(s) end
  for _, n in ipairs(news) do hear(n) end
end

-- Takes. What a shape was refused for is asked again only where something has been granted
-- since. A grant is 0 (1: alone) and the room of each unit; a refusal is 1 more than its
-- place among the refusals, each of which is wait, unit, pause, and rooms.
local grants, refusals, granted, by_pause = {}, {}, 0, false

local function rooms(to, shape)
  for i = 1, #shape.units, 2 do to[#to + 1] = int(room(counters[shape.units[i]])) end
end

local function ask(shape)
  local wait, pause, alone, by = 0, nil, {}, -1
  if shape.own then wait, pause, alone = ask_pauses(shape.endpoint, shape.key) end
  for i = 1, #shape.units, 2 do
    local t = look(counters[shape.units[i]], shape.sums[i])
    local w = t and t - now or math.huge
    if w > wait then wait, by, pause = w, (i - 1) / 2, nil end
  end
  if grace > wait then wait, by, pause = grace, -1, nil end
  return wait, by, pause, alone
end

local function grant(shape, name, alone)
  for i = 1, #shape.units, 2 do take(counters[shape.units[i]], shape.units[i + 1], now) end
  go_alone(alone, holder, name)
  if #shape.units > 0 or #alone > 0 then write_hold(name, now, shape.text) end
  granted = granted + 1
  grants[#grants + 1] = #alone > 0 and 1 or 0
  rooms(grants, shape)
end

for _ = 1, n_takes do
  local name, shape = arg(), shapes[num()]
  if not shape.refusal or shape.asked ~= granted then
    local wait, by, pause, alone = ask(shape)
    shape.asked, shape.refusal = granted, nil
    if wait > 0 then
      local r = {wait == math.huge and '-1' or int(wait), by, pause or ''}
      rooms(r, shape)
      refusals[#refusals + 1] = r
      shape.refusal = 1 + #refusals
      by_pause = by_pause or pause
    else
      grant(shape, name, alone)
    end
  end
  if shape.refusal then grants[#grants + 1] = shape.refusal end
end

local usages = {}
for _ = 1, n_peeks do
  local c = counters[num()]
  local used = c.alg.used(c)
  local reset = used > 0 and (c.alg == leaky and window or c.alg).look(c, used - 1) - now or -1
  for _, n in ipairs({used, c.st.held, reset, (c.st.nb or now) - now, c.st.lm or 0}) do
    usages[#usages + 1] = int(n)
  end
end
