//! What a server says on an auth connection.

use worldwire_core::{Bytes32, List32, messages};

use crate::file::manifest::FileList;
use crate::message::{AccountFlags, Caps, NetAgeInfo, NodeRef, Ranks, Scores};
use crate::types::{ClassIndex, Ipv4, Nested, NetError, Str, TransId, Uuid};
use crate::vault::VaultNode;

messages! {
    /// What a server says on an auth connection.
    pub enum ServerMessage<'a>: "auth", Server;
    reserved { 5 "AcctData" 14 "PlayerList" 15 "PlayerChat" 22 "FriendNotify" }

    /// The answer to a ping, with all fields of the request.
    0 PingReply<'a> {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
        trans_id "transId": TransId,
        /// Anything; comes back unchanged.
        payload "payload": Bytes32<'a, 65_536>,
    }

    /// Where to come back to after a lost connection, and with which token. Optional.
    1 ServerAddr {
        /// The server to come back to.
        server_address "serverAddress": Ipv4,
        /// Repeated in the connect packet.
        token "token": Uuid,
    }

    /// A new build is there. Optional.
    2 NotifyNewBuild {
        /// Means nothing.
        foo "foo": u32,
    }

    /// The server's challenge for the login, fresh for every request.
    3 ClientRegisterReply {
        /// Goes into the hash of the login.
        server_challenge "serverChallenge": u32,
    }

    /// The outcome of a login.
    4 AcctLoginReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The account; zero on failure.
        account_id "accountId": Uuid,
        /// What the account may do.
        account_flags "accountFlags": AccountFlags,
        /// 1 is paid, bit 1 is GameTap.
        billing_type "billingType": u32,
        /// The key of secure files.
        encryption_key "encryptionKey": [u32; 4],
    }

    /// A player of the account that is logging in. Never more than five may be sent: the client has
    /// room for six and does not check.
    6 AcctPlayerInfo<'a> {
        trans_id "transId": TransId,
        /// The player's number (KI number).
        player_id "playerId": u32,
        /// The player's name.
        player_name "playerName": Str<'a, 40>,
        /// `male` or `female`.
        avatar_shape "avatarShape": Str<'a, 64>,
        /// 1 for explorers, 0 for visitors.
        explorer "explorer": u32,
    }

    /// The outcome of choosing a player.
    7 AcctSetPlayerReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `AcctCreateRequest`; never sent today.
    8 AcctCreateReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The account; zero on failure.
        account_id "accountId": Uuid,
    }

    /// The outcome of `AcctChangePasswordRequest`; never sent today.
    9 AcctChangePasswordReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `AcctSetRolesRequest`; never sent today.
    10 AcctSetRolesReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `AcctSetBillingTypeRequest`; never sent today.
    11 AcctSetBillingTypeReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `AcctActivateRequest`; never sent today.
    12 AcctActivateReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `AcctCreateFromKeyRequest`; never sent today.
    13 AcctCreateFromKeyReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The account; zero on failure.
        account_id "accountId": Uuid,
        /// The key.
        activation_key "activationKey": Uuid,
    }

    /// The outcome of making a player.
    16 PlayerCreateReply<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The player's number (KI number).
        player_id "playerId": u32,
        /// 1 for explorers, 0 for visitors.
        explorer "explorer": u32,
        /// The player's name.
        player_name "playerName": Str<'a, 40>,
        /// `male` or `female`.
        avatar_shape "avatarShape": Str<'a, 64>,
    }

    /// The outcome of `PlayerDeleteRequest`; never sent today.
    17 PlayerDeleteReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `UpgradeVisitorRequest`; never sent today.
    18 UpgradeVisitorReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `SetPlayerBanStatusRequest`; never sent today.
    19 SetPlayerBanStatusReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `ChangePlayerNameRequest`; never sent today.
    20 ChangePlayerNameReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `SendFriendInviteRequest`; never sent today.
    21 SendFriendInviteReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of making a node.
    23 VaultNodeCreated {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The node.
        node_id "nodeId": u32,
    }

    /// A node, or the error and no bytes.
    24 VaultNodeFetched<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The node's fields; see [`VaultNode`].
        node "node": Nested<'a, VaultNode<'static>, 1_048_576>,
    }

    /// A node was saved, by whomever.
    25 VaultNodeChanged {
        /// The node.
        node_id "nodeId": u32,
        /// Names this change.
        revision_id "revisionId": Uuid,
    }

    /// A node is gone; no known server sends it.
    26 VaultNodeDeleted {
        /// The node.
        node_id "nodeId": u32,
    }

    /// A node was put below another one.
    27 VaultNodeAdded {
        /// The node above.
        parent_id "parentId": u32,
        /// The node below.
        child_id "childId": u32,
        /// Whose reference it is.
        owner_id "ownerId": u32,
    }

    /// A node was taken away from below another one.
    28 VaultNodeRemoved {
        /// The node above.
        parent_id "parentId": u32,
        /// The node below.
        child_id "childId": u32,
    }

    /// Every reference that can be reached from the node, each once, breadth first.
    29 VaultNodeRefsFetched {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The references.
        refs "refs": List32<NodeRef, 1_048_576>,
    }

    /// The nodes of the age instance.
    30 VaultInitAgeReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The Age node; 0 for an age without a vault.
        age_node_id "ageNodeId": u32,
        /// The AgeInfo node.
        age_info_node_id "ageInfoNodeId": u32,
    }

    /// The nodes that were found.
    31 VaultNodeFindReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The nodes.
        node_ids "nodeIds": List32<u32, 512>,
    }

    /// The outcome of saving a node.
    32 VaultSaveNodeReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of adding a reference. One server answers removals with it, too.
    33 VaultAddNodeReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of removing a reference.
    34 VaultRemoveNodeReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The game server that hosts the age.
    35 AgeReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The host of the age on the game server.
        age_mcp_id "ageMcpId": u32,
        /// The instance of the age.
        age_instance_id "ageInstanceId": Uuid,
        /// The Age node; 0 for an age without a vault.
        age_node_id "ageNodeId": u32,
        /// The game server; the port is the one of the client's configuration.
        game_server_address "gameServerAddress": Ipv4,
    }

    /// The secure files.
    36 FileListReply<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The files; see [`FileList`].
        files "files": Nested<'a, FileList<'static>, 1_048_576>,
    }

    /// A chunk of a secure file, in order from offset 0.
    37 FileDownloadChunk<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// Bytes of the whole file.
        total_file_size "totalFileSize": u32,
        /// Where the chunk belongs.
        chunk_offset "chunkOffset": u32,
        /// The bytes. The declared size is 1460; real servers send up to 64 KiB.
        chunk "chunk": Bytes32<'a, 1_048_576>,
    }

    /// Never sent on auth connections.
    38 PropagateBuffer<'a> {
        /// The class index of the net message; the first two bytes of the buffer repeat it.
        type_ "type": ClassIndex,
        /// The net message.
        buffer "buffer": Bytes32<'a, 1_048_576>,
    }

    /// Throws the client out.
    39 KickedOff {
        /// Why.
        reason "reason": NetError,
    }

    /// The public instances of an age.
    40 PublicAgeList<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The instances.
        ages "ages": List32<NetAgeInfo<'a>, 512>,
    }

    /// The outcome of making a score.
    41 ScoreCreateReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The score.
        score_id "scoreId": u32,
        /// When, Unix seconds.
        created_time "createdTime": u32,
    }

    /// The outcome of `ScoreDelete`.
    42 ScoreDeleteReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The scores of an owner.
    43 ScoreGetScoresReply<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// How many scores there are.
        score_count "scoreCount": u32,
        /// The scores; see [`Scores`].
        scores "scores": Nested<'a, Scores<'static>, 1_048_576>,
    }

    /// The outcome of `ScoreAddPoints`.
    44 ScoreAddPointsReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `ScoreTransferPoints`.
    45 ScoreTransferPointsReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// The outcome of `ScoreSetPoints`.
    46 ScoreSetPointsReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
    }

    /// A ranking.
    47 ScoreGetRanksReply<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// How many ranks there are.
        rank_count "rankCount": u32,
        /// The ranks; see [`Ranks`].
        ranks "ranks": Nested<'a, Ranks<'static>, 1_048_576>,
    }

    /// Whether the account exists.
    48 AccountExistsReply {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// 1 if it does.
        exists "exists": u8,
    }

    /// The game server that hosts the age, by name. The number is H'uru's, the layout that of two
    /// servers.
    0x1000 AgeReplyEx<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// The host of the age on the game server.
        age_mcp_id "ageMcpId": u32,
        /// The instance of the age.
        age_instance_id "ageInstanceId": Uuid,
        /// The Age node; 0 for an age without a vault.
        age_node_id "ageNodeId": u32,
        /// The game server; the port is the one of the client's configuration.
        game_server_address "gameServerAddress": Str<'a, 65_536>,
    }

    /// The best scores (H'uru).
    0x1001 ScoreGetHighScoresReply<'a> {
        trans_id "transId": TransId,
        /// The outcome.
        result "result": NetError,
        /// How many scores there are.
        score_count "scoreCount": u32,
        /// The scores; see [`Scores`].
        scores "scores": Nested<'a, Scores<'static>, 1_048_576>,
    }

    /// What the server can do (H'uru): bits of score leaderboards 0, game manager Blue Spiral 1,
    /// climbing wall 2, Heek 3, marker games 4, tic-tac-toe 5, VarSync 6.
    0x1002 ServerCaps<'a> {
        /// The bits; see [`Caps`].
        caps "caps": Nested<'a, Caps, 1_048_576>,
    }
}
