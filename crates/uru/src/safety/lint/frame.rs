//! Inspects messages of all services, and connect packets.

use worldwire_core::{Limits, Reader, Side, Tree, Value};

use crate::connect::{ConnectData, ConnectPacket};
use crate::frame::{Message, Service};
use crate::types::NetError;

/// Messages that no current client sends.
const UNUSED_BY_CLIENTS: [&str; 16] = [
    "ClientSetCCRLevel",
    "AcctCreateRequest",
    "AcctSetRolesRequest",
    "AcctSetBillingTypeRequest",
    "AcctActivateRequest",
    "AcctCreateFromKeyRequest",
    "UpgradeVisitorRequest",
    "SetPlayerBanStatusRequest",
    "KickPlayer",
    "ChangePlayerNameRequest",
    "VaultSetSeen",
    "PropagateBuffer",
    "ScoreDelete",
    "ScoreGetRanks",
    "AccountExistsRequest",
    "AgeRequestEx",
];
/// Messages that servers never send, or send only in reply to `UNUSED_BY_CLIENTS`.
const UNUSED_BY_SERVERS: [&str; 13] = [
    "AcctCreateReply",
    "AcctSetRolesReply",
    "AcctSetBillingTypeReply",
    "AcctActivateReply",
    "AcctCreateFromKeyReply",
    "UpgradeVisitorReply",
    "SetPlayerBanStatusReply",
    "ChangePlayerNameReply",
    "VaultNodeDeleted",
    "PropagateBuffer",
    "ScoreDeleteReply",
    "ScoreGetRanksReply",
    "AccountExistsReply",
];
/// Replies in which clients treat [`NetError::VaultNodeNotFound`] as success.
const NEVER_NOT_FOUND: [&str; 2] = ["AcctLoginReply", "AgeReply"];

/// Inspects a message of any service, but not the net message inside it, and returns one remark per
/// irregularity. A message that cannot be decoded yields none.
#[must_use]
pub fn lint_frame(service: Service, sender: Side, message: &[u8], limits: &Limits) -> Vec<String> {
    let decoded = Message::decode(service, sender, &mut Reader::within(message, limits));
    let Ok(decoded) = decoded else { return Vec::new() };
    let name = decoded.name();
    let mut remarks = Vec::new();
    let mut remark_if = |odd: bool, remark: &str| {
        if odd {
            remarks.push(remark.to_owned());
        }
    };
    let unused: &[&str] = match (service, sender) {
        (Service::Auth, Side::Client) => &UNUSED_BY_CLIENTS,
        (Service::Auth, Side::Server) => &UNUSED_BY_SERVERS,
        _ => &[],
    };
    remark_if(unused.contains(&name), &format!("{sender}s do not send this message"));
    if name.ends_with("Reply")
        && let Some(result) = result_of(service, sender, message, limits)
    {
        remark_if(result == NetError::Pending, "the result Pending, which should never be sent");
        let misread = result == NetError::VaultNodeNotFound && NEVER_NOT_FOUND.contains(&name);
        remark_if(misread, "the result VaultNodeNotFound, which clients mistake for success here");
    }
    remarks
}

/// The result in a reply, if it has one.
fn result_of(service: Service, sender: Side, message: &[u8], limits: &Limits) -> Option<NetError> {
    let mut reader = Reader::traced_within("message", message, Tree::new(), limits);
    Message::decode(service, sender, &mut reader).ok()?;
    let tree = reader.finish();
    match tree.find("fields.result")?.value() {
        Value::Enum(result, _) => i32::try_from(result).ok().map(NetError),
        _ => None,
    }
}

/// Inspects a connect packet.
#[must_use]
pub fn lint_connect(packet: &ConnectPacket) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut remark_if = |odd: bool, remark: &str| {
        if odd {
            remarks.push(remark.to_owned());
        }
    };
    match &packet.data {
        ConnectData::File(data) => {
            remark_if(data.server_type != 0, "a server type, which clients should send as 0");
            remark_if(
                packet.build_id != 0,
                "a build number, which should be 0 on file connections",
            );
        }
        ConnectData::Gatekeeper(data) => {
            remark_if(
                !data.token.is_zero(),
                "a token, which should be zero on gatekeeper connections",
            );
        }
        ConnectData::Csr | ConnectData::SimpleNet(_) => {
            remark_if(true, "a defunct connection type");
        }
        ConnectData::Auth(_) | ConnectData::Game(_) => {}
    }
    remarks
}
