
proto.fields = fields
proto.experts = { UNREAD }

-- Exports name the family in the interface; other unencrypted streams are dissected with "Decode As".
local function is_ours(tvb, pinfo, tree)
    local interface = interface_name()
    if not interface or interface.value ~= "worldwire-" .. PREFIX then return false end
    proto.dissector(tvb, pinfo, tree)
    pinfo.conversation = proto
    return true
end
for _, transport in ipairs(TRANSPORTS) do
    proto:register_heuristic(transport, is_ours)
    DissectorTable.get(transport .. ".port"):add_for_decode_as(proto)
end
