-- MxO: decrypted datagrams of the game channel, and messages of the auth and margin channels.

for _, side in ipairs({ "client", "server" }) do
    for message in ordered(RPCS[side]) do declare_fields(message[2]) end
    declare("opcode", { "e", 2, OPCODES[side] })
end
for _, name in ipairs({ "sequence", "sections", "sections_list", "lists", "lists_list", "messages", "messages_list",
    "fields" }) do field(name, "group") end
for channel in ordered(LOGINS) do
    for side in ordered(channel) do
        for message in ordered(side) do declare_fields(message[2]) end
    end
end
declare("opcode", "u1")
declare("crc", "h4")
declare("length", "u2")
declare("time", "u4")
declare("acks", "h1")
for _, name in ipairs({ "remote", "local", "firstSeq" }) do field(name, "u", 2) end
declare("flags", { "g", 1, FLAGS })
declare("simTime", "f4")
declare("mpm", { "e", 1, SECTIONS })
for _, name in ipairs({ "data", "objects", "encryptedSession" }) do field(name, "bytes") end
declare("characterUid", "u8")
declare("unknown", "u8")
declare("value", "u4")
field("kind", "text")

local function rpc(state, at, tree, side, index)
    local item = group(state, tree, "messages", at, "[" .. index .. "]")
    local start, length, width = at, need(state, at, 1):uint(), 1
    if length >= 0x80 then length, width = need(state, at, 2):uint() - 0x8000, 2 end
    item:add(field("length", "u", 2), state.tvb(at, width), length)
    at = at + width
    local stop = at + length
    need(state, at, length)
    local opcode, head = need(state, at, 1):uint(), 1
    if opcode >= 0x80 and length >= 2 then opcode, head = need(state, at, 2):uint(), 2 end
    item:add(field("opcode", "e", 2, OPCODES[side]), state.tvb(at, head), opcode)
    local message = RPCS[side][opcode]
    at = at + head
    local inner = { tvb = state.tvb, stop = stop }
    -- A body that does not match the layout is shown as bytes.
    local fits = message and attempt(record, inner, at, message[2], nil, {}) == stop
    if fits then
        inner.is_opaque = false
        local fields_item = group(state, item, "fields", at)
        record(inner, at, message[2], fields_item, {})
        close(fields_item, state, at, stop)
    elseif stop > at or not message then
        add_span(state, item, "data", "bytes", at, at, stop - at, stop)
    end
    close(item, state, start, stop)
    return stop
end

local function rpc_lists(state, at, tree, side)
    local count = need(state, at, 1):uint()
    local all = group(state, tree, "lists_list", at, "lists")
    at = at + 1
    for index = 0, count - 1 do
        local item = group(state, all, "lists", at, "[" .. index .. "]")
        item:add(field("firstSeq", "u", 2), need(state, at, 2))
        local messages = need(state, at + 2, 1):uint()
        local list_item = group(state, item, "messages_list", at + 2, "messages")
        at = at + 3
        for number = 0, messages - 1 do at = rpc(state, at, list_item, side, number) end
    end
    return at
end

local function packet(state, tree, side)
    local at = record(state, 0, { { "crc", "h4" }, { "length", "u2" }, { "time", "u4" } }, tree, {})
    local word = need(state, at, 4)
    local item = group(state, tree, "sequence", at)
    item:add(field("acks", "h", 1), word(0, 1))
    item:add(field("remote", "u", 2), word(1, 2), math.floor(word(1, 2):uint() / 16))
    item:add(field("local", "u", 2), word(2, 2), word(2, 2):uint() % 4096)
    at = at + 4
    local flags = need(state, at, 1):uint()
    at = read(state, at, "flags", { "g", 1, FLAGS }, tree)
    if common(flags, SIM_TIME) ~= 0 then at = read(state, at, "simTime", "f4", tree) end
    local sections, index = group(state, tree, "sections_list", at, "sections"), 0
    local kinds = {}
    while at < state.stop do
        local kind = need(state, at, 1):uint()
        local section = group(state, sections, "sections", at, "[" .. index .. "]")
        section:add(field("mpm", "e", 1, SECTIONS), state.tvb(at, 1))
        kinds[kind] = true
        if kind == 4 then
            at = rpc_lists(state, at + 1, section, side)
        elseif kind == 3 then
            -- Only the connection's history shows where objects end and what they are.
            add_span(state, section, "objects", "bytes", at, at, state.stop - at, state.stop)
            at = state.stop
        else
            add_span(state, section, "data", "bytes", at + 1, at + 1, state.stop - at - 1, state.stop)
            at = state.stop
        end
        index = index + 1
    end
    return kinds
end

-- The kinds of packets that are never encrypted, by their first bytes.
local PLAIN = {
    { "Hello", "\0\0\0\0\0\0\3\8\0\0\0", { { "characterUid", "u8" }, { "unknown", "u8" },
        { "encryptedSession", { "x", "bytes", 16 } } }, 43 },
    { "Answer", "\0\0\0\0\0\0\5", {}, 7 },
    { "Ping", "\0\0\0\0\0\1\4\8", { { "value", "u4" } }, 12 },
}

local function plain(tvb)
    local bytes = tvb:raw()
    for _, one in ipairs(PLAIN) do
        if #bytes == one[4] and bytes:sub(1, #one[2]) == one[2] then return one end
    end
end

-- The channel of each TCP conversation, by its client's first opcode.
local channels = {}

-- A message of the auth or margin channel, without its length: one per segment of an export.
local function login(tvb, pinfo, tree)
    local side, length, number = sender(pinfo), tvb:len(), tcp_stream().value
    local opcode = tvb(0, 1):uint()
    if side == "client" and not channels[number] then channels[number] = opcode == 1 and "margin" or "auth" end
    local channel = channels[number] or "auth"
    local message = LOGINS[channel][side][opcode]
    local name = channel .. "." .. (message and message[1] or string.format("0x%02x", opcode))
    local item = begin(tvb, pinfo, tree, 0, length, name)
    item:add(field("opcode", "u", 1), tvb(0, 1))
    local state = { tvb = tvb, stop = length }
    if not message then
        add_span(state, item, "data", "bytes", 1, 1, length - 1, length)
        return length
    end
    local inner = group(state, item, "fields", 1)
    fill(state, 1, message[2], inner)
    close(inner, state, 1, length)
    return length
end

function proto.dissector(tvb, pinfo, tree)
    local length = tvb:len()
    if length == 0 then return 0 end
    if tcp_stream() then return login(tvb, pinfo, tree) end
    local state, setup = { tvb = tvb, stop = length }, plain(tvb)
    if setup then
        local item = begin(tvb, pinfo, tree, 0, length, "setup." .. setup[1])
        item:add(field("kind", "text"), tvb(0, #setup[2]), setup[1])
        fill(state, #setup[2], setup[3], item)
        return length
    end
    local name = "game.Other"
    if length >= 15 then
        local at = 15 + (common(tvb(14, 1):uint(), SIM_TIME) ~= 0 and 4 or 0)
        local kind = length > at and tvb(at, 1):uint()
        name = not kind and "game.Ack" or kind == 4 and "game.Rpc" or kind == 3 and "game.Objects" or name
    end
    local item = begin(tvb, pinfo, tree, 0, length, name)
    local kinds, why = attempt(packet, state, item, sender(pinfo))
    if not kinds then item:add_proto_expert_info(UNREAD, "Does not fit its layout: " .. why) end
    return length
end
