-- What all families share: fields, reading by layout, and the packets of a stream.
--
-- A layout is a string for a number ("u4": unsigned, 4 bytes; i, h, f, b: signed, hexadecimal, float,
-- boolean) or a table whose first entry names its kind. Sizes and offsets are in bytes.

local TRUTH = { [0] = "false", [1] = "true" }
local MAX_ELEMENTS = 65536

-- The bits that two numbers share. Lua versions have different libraries for this.
local function common(first, second)
    local shared, place = 0, 1
    while first > 0 and second > 0 do
        if first % 2 == 1 and second % 2 == 1 then shared = shared + place end
        first, second, place = math.floor(first / 2), math.floor(second / 2), place * 2
    end
    return shared
end

-- Raised where a message's bytes end too early or do not fit the layout.
local INCOMPLETE = {}
local function unfit(why) error({ why = why }, 0) end

-- The values of a table in key order, on which field abbreviations depend.
local function ordered(values)
    local keys = {}
    for key in pairs(values) do keys[#keys + 1] = key end
    table.sort(keys)
    local at = 0
    return function()
        at = at + 1
        return keys[at] ~= nil and values[keys[at]] or nil
    end
end

-- Display fields, by name and kind. If a name has values of several classes, all classes but the first
-- add a suffix, because a filter can compare values of only one class.
local fields, known, classes = {}, {}, {}
local CLASS = { u = "number", i = "number", h = "number", b = "number", e = "number", E = "number",
    g = "number", f = "float", text = "text", bytes = "bytes", guid = "guid", ipv4 = "ipv4", group = "group" }
local UNSIGNED = { ProtoField.uint8, ProtoField.uint16, nil, ProtoField.uint32, nil, nil, nil, ProtoField.uint64 }
local SIGNED = { ProtoField.int8, ProtoField.int16, nil, ProtoField.int32, nil, nil, nil, ProtoField.int64 }

local function make(kind, size, abbreviation, name, names)
    if kind == "u" then return UNSIGNED[size](abbreviation, name, base.DEC) end
    if kind == "h" or kind == "g" then return UNSIGNED[size](abbreviation, name, base.HEX) end
    if kind == "i" then return SIGNED[size](abbreviation, name, base.DEC) end
    if kind == "b" then return UNSIGNED[size](abbreviation, name, base.DEC, TRUTH) end
    if kind == "e" then return UNSIGNED[size](abbreviation, name, base.DEC, names) end
    if kind == "E" then return SIGNED[size](abbreviation, name, base.DEC, names) end
    if kind == "f" then return (size == 4 and ProtoField.float or ProtoField.double)(abbreviation, name) end
    if kind == "text" then return ProtoField.string(abbreviation, name) end
    if kind == "guid" then return ProtoField.guid(abbreviation, name) end
    if kind == "ipv4" then return ProtoField.ipv4(abbreviation, name) end
    if kind == "group" then return ProtoField.none(abbreviation, name) end
    return ProtoField.bytes(abbreviation, name)
end

local function field(name, kind, size, names)
    local key = name .. "\0" .. kind .. (size or "")
    local found = known[key]
    if found and names then found = found[names] end
    if found then return found end
    local abbreviation = PREFIX .. "." .. name:gsub("[^%w_]", "_")
    local class = CLASS[kind]
    classes[abbreviation] = classes[abbreviation] or class
    if classes[abbreviation] ~= class then abbreviation = abbreviation .. "." .. class end
    local new = make(kind, size, abbreviation, name, names)
    fields[#fields + 1] = new
    if names then
        known[key] = known[key] or {}
        known[key][names] = new
    else
        known[key] = new
    end
    return new
end

-- The fewest digits that represent the same number.
local function shortest(number, is_single)
    if number ~= number then return "NaN" end
    local least, most = 15, 17
    if is_single then least, most = 6, 9 end
    for digits = least, most do
        local text = string.format("%." .. digits .. "g", number)
        local back = tonumber(text)
        if back == number then return text end
        if is_single and back and Struct.pack("<f", back) == Struct.pack("<f", number) then return text end
    end
    return tostring(number)
end

local function is_utf8(bytes)
    local at, length = 1, #bytes
    while at <= length do
        local first = bytes:byte(at)
        local more = first < 0x80 and 0 or first < 0xc2 and -1 or first < 0xe0 and 1 or first < 0xf0 and 2
            or first < 0xf5 and 3 or -1
        if more < 0 or at + more > length then return false end
        for next = at + 1, at + more do
            local byte = bytes:byte(next)
            if byte < 0x80 or byte > 0xbf then return false end
        end
        local second = more > 1 and bytes:byte(at + 1) or 0
        if (first == 0xe0 and second < 0xa0) or (first == 0xed and second > 0x9f)
            or (first == 0xf0 and second < 0x90) or (first == 0xf4 and second > 0x8f) then
            return false
        end
        at = at + more + 1
    end
    return true
end

-- The text that these bytes encode in this form; nil if they are not text.
local function text_of(form, range)
    if form == "utf16" then
        local bytes = range:raw()
        if #bytes % 2 == 1 then return nil end
        local at = 2
        while at <= #bytes do
            local high = bytes:byte(at)
            if high >= 0xdc and high <= 0xdf then return nil end
            if high >= 0xd8 and high <= 0xdb then
                local low = bytes:byte(at + 2)
                if not low or low < 0xdc or low > 0xdf then return nil end
                at = at + 2
            end
            if high == 0 and bytes:byte(at - 1) == 0 then return nil end
            at = at + 2
        end
        return range:le_ustring()
    end
    local bytes = range:raw()
    if bytes:find("\0", 1, true) then return nil end
    if form == "latin1" then
        if bytes:find("[\128-\159]") then return nil end
        return (bytes:gsub("[\128-\255]", function(one)
            local code = one:byte()
            return string.char(0xc0 + math.floor(code / 64), 0x80 + code % 64)
        end))
    end
    if form == "utf8" and is_utf8(bytes) then return bytes end
    return nil
end

local function need(state, at, count)
    if count < 0 or at + count > state.stop then error(INCOMPLETE, 0) end
    return state.tvb(at, count)
end

local function number_at(state, at, size)
    local range = need(state, at, size)
    return size == 8 and range:le_uint64() or range:le_uint()
end

-- A count or length.
local function count_at(state, at, size)
    local count = number_at(state, at, size)
    if size == 8 then count = count:tonumber() end
    return count
end

-- Adds text or bytes that begin at `from`; `start` is where their count begins.
local function add_span(state, tree, name, form, start, from, count, stop)
    if count > 0 then need(state, from, count) end
    if not tree then return end
    local text = form ~= "bytes" and (count == 0 and "" or text_of(form, state.tvb(from, count)))
    if text then
        local whole = state.tvb(start, math.max(stop - start, 0))
        tree:add(field(name, "text"), whole, text)
    elseif count == 0 then
        tree:add(field(name, "bytes"), state.tvb(from, 0))
    else
        tree:add(field(name, "bytes"), state.tvb(from, count))
    end
end

local function group(state, tree, name, start, label)
    if not tree then return nil end
    local item = tree:add(field(name, "group"), state.tvb(start, 0))
    item:set_text(label or name)
    return item
end

local function close(item, state, start, stop)
    if item and stop > start then item:set_len(stop - start) end
end

local function has_bit(number, bit)
    local low, high = number, 0
    if type(number) ~= "number" then low, high = number:lower(), number:higher() end
    local word = bit < 32 and low or high
    return math.floor(word / 2 ^ (bit % 32)) % 2 == 1
end

local read

-- The elements of a list. A number keeps the list's name, so that filters find it.
local function element(state, at, name, index, layout, tree)
    local is_group = type(layout) == "table" and (layout[1] == "s" or layout[1] == "m" or layout[1] == "a"
        or layout[1] == "l")
    return read(state, at, name, layout, tree, is_group and "[" .. index .. "]" or nil)
end

local function elements(state, at, name, count, layout, tree)
    if count > MAX_ELEMENTS then unfit(count .. " elements") end
    for index = 0, count - 1 do at = element(state, at, name, index, layout, tree) end
    return at
end

local function list(state, tree, name, start, label, fill)
    local item = group(state, tree, name .. "_list", start, label or name)
    local stop = fill(item)
    close(item, state, start, stop)
    return stop
end

local function record(state, at, layout, tree, scope)
    for _, entry in ipairs(layout) do
        local value
        at, value = read(state, at, entry[1], entry[2], tree, nil, scope)
        scope[entry[1]] = value
        if state.is_opaque then return at end
    end
    return at
end

local function add_number(state, at, name, kind, size, tree, names)
    local range = need(state, at, size)
    if tree then
        local item = tree:add_le(field(name, kind, size, names), range)
        if kind == "f" then
            item:set_text(name .. ": " .. shortest(range:le_float(), size == 4))
        end
    end
    if kind == "f" or kind == "i" or kind == "E" then return at + size, nil end
    return at + size, number_at(state, at, size)
end

local READ = {}

function READ.e(state, at, name, layout, tree)
    return add_number(state, at, name, "e", layout[2], tree, layout[3])
end

function READ.E(state, at, name, layout, tree)
    return add_number(state, at, name, "E", layout[2], tree, layout[3])
end

-- Flags: masks with names, in the order in which they are shown.
function READ.g(state, at, name, layout, tree)
    local range, size = need(state, at, layout[2]), layout[2]
    local value = number_at(state, at, size)
    if tree then
        local item = tree:add_le(field(name, "g", size), range)
        local low = size == 8 and value:lower() or value
        local shown, rest = {}, low
        for _, flag in ipairs(layout[3]) do
            local mask = flag[1]
            if mask ~= 0 and common(low, mask) == mask and common(rest, mask) ~= 0 then
                shown[#shown + 1] = flag[2]
                rest = rest - common(rest, mask)
            end
        end
        if rest ~= 0 then shown[#shown + 1] = string.format("0x%x", rest) end
        item:set_text(name .. ": " .. table.concat(shown, ", "))
    end
    return at + size, value
end

function READ.x(state, at, name, layout, tree)
    local form, size = layout[2], layout[3]
    local range = size > 0 and need(state, at, size)
    if tree and (form == "guid" or form == "ipv4") then
        tree:add_le(field(name, form), range)
    else
        add_span(state, tree, name, form, at, at, size, at + size)
    end
    return at + size
end

local function zero_at(state, form, at, stop)
    local unit = form == "utf16" and 2 or 1
    local bytes = stop > at and state.tvb(at, stop - at):raw() or ""
    for place = 1, #bytes - unit + 1, unit do
        if bytes:byte(place) == 0 and (unit == 1 or bytes:byte(place + 1) == 0) then
            return at + place - 1, unit
        end
    end
    return nil, unit
end

function READ.p(state, at, name, layout, tree)
    local form, size = layout[2], layout[3]
    need(state, at, size)
    local stop = at + size
    local text = zero_at(state, form, at, stop) or stop
    local rest = stop > text and state.tvb(text, stop - text):raw() or ""
    if rest:find("[^%z]") then
        local item = group(state, tree, name, at)
        add_span(state, item, "text", form, at, at, text - at, text)
        add_span(state, item, "deadMemory", "bytes", text, text, stop - text, stop)
        close(item, state, at, stop)
    else
        add_span(state, tree, name, form, at, at, text - at, stop)
    end
    return stop
end

function READ.z(state, at, name, layout, tree)
    local stop, unit = zero_at(state, layout[2], at, state.stop)
    if not stop then error(INCOMPLETE, 0) end
    add_span(state, tree, name, layout[2], at, at, stop - at, stop + unit)
    return stop + unit
end

function READ.c(state, at, name, layout, tree)
    local form, width, unit, tail = layout[2], layout[3], layout[4], layout[5]
    local length = count_at(state, at, width) * unit
    local from = at + width
    -- Without even a terminator, there is no text.
    if length == 0 and tail > 0 then return from end
    if length < tail then unfit("a count of " .. length) end
    if length > 0 then need(state, from, length) end
    add_span(state, tree, name, form, at, from, length - tail, from + length)
    return from + length
end

function READ.l(state, at, name, layout, tree, label)
    local count = count_at(state, at, layout[2])
    return list(state, tree, name, at, label, function(item)
        return elements(state, at + layout[2], name, count, layout[3], item)
    end)
end

function READ.a(state, at, name, layout, tree, label)
    return list(state, tree, name, at, label, function(item)
        return elements(state, at, name, layout[2], layout[3], item)
    end)
end

function READ.r(state, at, name, layout, tree, label)
    return list(state, tree, name, at, label, function(item)
        local index = 0
        while at < state.stop do
            local next = element(state, at, name, index, layout[2], item)
            if next == at then unfit("an element without bytes") end
            at, index = next, index + 1
        end
        return at
    end)
end

function READ.s(state, at, name, layout, tree, label)
    local item = group(state, tree, name, at, label)
    local stop = record(state, at, layout[2], item, {})
    close(item, state, at, stop)
    return stop
end

function READ.m(state, at, name, layout, tree, label)
    local mask = number_at(state, at, layout[2])
    local item = group(state, tree, name, at, label)
    local stop = at + layout[2]
    for _, entry in ipairs(layout[3]) do
        if has_bit(mask, entry[1]) then stop = read(state, stop, entry[2], entry[3], item) end
    end
    close(item, state, at, stop)
    return stop
end

-- A part with its own length, in which a layout can extend to the end.
function READ.n(state, at, name, layout, tree)
    local length = count_at(state, at, layout[2]) * layout[3]
    local from = at + layout[2]
    if length > 0 then need(state, from, length) end
    local outer = state.stop
    state.stop = from + length
    if type(layout[4]) == "table" then
        local stop = read(state, from, name, layout[4], tree)
        if stop < state.stop and tree then
            tree:add(field("rest", "bytes"), state.tvb(stop, state.stop - stop))
        end
    else
        add_span(state, tree, name, "bytes", from, from, length, from + length)
    end
    state.stop, state.is_opaque = outer, false
    return from + length
end

-- Present if a flag is set or a number is not zero.
function READ.o(state, at, name, layout, tree, label, scope)
    local value, mask = scope[layout[2]], layout[3]
    if value == nil then unfit("no " .. layout[2]) end
    if type(value) ~= "number" then value = value:lower() end
    local is_there = value ~= 0
    if mask then is_there = common(value, mask) == mask end
    if not is_there then return at end
    return read(state, at, name, layout[4], tree, label, scope)
end

read = function(state, at, name, layout, tree, label, scope)
    if type(layout) == "string" then
        if layout == "tail" or layout == "opaque" then
            -- The end of an opaque field is unknown, so the rest of the message is shown.
            local shown = layout == "tail" and name or "rest"
            add_span(state, tree, shown, "bytes", at, at, state.stop - at, state.stop)
            state.is_opaque = layout == "opaque"
            return state.stop
        end
        return add_number(state, at, name, layout:sub(1, 1), tonumber(layout:sub(2)), tree)
    end
    return READ[layout[1]](state, at, name, layout, tree, label, scope)
end

-- Registers a layout's fields. This must happen before the first packet.
local declare
local function declare_fields(entries)
    for _, entry in ipairs(entries) do declare(entry[1], entry[2]) end
end
local DECLARE = {
    e = function(name, layout) field(name, "e", layout[2], layout[3]) end,
    E = function(name, layout) field(name, "E", layout[2], layout[3]) end,
    g = function(name, layout) field(name, "g", layout[2]) end,
    l = function(name, layout) field(name .. "_list", "group") declare(name, layout[3]) end,
    a = function(name, layout) field(name .. "_list", "group") declare(name, layout[3]) end,
    r = function(name, layout) field(name .. "_list", "group") declare(name, layout[2]) end,
    n = function(name, layout) field(name, "bytes") declare(name, layout[4]) end,
    o = function(name, layout) declare(name, layout[4]) end,
    s = function(name, layout)
        field(name, "group")
        declare_fields(layout[2])
    end,
    m = function(name, layout)
        field(name, "group")
        for _, entry in ipairs(layout[3]) do declare(entry[2], entry[3]) end
    end,
}
local function declare_span(name, form)
    if form == "guid" or form == "ipv4" then
        field(name, form)
    else
        if form ~= "bytes" then field(name, "text") end
        field(name, "bytes")
    end
end
DECLARE.x = function(name, layout) declare_span(name, layout[2]) end
DECLARE.c, DECLARE.z = DECLARE.x, DECLARE.x
DECLARE.p = function(name, layout) declare_span(name, layout[2]) field(name, "group") end
declare = function(name, layout)
    if type(layout) == "table" then
        DECLARE[layout[1]](name, layout)
    elseif layout == "tail" or layout == "opaque" then
        field(name, "bytes")
    else
        field(name, layout:sub(1, 1), tonumber(layout:sub(2)))
    end
end
for _, name in ipairs({ "rest", "payload", "deadMemory" }) do field(name, "bytes") end
field("text", "text")

local proto = Proto("worldwire_" .. PREFIX, TITLE)
local NAME = ProtoField.string(PREFIX .. ".message.name", "Message")
local NUMBER = ProtoField.uint32(PREFIX .. ".message.number", "Number")
local LENGTH = ProtoField.uint32(PREFIX .. ".message.length", "Length")
local UNREAD = ProtoExpert.new(PREFIX .. ".message.unread", "Does not fit its layout", expert.group.MALFORMED,
    expert.severity.WARN)
for _, one in ipairs({ NAME, NUMBER, LENGTH }) do fields[#fields + 1] = one end

local interface_name = Field.new("frame.interface_name")
local direction = Field.new("frame.packet_flags_direction")
local tcp_stream = Field.new("tcp.stream")

-- The sender. Exports state it; otherwise the server has the lower port.
local function sender(pinfo)
    local flags = direction()
    if flags and flags.value == 2 then return "client" end
    if flags and flags.value == 1 then return "server" end
    return pinfo.src_port < pinfo.dst_port and "server" or "client"
end

-- Calls a function that reads. Returns its results, or nil and the reason if the bytes do not fit.
local function attempt(call, ...)
    local results = { pcall(call, ...) }
    if results[1] then return table.unpack(results, 2) end
    local problem = results[2]
    if problem == INCOMPLETE then return nil, "incomplete" end
    if type(problem) == "table" and problem.why then return nil, problem.why end
    error(problem, 0)
end

local function begin(tvb, pinfo, tree, at, length, name)
    pinfo.cols.protocol = TITLE
    local info = tostring(pinfo.cols.info)
    if pinfo.private["worldwire"] == tostring(pinfo.number) then
        pinfo.cols.info:append(", " .. name)
    else
        pinfo.cols.info = name
        pinfo.private["worldwire"] = tostring(pinfo.number)
    end
    local item = tree:add(proto, tvb(at, length), TITLE .. " " .. name)
    item:add(NAME, tvb(at, length), name):set_generated()
    return item
end

-- Reads a message's fields and shows the remaining bytes.
local function fill(state, at, layout, item)
    local stop, why = attempt(record, state, at, layout, item, {})
    if not stop then
        item:add_proto_expert_info(UNREAD, "Does not fit its layout: " .. why)
    elseif stop < state.stop then
        item:add(field("rest", "bytes"), state.tvb(stop, state.stop - stop))
    end
    return stop
end

-- The messages of a stream. `measure` returns the length of the message at an offset, or nil if more
-- bytes are needed to know it; `show` shows it.
local function stream(tvb, pinfo, tree, measure, show)
    local at, all = 0, tvb:reported_length_remaining()
    if tvb:len() < all then return 0 end
    while at < all do
        local length = measure(tvb, at, pinfo)
        if not length or at + length > all then
            pinfo.desegment_offset = at
            pinfo.desegment_len = length and at + length - all or DESEGMENT_ONE_MORE_SEGMENT
            return all
        end
        if length <= 0 then length = all - at end
        show(tvb, pinfo, tree, at, length)
        at = at + length
    end
    return all
end
