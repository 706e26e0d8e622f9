//! Clients' requests: methods of [`Connection`], and the values that they send to the vault.

use std::future::Future;
use std::sync::Arc;

use worldwire_uru::message::NodeRef;
use worldwire_uru::types::{NetError, Uuid};

use super::accounts::LoggedIn;
use super::ages::{AgeFound, InitAge, PublicAge};
use super::ask::{Ask as _, asks, decoded};
use super::handle::Connection;
use super::session::Login;
use super::tables::players::PlayerSummary;
use super::trees::AgeNodes;
use crate::store::ScoreRow;

/// The player in an encoded `AcctSetPlayerRequest` or `PlayerDeleteRequest`, and whether the
/// request chooses that player.
pub(in crate::uru) fn named_player(kind: u16, body: &[u8]) -> Option<(u32, bool)> {
    match kind {
        SetPlayer::KIND => decoded(body).ok().map(|SetPlayer { player }| (player, true)),
        DeletePlayer::KIND => decoded(body).ok().map(|DeletePlayer { player }| (player, false)),
        _ => None,
    }
}

/// Declares a method and an [`Ask`](super::ask::Ask) for each request. The method's future borrows
/// nothing.
macro_rules! requests {
    ($(
        $(#[doc = $doc:expr])*
        $kind:literal $ask:ident = $name:ident($($argument:ident: $type:ty),*) -> $reply:ty
            $(, needs $needs:ident)? ; |$state:ident, $id:ident| $body:expr
    )*) => {
        impl Connection {$(
            $(#[doc = $doc])*
            pub fn $name(
                &self,
                $($argument: $type),*
            ) -> impl Future<Output = Result<$reply, NetError>> + Send + use<> {
                self.ask($ask { $($argument),* })
            }
        )*}

        asks! {$(
            #[doc = concat!("[`", stringify!($name), "`](Connection::", stringify!($name), ").")]
            $kind $ask { $($argument: $type),* } -> $reply $(, needs $needs)?;
                |$state, $id| $body
        )*}
    };
}

requests! {
    /// `AcctLoginRequest`. The result may be
    /// [`TooManyFailedLogins`](NetError::TooManyFailedLogins),
    /// [`AuthenticationFailed`](NetError::AuthenticationFailed),
    /// [`AccountBanned`](NetError::AccountBanned), [`LoginDenied`](NetError::LoginDenied).
    1 LogIn = log_in(login: Login) -> LoggedIn;
        |state, id| state.log_in(id, login)

    /// `AcctChangePasswordRequest`, with the name of the account and P0 of the new password.
    2 ChangePassword = change_password(name: String, sha0: [u8; 20]) -> ();
        |state, id| state.change_password(id, name, *sha0)

    /// `AcctSetPlayerRequest`. 0 means no player.
    3 SetPlayer = set_player(player: u32) -> ();
        |state, id| state.set_player(id, *player)

    /// `PlayerCreateRequest`, with name and shape.
    4 CreatePlayer = create_player(name: String, shape: String) -> PlayerSummary;
        |state, id| state.create_player(id, name, shape)

    /// `PlayerDeleteRequest`.
    5 DeletePlayer = delete_player(player: u32) -> ();
        |state, id| state.delete_player(id, *player)

    /// `KickPlayer`, for administrators.
    6 KickPlayer = kick_player(player: u32) -> ();
        |state, id| state.kick_player(id, *player)

    /// `VaultNodeCreate`, with the encoded node. Returns its number.
    7 CreateNode = create(node: Vec<u8>) -> u32;
        |state, id| state.create(id, node)

    /// `VaultNodeFetch`. Returns the encoded node.
    8 FetchNode = fetch(node_id: u32) -> Arc<[u8]>, needs node_id;
        |state, id| state.fetch(id, *node_id)

    /// `VaultNodeSave`, with the encoded fields.
    9 SaveNode = save(node_id: u32, revision_id: Uuid, node: Vec<u8>) -> (), needs node_id;
        |state, id| state.save(id, *node_id, *revision_id, node)

    /// `VaultNodeAdd`.
    10 AddRef = add(parent_id: u32, child_id: u32, owner_id: u32) -> ();
        |state, id| state.add(id, *parent_id, *child_id, *owner_id)

    /// `VaultNodeRemove`.
    11 RemoveRef = remove(parent_id: u32, child_id: u32) -> ();
        |state, id| state.remove(id, *parent_id, *child_id)

    /// `VaultFetchNodeRefs`.
    12 ReadRefs = refs(node_id: u32) -> Vec<NodeRef>;
        |state, id| state.refs(id, *node_id)

    /// `VaultNodeFind`, with the encoded template. Returns at most
    /// [`MAX_FOUND`](super::MAX_FOUND) nodes.
    13 FindNodes = find(template: Vec<u8>) -> Vec<u32>;
        |state, id| state.find(id, template)

    /// `VaultSendNode`, to a player's inbox.
    14 SendNode = send(node_id: u32, receiver_id: u32) -> ();
        |state, id| state.send(id, *node_id, *receiver_id)

    /// `VaultInitAgeRequest`.
    15 MakeAge = init_age(new: InitAge) -> AgeNodes;
        |state, id| state.init_age(id, new)

    /// `AgeRequest`, with filename and instance. From now on, the session counts as being in that
    /// age and watches the age's nodes.
    16 RequestAge = request_age(filename: String, instance: Uuid) -> AgeFound;
        |state, id| state.request_age(id, filename, *instance)

    /// Records that the player has left its age and is back in the lobby.
    17 LeaveAge = leave_age() -> ();
        |state, id| state.leave_age(id)

    /// `GetPublicAgeList`. Returns at most 50 ages, the latest changes first.
    18 ListPublicAges = public_ages(filename: String) -> Vec<PublicAge>;
        |state, id| state.public_ages(id, filename)

    /// `SetAgePublic`, with the AgeInfo node.
    19 SetPublic = set_public(age_info: u32, public: bool) -> (), needs age_info;
        |state, id| state.set_public(id, *age_info, *public)

    /// `ScoreCreate`, with owner, name, type and points. Returns the number of the score and
    /// the time of its creation, in Unix seconds.
    20 CreateScore = create_score(owner: u32, name: String, kind: u32, value: i32) -> (u32, u32);
        |state, id| state.create_score(id, *owner, name, *kind, *value)

    /// `ScoreGetScores`. Returns at most one score.
    21 GetScores = get_scores(owner: u32, name: String) -> Vec<ScoreRow>;
        |state, id| state.get_scores(id, *owner, name)

    /// `ScoreAddPoints`.
    22 AddPoints = add_points(score: u32, points: i32) -> ();
        |state, id| state.add_points(id, *score, *points)

    /// `ScoreTransferPoints`.
    23 TransferPoints = transfer_points(from: u32, to: u32, points: i32) -> ();
        |state, id| state.transfer_points(id, *from, *to, *points)

    /// `ScoreSetPoints`.
    24 SetPoints = set_points(score: u32, points: i32) -> ();
        |state, id| state.set_points(id, *score, *points)

    /// `ScoreGetHighScores`, with owner (0 for all), maximum number, and name.
    25 HighScores = high_scores(owner: u32, most: u32, name: String) -> Vec<ScoreRow>;
        |state, id| state.high_scores(id, *owner, *most, name)
}
