-- TERA: a length and an opcode before each message, and definitions with offsets from the message's
-- first byte.

local HEAD = 4
local UNIT = math.pi / 32768
local CUSTOMIZE = { "unk", "skinColor", "faceStyle", "faceDecal", "hairStyle", "hairColor", "voice", "tattoos" }
local PARTS = { "type", "npc", "huntingZoneId", "id", "reserved" }

local SPECIAL = {}

local function add_value(item, name, kind, size, range, value)
    item:add(field(name, kind, size), range, value):set_text(name .. ": " .. shortest(value, false))
end

function SPECIAL.angle(state, at, name, tree)
    local range = need(state, at, 2)
    if tree then add_value(tree, name, "f", 8, range, range:le_int() * UNIT) end
end

local function vector(state, at, name, tree, is_angle)
    need(state, at, 12)
    local item = group(state, tree, name, at)
    if not item then return end
    for index, part in ipairs({ "x", "y", "z" }) do
        local range = state.tvb(at + index * 4 - 4, 4)
        if is_angle then
            add_value(item, part, "f", 8, range, range:le_float() * UNIT)
        else
            add_number(state, at + index * 4 - 4, part, "f", 4, item)
        end
    end
    close(item, state, at, at + 12)
end

function SPECIAL.vec3(state, at, name, tree) vector(state, at, name, tree, false) end
function SPECIAL.vec3fa(state, at, name, tree) vector(state, at, name, tree, true) end

-- A skill's parts are bits of one number.
local function skill(state, at, name, tree, size)
    local range = need(state, at, size)
    local item = group(state, tree, name, at)
    if not item then return end
    local low, high = range(0, 4):le_uint(), size == 8 and range(4, 4):le_uint() or 0
    local id_bits = size == 8 and 28 or 26
    local id = low % 2 ^ id_bits
    local kind = math.floor(low / 2 ^ id_bits) % 16
    local is_npc, reserved
    if size == 8 then
        is_npc, reserved = high % 2, math.floor(high / 2)
    else
        is_npc, reserved = math.floor(low / 2 ^ 30) % 2, math.floor(low / 2 ^ 31)
    end
    local zone = 0
    if is_npc == 1 and kind == 1 then zone, id = math.floor(id / 65536), id % 65536 end
    item:add(field("type", "u", 4), range, kind)
    item:add(field("npc", "b", 1), range, is_npc)
    item:add(field("huntingZoneId", "u", 4), range, zone)
    item:add(field("id", "u", 4), range, id)
    item:add(field("reserved", "u", 4), range, reserved)
    close(item, state, at, at + size)
end

function SPECIAL.skill8(state, at, name, tree) skill(state, at, name, tree, 8) end
function SPECIAL.skill4(state, at, name, tree) skill(state, at, name, tree, 4) end

function SPECIAL.customize(state, at, name, tree)
    need(state, at, 8)
    local item = group(state, tree, name, at)
    for index, part in ipairs(CUSTOMIZE) do add_number(state, at + index - 1, part, "u", 1, item) end
    close(item, state, at, at + 8)
end

local tera_fields

-- One field of a scope that begins at `start`.
local function tera_field(state, start, name, kind, entry, tree, label)
    local op = type(kind) == "table" and kind[1]
    if not op then
        local at = start + entry[3]
        if SPECIAL[kind] then
            SPECIAL[kind](state, at, name, tree)
        else
            read(state, at, name, kind, tree)
        end
    elseif op == "O" then
        local item = group(state, tree, name, start, label)
        tera_fields(state, start, kind[2], item)
    elseif op == "R" then
        local item = group(state, tree, name .. "_list", start, label or name)
        for index, one in ipairs(kind[2]) do
            tera_field(state, start, name, one[2], one, item, "[" .. (index - 1) .. "]")
        end
    elseif op == "T" then
        local from = count_at(state, start + entry[3], 2)
        if from < HEAD then unfit("text at offset " .. from) end
        local stop = zero_at(state, "utf16", from, state.stop)
        if not stop then unfit("text without an end") end
        add_span(state, tree, name, "utf16", from, from, stop - from, stop + 2)
    elseif op == "Y" then
        local from, count = count_at(state, start + entry[3], 2), count_at(state, start + kind[2], 2)
        if count == 0 then from = start + entry[3] + 2 end
        add_span(state, tree, name, "bytes", from, from, count, from + count)
    elseif op == "A" then
        local count, next = count_at(state, start + kind[2], 2), count_at(state, start + entry[3], 2)
        local item = group(state, tree, name .. "_list", start + kind[2], label or name)
        for index = 0, count - 1 do
            if next < HEAD then unfit("element " .. index .. " at offset " .. next) end
            local at = count_at(state, next, 2)
            if at ~= next then unfit("element " .. index .. " says it is at " .. at) end
            local after = count_at(state, next + 2, 2)
            if kind[4] then
                local one = kind[3][1]
                tera_field(state, at + 4, name, one[2], one, item, "[" .. index .. "]")
            else
                local inner = group(state, item, name, at, "[" .. index .. "]")
                tera_fields(state, at + 4, kind[3], inner)
            end
            if after ~= 0 and after <= next then unfit("elements in a circle") end
            next = after
        end
    end
