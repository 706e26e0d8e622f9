-- Uru: a connect packet that names the service, a key exchange, and messages without a length.

for _, one in ipairs(SETUPS) do declare_fields(one) end
for connect in ordered(CONNECTS) do declare_fields(connect[2]) end
for service in ordered(SERVICES) do
    for messages in ordered(service) do
        for message in ordered(messages) do declare_fields(message[2]) end
    end
end

-- The service of each stream, and which packets set it up.
local streams = {}

local function known_stream()
    local number = tcp_stream().value
    if not streams[number] then streams[number] = { begun = {}, steps = {} } end
    return streams[number]
end

-- The setup step at this position: its name and layout.
local function step(tvb, at, pinfo)
    local known, side = known_stream(), sender(pinfo)
    local key = pinfo.number .. ":" .. at
    local found = known.steps[key]
    if found ~= nil then return found end
    local left = tvb:len() - at
    found = false
    if not known.begun[side] and side == "client" and left >= 1 then
        local connect = CONNECTS[tvb(at, 1):uint()]
        if connect and left >= 3 and tvb(at + 1, 2):le_uint() == 31 then
            known.service, known.setup = connect[3], connect[3] ~= "file"
            found = { "connect." .. connect[1], connect[2] }
        end
        known.begun[side] = true
    elseif known.setup and left >= 2 and not known.begun[side .. "setup"] then
        local kind = tvb(at, 1):uint()
        if SETUPS[kind + 1] then found = { "setup." .. SETUP_NAMES[kind + 1], SETUPS[kind + 1], tvb(at + 1, 1):uint() } end
        known.begun[side .. "setup"] = true
    end
    known.steps[key] = found
    return found
end

local function message_at(tvb, at, pinfo)
    local service = known_stream().service
    local messages = SERVICES[service]
    local width = service == "file" and 8 or 2
    if not messages or tvb:len() - at < width then return nil, width end
    local number = width == 8 and tvb(at + 4, 4):le_uint() or tvb(at, 2):le_uint()
    return messages[sender(pinfo)][number], width, number
end

local function measure(tvb, at, pinfo)
    local found, all = step(tvb, at, pinfo), tvb:len()
    if found then
        if found[3] then return found[3] end
        local stop, why = attempt(record, { tvb = tvb, stop = all }, at, found[2], nil, {})
        if not stop then return why == "incomplete" and nil or 0 end
        return stop - at
    end
    if known_stream().service == "file" then
        if all - at < 4 then return nil end
        return math.max(tvb(at, 4):le_uint(), 8)
    end
    local message, width = message_at(tvb, at, pinfo)
    if all - at < width then return nil end
    -- Without a layout, nothing shows where the message ends: a decrypted export has one per
    -- segment.
    if not message then return 0 end
    local stop, why = attempt(record, { tvb = tvb, stop = all }, at + width, message[2], nil, {})
    if not stop then
        if why == "incomplete" then return nil end
        return 0
    end
    return stop - at
end

local function show(tvb, pinfo, tree, at, length)
    local found = step(tvb, at, pinfo)
    local state = { tvb = tvb, stop = at + length }
    if found then
        local item = begin(tvb, pinfo, tree, at, length, found[1])
        fill(state, at, found[2], item)
        return
    end
    local service = known_stream().service or "unknown"
    local message, width, number = message_at(tvb, at, pinfo)
    local name = service .. "." .. (message and message[1] or number or "?")
    local item = begin(tvb, pinfo, tree, at, length, name)
    if length < width then return end
    if width == 8 then
        item:add_le(LENGTH, tvb(at, 4))
        item:add_le(NUMBER, tvb(at + 4, 4))
    else
        item:add_le(NUMBER, tvb(at, 2))
    end
    if message then
        fill(state, at + width, message[2], item)
    elseif length > width then
        item:add(field("payload", "bytes"), tvb(at + width, length - width))
    end
end

function proto.dissector(tvb, pinfo, tree) return stream(tvb, pinfo, tree, measure, show) end
