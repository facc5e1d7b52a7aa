-- Pauses of a provider, its endpoints and keys: a hash, scope and name → a record (s scope,
-- n name, u until, w why, d detail; and of the call that goes alone afterwards: th its
-- holder, ti its hold, ta since when). Few, and read only where there are any.

local TRIAL = 60000000 -- a call that goes alone and tells nothing for so long told nothing
local PAUSE = 86400000000 -- a pause is forgotten so long after it could have been tried

-- moved: a pause has begun, changed or ended; changed: what is to be written.
local pauses, paused, changed, moved = {}, false, {}, false

local function field(scope, name) return scope .. ' ' .. name end

local function load_pauses(key)
  local got = redis.call('HGETALL', key)
  for i = 1, #got, 2 do
    local p = cmsgpack.unpack(got[i + 1])
    if p.u + PAUSE > now then
      pauses[got[i]], paused = p, true
    else
      changed[got[i]], moved = true, true
    end
  end
end

-- tried tells that a call is out that goes alone. (That of a dead holder has been settled
-- before.)
local function tried(p)
  if p.th and now - p.ta <= TRIAL then return true end
  p.th, p.ti, p.ta = nil, nil, nil
  return false
end

-- ask_pauses is for how long the pauses of a call's scopes refuse it, and which one does;
-- else those after which it goes alone.
local function ask_pauses(endpoint, key)
  local wait, by, alone = 0, nil, {}
  if not paused then return wait, by, alone end
  local scopes = {'provider ', field('endpoint', endpoint), field('key', key)}
  for i = 1, 3 do
    local p = pauses[scopes[i]]
    if p and p.u > now then
      if p.u - now > wait then wait, by = p.u - now, scopes[i] end
    elseif p and tried(p) then
      wait, by = math.huge, scopes[i]
    elseif p then
      alone[#alone + 1] = p
    end
  end
  return wait, by, alone
end

local function go_alone(alone, holder, hold)
  for _, p in ipairs(alone) do
    p.th, p.ti, p.ta = holder, hold, now
    changed[field(p.s, p.n)] = true
  end
end

-- begin begins a pause or extends it; a shorter one changes nothing.
local function begin(scope, name, till, why, detail)
  local k = field(scope, name)
  local p = pauses[k]
  if p and till <= p.u or till + PAUSE <= now then return end
  pauses[k] = {s = scope, n = name, u = till, w = why, d = detail}
  changed[k], paused, moved = true, true, true
end

local function resume(scope, name)
  for k in pairs(pauses) do
    if scope == '' or k == field(scope, name) then
      pauses[k], changed[k], moved = nil, true, true
    end
  end
end

-- tell is what the answer to a call that went alone says: it opens, or told nothing.
local function tell(holder, hold, opens)
  for k, p in pairs(pauses) do
    if p.th == holder and p.ti == hold then
      changed[k] = true
      if opens then
        pauses[k], moved = nil, true
      else
        p.th, p.ti, p.ta = nil, nil, nil
      end
    end
  end
end

-- save_pauses writes what has changed and returns for how long it is needed.
local function save_pauses(key)
  local last = 0
  for k in pairs(changed) do
    local p = pauses[k]
    if p then
      redis.call('HSET', key, k, cmsgpack.pack(p))
    else
      redis.call('HDEL', key, k)
    end
  end
  for _, p in pairs(pauses) do last = math.max(last, p.u) end
  if last > 0 then
    redis.call('PEXPIRE', key, int(math.ceil((last - now + PAUSE + KEEP) / 1000)))
  end
  return math.max(0, last - now) + PAUSE + KEEP
end
