//! Requests to which the reply is always the same, once the client is in the required state.

use worldwire_uru::message::auth::client::ClientMessage as Ask;
use worldwire_uru::message::auth::server as reply;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::types::{Nested, NetError, Uuid};

use super::ClientState;

/// Each row contains the request, the required state, the result, and the reply with its other
/// fields.
macro_rules! fixed {
    ($($Ask:ident from $from:ident: $result:ident in $Reply:ident { $($field:ident: $value:expr),* };)*) => {
        /// The reply, if the request is one of these.
        pub(super) fn answer(message: &Ask<'_>, state: ClientState) -> Option<Reply<'static>> {
            Some(match message {
                $(Ask::$Ask(request) => {
                    let is_allowed = state >= ClientState::$from;
                    let result =
                        if is_allowed { NetError::$result } else { NetError::AuthenticationFailed };
                    let trans_id = request.trans_id;
                    reply::$Reply { trans_id, result, $($field: $value),* }.into()
                })*
                _ => return None,
            })
        }
    };
}

fixed! {
    UpgradeVisitorRequest from LoggedIn: Success in UpgradeVisitorReply {};
    AcctCreateRequest from LoggedIn: NotSupported in AcctCreateReply { account_id: Uuid::ZERO };
    AcctCreateFromKeyRequest from LoggedIn: NotSupported
        in AcctCreateFromKeyReply { account_id: Uuid::ZERO, activation_key: Uuid::ZERO };
    AcctActivateRequest from LoggedIn: NotSupported in AcctActivateReply {};
    AcctSetRolesRequest from LoggedIn: ServiceForbidden in AcctSetRolesReply {};
    AcctSetBillingTypeRequest from LoggedIn: ServiceForbidden in AcctSetBillingTypeReply {};
    AccountExistsRequest from LoggedIn: ServiceForbidden in AccountExistsReply { exists: 0 };
    SetPlayerBanStatusRequest from LoggedIn: ServiceForbidden in SetPlayerBanStatusReply {};
    ChangePlayerNameRequest from LoggedIn: NotSupported in ChangePlayerNameReply {};
    SendFriendInviteRequest from LoggedIn: ServiceForbidden in SendFriendInviteReply {};
    ScoreDelete from Playing: NotSupported in ScoreDeleteReply {};
    ScoreGetRanks from Playing: NotSupported
        in ScoreGetRanksReply { rank_count: 0, ranks: Nested::new(Vec::new()) };
}
