-- KI: frames with control messages or DML messages.

local MAGIC, LARGE = 0xf00d, 0x8000

-- Present if more than the trailer follows.
READ.q = function(state, at, name, layout, tree)
    if state.stop - at <= 1 then return at end
    return read(state, at, name, layout[2], tree)
end
DECLARE.q = function(name, layout) declare(name, layout[2]) end

for message in ordered(MESSAGES) do declare_fields(message[2]) end
for control in ordered(CONTROLS) do
    for _, side in ipairs({ "client", "server" }) do declare_fields(control[side]) end
end
declare("trailer", "u1")


local function measure(tvb, at)
    local left = tvb:len() - at
    if left < 4 then return nil end
    local length = tvb(at + 2, 2):le_uint()
    if length < LARGE then return 4 + length end
    if left < 8 then return nil end
    return 8 + tvb(at + 4, 4):le_uint()
end

local function trailer(tvb, item, at, stop)
    if stop - at == 1 then item:add_le(field("trailer", "u", 1), tvb(at, 1)) end
end

local function show(tvb, pinfo, tree, at, length)
    local stop = at + length
    local head = tvb(at + 2, 2):le_uint() < LARGE and 4 or 8
    if tvb(at, 2):le_uint() ~= MAGIC or length < head + 4 then
        local item = begin(tvb, pinfo, tree, at, length, "no frame")
        item:add(field("payload", "bytes"), tvb(at, length))
        return
    end
    local body = at + head
    if tvb(body, 1):uint() ~= 0 then
        local opcode = tvb(body + 1, 1):uint()
        local control = CONTROLS[opcode]
        local item = begin(tvb, pinfo, tree, at, length, "control." .. (control and control.name or opcode))
        item:add_le(NUMBER, tvb(body + 1, 1))
        if not control then
            if stop > body + 4 then item:add(field("body", "bytes"), tvb(body + 4, stop - body - 4)) end
            return
        end
        local state = { tvb = tvb, stop = stop }
        local layout = control[sender(pinfo)]
        if stop - (body + 4) <= 1 then layout = {} end
        local from, why = attempt(record, state, body + 4, layout, item, {})
        if from then
            trailer(tvb, item, from, stop)
        else
            item:add_proto_expert_info(UNREAD, "Does not fit its layout: " .. why)
        end
        return
    end
    local from = body + 4
    while stop - from > 1 do
        local service, order = tvb(from, 1):uint(), tvb(from + 1, 1):uint()
        local count = stop - from >= 4 and tvb(from + 2, 2):le_uint() or 0
        -- The first message of a large frame may be longer than its length field can express.
        local is_bound = head == 8 and from == body + 4 and stop - from > 65536
        if count < 4 or from + count > stop then
            if not is_bound then
                local item = begin(tvb, pinfo, tree, from, stop - from, "no message")
                item:add(field("payload", "bytes"), tvb(from, stop - from))
                return
            end
            count = stop - from - 1
        end
        local message = MESSAGES[service * 256 + order]
        local name = message and message[1] or (SERVICES[service] or service) .. "." .. order
        local item = begin(tvb, pinfo, tree, from, count, name)
        item:add_le(LENGTH, tvb(from + 2, 2))
        item:add(NUMBER, tvb(from, 2), service * 256 + order)
        if message then
            fill({ tvb = tvb, stop = from + count }, from + 4, message[2], item)
        elseif count > 4 then
            item:add(field("payload", "bytes"), tvb(from + 4, count - 4))
        end
        from = from + count
    end
end
field("body", "bytes")

function proto.dissector(tvb, pinfo, tree) return stream(tvb, pinfo, tree, measure, show) end
