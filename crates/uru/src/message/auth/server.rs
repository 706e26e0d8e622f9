//! Messages from the server on an auth connection.

use worldwire_core::{Bytes32, List32, messages};

use crate::file::manifest::FileList;
use crate::message::{AccountFlags, Caps, NetAgeInfo, NodeRef, Ranks, Scores};
use crate::types::{ClassIndex, Ipv4, Nested, NetError, Str, TransId, Uuid};
use crate::vault::VaultNode;

messages! {
    /// Messages from the server on an auth connection.
    pub enum ServerMessage<'a>: "auth", Server;
    reserved { 5 "AcctData" 14 "PlayerList" 15 "PlayerChat" 22 "FriendNotify" }

    /// The reply to a ping, repeating all its fields.
    0 PingReply<'a> {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
        trans_id "transId": TransId,
        /// Arbitrary data, returned unchanged.
        payload "payload": Bytes32<'a, 65_536>,
    }

    /// The address and token for reconnecting after a lost connection. Optional.
    1 ServerAddr {
        /// The server to reconnect to.
        server_address "serverAddress": Ipv4,
        /// The token to send in the connect packet.
        token "token": Uuid,
    }

    /// A new build is available. Optional.
    2 NotifyNewBuild {
        /// Meaningless.
        foo "foo": u32,
    }

    /// The server's challenge for the login, new for every request.
    3 ClientRegisterReply {
        /// Part of the input of the login hash.
        server_challenge "serverChallenge": u32,
    }

    /// The result of a login.
    4 AcctLoginReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The account; zero on failure.
        account_id "accountId": Uuid,
        /// The account's privileges.
        account_flags "accountFlags": AccountFlags,
        /// 1 if paid; bit 1 is GameTap.
        billing_type "billingType": u32,
        /// The key for secure files.
        encryption_key "encryptionKey": [u32; 4],
    }

    /// One of the account's players, sent during login. At most five may be sent: the client has
    /// room for six and does not check.
    6 AcctPlayerInfo<'a> {
        trans_id "transId": TransId,
        /// The player's KI number.
        player_id "playerId": u32,
        /// The player's name.
        player_name "playerName": Str<'a, 40>,
        /// `male` or `female`.
        avatar_shape "avatarShape": Str<'a, 64>,
        /// 1 for explorers, 0 for visitors.
        explorer "explorer": u32,
    }

    /// The result of selecting a player.
    7 AcctSetPlayerReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `AcctCreateRequest`; no longer sent.
    8 AcctCreateReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The account; zero on failure.
        account_id "accountId": Uuid,
    }

    /// The result of `AcctChangePasswordRequest`; no longer sent.
    9 AcctChangePasswordReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `AcctSetRolesRequest`; no longer sent.
    10 AcctSetRolesReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `AcctSetBillingTypeRequest`; no longer sent.
    11 AcctSetBillingTypeReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `AcctActivateRequest`; no longer sent.
    12 AcctActivateReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `AcctCreateFromKeyRequest`; no longer sent.
    13 AcctCreateFromKeyReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The account; zero on failure.
        account_id "accountId": Uuid,
        /// The activation key.
        activation_key "activationKey": Uuid,
    }

    /// The result of creating a player.
    16 PlayerCreateReply<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The player's KI number.
        player_id "playerId": u32,
        /// 1 for explorers, 0 for visitors.
        explorer "explorer": u32,
        /// The player's name.
        player_name "playerName": Str<'a, 40>,
        /// `male` or `female`.
        avatar_shape "avatarShape": Str<'a, 64>,
    }

    /// The result of `PlayerDeleteRequest`; no longer sent.
    17 PlayerDeleteReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `UpgradeVisitorRequest`; no longer sent.
    18 UpgradeVisitorReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `SetPlayerBanStatusRequest`; no longer sent.
    19 SetPlayerBanStatusReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `ChangePlayerNameRequest`; no longer sent.
    20 ChangePlayerNameReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `SendFriendInviteRequest`; no longer sent.
    21 SendFriendInviteReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of creating a node.
    23 VaultNodeCreated {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The node.
        node_id "nodeId": u32,
    }

    /// A node, or an error and no bytes.
    24 VaultNodeFetched<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The node's fields; see [`VaultNode`].
        node "node": Nested<'a, VaultNode<'static>, 1_048_576>,
    }

    /// A node was changed, by any client.
    25 VaultNodeChanged {
        /// The node.
        node_id "nodeId": u32,
        /// Identifies this change.
        revision_id "revisionId": Uuid,
    }

    /// A node was deleted; no known server sends it.
    26 VaultNodeDeleted {
        /// The node.
        node_id "nodeId": u32,
    }

    /// A node was added as a child of another.
    27 VaultNodeAdded {
        /// The parent node.
        parent_id "parentId": u32,
        /// The child node.
        child_id "childId": u32,
        /// The owner of the reference.
        owner_id "ownerId": u32,
    }

    /// A child node was removed from its parent.
    28 VaultNodeRemoved {
        /// The parent node.
        parent_id "parentId": u32,
        /// The child node.
        child_id "childId": u32,
    }

    /// All references reachable from the node, each once, breadth first.
    29 VaultNodeRefsFetched {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The references.
        refs "refs": List32<NodeRef, 1_048_576>,
    }

    /// The nodes of the age instance.
    30 VaultInitAgeReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The Age node; 0 for an age without a vault.
        age_node_id "ageNodeId": u32,
        /// The AgeInfo node.
        age_info_node_id "ageInfoNodeId": u32,
    }

    /// The matching nodes.
    31 VaultNodeFindReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The nodes.
        node_ids "nodeIds": List32<u32, 512>,
    }

    /// The result of saving a node.
    32 VaultSaveNodeReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of adding a reference. One server also sends it in reply to removals.
    33 VaultAddNodeReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of removing a reference.
    34 VaultRemoveNodeReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The game server for the age instance.
    35 AgeReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The ID of the age's host on the game server.
        age_mcp_id "ageMcpId": u32,
        /// The instance of the age.
        age_instance_id "ageInstanceId": Uuid,
        /// The Age node; 0 for an age without a vault.
        age_node_id "ageNodeId": u32,
        /// The game server's address; clients use the port they are configured with.
        game_server_address "gameServerAddress": Ipv4,
    }

    /// The secure files.
    36 FileListReply<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The files; see [`FileList`].
        files "files": Nested<'a, FileList<'static>, 1_048_576>,
    }

    /// A chunk of a secure file; chunks are sent in order.
    37 FileDownloadChunk<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The size of the whole file in bytes.
        total_file_size "totalFileSize": u32,
        /// The offset of the chunk in the file.
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

    /// Kicks the client.
    39 KickedOff {
        /// The reason.
        reason "reason": NetError,
    }

    /// The public instances of an age.
    40 PublicAgeList<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The instances.
        ages "ages": List32<NetAgeInfo<'a>, 512>,
    }

    /// The result of creating a score.
    41 ScoreCreateReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The score's ID.
        score_id "scoreId": u32,
        /// The time of creation in Unix seconds.
        created_time "createdTime": u32,
    }

    /// The result of `ScoreDelete`.
    42 ScoreDeleteReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The scores of an owner.
    43 ScoreGetScoresReply<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The number of scores.
        score_count "scoreCount": u32,
        /// The scores; see [`Scores`].
        scores "scores": Nested<'a, Scores<'static>, 1_048_576>,
    }

    /// The result of `ScoreAddPoints`.
    44 ScoreAddPointsReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `ScoreTransferPoints`.
    45 ScoreTransferPointsReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// The result of `ScoreSetPoints`.
    46 ScoreSetPointsReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
    }

    /// A ranking.
    47 ScoreGetRanksReply<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The number of ranks.
        rank_count "rankCount": u32,
        /// The ranks; see [`Ranks`].
        ranks "ranks": Nested<'a, Ranks<'static>, 1_048_576>,
    }

    /// Reports whether an account exists.
    48 AccountExistsReply {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// 1 if the account exists.
        exists "exists": u8,
    }

    /// The game server for the age instance, as a host name. The number comes from H'uru and the
    /// layout from two servers.
    0x1000 AgeReplyEx<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The ID of the age's host on the game server.
        age_mcp_id "ageMcpId": u32,
        /// The instance of the age.
        age_instance_id "ageInstanceId": Uuid,
        /// The Age node; 0 for an age without a vault.
        age_node_id "ageNodeId": u32,
        /// The game server's address; clients use the port they are configured with.
        game_server_address "gameServerAddress": Str<'a, 65_536>,
    }

    /// The highest scores (H'uru).
    0x1001 ScoreGetHighScoresReply<'a> {
        trans_id "transId": TransId,
        /// The result.
        result "result": NetError,
        /// The number of scores.
        score_count "scoreCount": u32,
        /// The scores; see [`Scores`].
        scores "scores": Nested<'a, Scores<'static>, 1_048_576>,
    }

    /// The server's capabilities (H'uru), by bit: 0 score leaderboards; games of the game manager:
    /// 1 Blue Spiral, 2 climbing wall, 3 Heek, 4 marker games, 5 tic-tac-toe, 6 VarSync.
    0x1002 ServerCaps<'a> {
        /// The bits; see [`Caps`].
        caps "caps": Nested<'a, Caps, 1_048_576>,
    }
}