end

tera_fields = function(state, start, entries, tree)
    for _, entry in ipairs(entries) do tera_field(state, start, entry[1], entry[2], entry, tree) end
end

local DECLARE_SPECIAL = {
    angle = function(name) field(name, "f", 8) end,
    vec3 = function(name)
        field(name, "group")
        for _, part in ipairs({ "x", "y", "z" }) do field(part, "f", 4) end
    end,
    vec3fa = function(name)
        field(name, "group")
        for _, part in ipairs({ "x", "y", "z" }) do field(part, "f", 8) end
    end,
    skill8 = function(name)
        field(name, "group")
        for _, part in ipairs(PARTS) do field(part, part == "npc" and "b" or "u", part == "npc" and 1 or 4) end
    end,
    customize = function(name)
        field(name, "group")
        for _, part in ipairs(CUSTOMIZE) do field(part, "u", 1) end
    end,
}
DECLARE_SPECIAL.skill4 = DECLARE_SPECIAL.skill8

local function declare_tera(entries, outer)
    for _, entry in ipairs(entries) do
        local name, kind = outer or entry[1], entry[2]
        local op = type(kind) == "table" and kind[1]
        if not op then
            if DECLARE_SPECIAL[kind] then DECLARE_SPECIAL[kind](name) else declare(name, kind) end
        elseif op == "T" or op == "Y" then
            declare_span(name, op == "T" and "utf16" or "bytes")
        elseif op == "O" then
            field(name, "group")
            declare_tera(kind[2])
        elseif op == "R" then
            field(name .. "_list", "group")
            declare_tera(kind[2], name)
        elseif op == "A" then
            field(name .. "_list", "group")
            field(name, "group")
            declare_tera(kind[3], kind[4] and name or nil)
        end
    end
end

local INTEGRITY = { { "counter", "u4" }, { "checksum", "u4" } }
declare("$integrity", { "s", INTEGRITY })
for message in ordered(MESSAGES) do
    if message[3] then declare_tera(message[3]) end
end

-- The key exchange at the start: the server's hello, then two keys from each side.
local KEYS = { client = 256, server = 260 }
local starts = {}

local function measure(tvb, at, pinfo)
    local stream_number = tcp_stream().value
    local side = sender(pinfo)
    local known = starts[stream_number]
    if not known then
        known = { client = 0, server = 0 }
        starts[stream_number] = known
    end
    -- Later passes see the same packets again.
    local key = pinfo.number .. ":" .. at
    if known[key] == nil then
        local taken = known[side]
        if taken < KEYS[side] and not known.none then
            local length = side == "server" and taken == 0 and 4 or 128
            if taken == 0 and side == "server" and tvb:len() - at >= 4 and tvb(at, 4):le_uint() ~= 1 then
                known.none = true
            elseif tvb:len() - at < length then
                return length
            else
                known[side] = taken + length
                known[key] = { length = length, number = length > 4 and math.floor(taken / 128) + 1 }
                return length
            end
        end
        known[key] = false
    end
    if known[key] then return known[key].length end
    if tvb:len() - at < 2 then return nil end
    return math.max(tvb(at, 2):le_uint(), HEAD)
end

local function show(tvb, pinfo, tree, at, length)
    local step = starts[tcp_stream().value]
    step = step and step[pinfo.number .. ":" .. at]
    if step then
        local item = begin(tvb, pinfo, tree, at, length, step.number and "handshake.Key" or "handshake.Hello")
        if step.number then
            item:add(field("number", "u", 4), tvb(at, length), step.number):set_generated()
            item:add(field("key", "bytes"), tvb(at, length))
        else
            item:add_le(field("hello", "u", 4), tvb(at, 4))
        end
        return
    end
    local range = tvb(at, length)
    local opcode = length >= HEAD and range(2, 2):le_uint() or 0
    local message = MESSAGES[opcode]
    local name = "tera." .. (message and message[1] or opcode)
    local item = begin(tvb, pinfo, tree, at, length, name)
    item:add_le(LENGTH, range(0, 2))
    if length < HEAD then return end
    item:add_le(NUMBER, range(2, 2))
    local body = { tvb = range:tvb(), stop = length }
    if not (message and message[3]) then
        if length > HEAD then item:add(field("payload", "bytes"), range(HEAD)) end
        return
    end
    local start = HEAD
    if message[2] and length >= 12 then
        start = read(body, HEAD, "$integrity", { "s", INTEGRITY }, item)
    end
    local ok, why = attempt(function()
        tera_fields(body, start, message[3], item)
        return true
    end)
    if not ok then item:add_proto_expert_info(UNREAD, "Does not fit its definition: " .. why) end
end

field("hello", "u", 4)
field("number", "u", 4)
field("key", "bytes")

function proto.dissector(tvb, pinfo, tree) return stream(tvb, pinfo, tree, measure, show) end
