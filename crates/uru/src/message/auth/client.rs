//! Messages from the client on an auth connection.

use worldwire_core::{Bytes32, messages};

use crate::message::AccountFlags;
use crate::types::{ClassIndex, Nested, Str, TransId, Uuid};
use crate::vault::VaultNode;

messages! {
    /// Messages from the client on an auth connection.
    pub enum ClientMessage<'a>: "auth", Client;
    reserved {
        4 "AcctSetEulaVersion"
        5 "AcctSetDataRequest"
        14 "PlayerUndeleteRequest"
        15 "PlayerSelectRequest"
        16 "PlayerRenameRequest"
        18 "PlayerSetStatus"
        19 "PlayerChat"
        28 "VaultNodeDelete"
    }

    /// Keep-alive, sent right after setup and then every 30 seconds. The server answers immediately
    /// with all fields unchanged.
    0 PingRequest<'a> {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
        trans_id "transId": TransId,
        /// Arbitrary data, returned unchanged.
        payload "payload": Bytes32<'a, 65_536>,
    }

    /// The client's first message: its build number. The server closes the connection if the build
    /// is wrong.
    1 ClientRegisterRequest {
        /// The build number; 918 for practically all current clients, 0 for "the newest".
        build_id "buildId": u32,
    }

    /// Never sent by current clients; ignored.
    2 ClientSetCCRLevel {
        /// No longer used.
        ccr_level "ccrLevel": u32,
    }

    /// Logs in. Answered by an `AcctPlayerInfo` for every player of the account, then an
    /// `AcctLoginReply`.
    3 AcctLoginRequest<'a> {
        trans_id "transId": TransId,
        /// Random if the account name is an e-mail address, otherwise 0.
        client_challenge "clientChallenge": u32,
        /// The account name; case-insensitive.
        account_name "accountName": Str<'a, 64>,
        /// Proof of the password: its digest or, for an e-mail address, a hash of the digest and both
        /// challenges.
        challenge_hash "challengeHash": [u8; 20],
        /// Unused.
        auth_token "authToken": Str<'a, 64>,
        /// `win` or `mac`.
        os "os": Str<'a, 8>,
    }

    /// Selects the player to play, or none.
    6 AcctSetPlayerRequest {
        trans_id "transId": TransId,
        /// The player's KI number.
        player_id "playerId": u32,
    }

    /// Creates an account; never sent by current clients.
    7 AcctCreateRequest<'a> {
        trans_id "transId": TransId,
        /// The account name; case-insensitive.
        account_name "accountName": Str<'a, 64>,
        /// The digest of the password.
        password_hash "passwordHash": [u8; 20],
        /// The account's privileges.
        account_flags "accountFlags": AccountFlags,
        /// 1 if paid; bit 1 is GameTap.
        billing_type "billingType": u32,
    }

    /// Changes the password of an account (`/changepassword`).
    8 AcctChangePasswordRequest<'a> {
        trans_id "transId": TransId,
        /// The account name; case-insensitive.
        account_name "accountName": Str<'a, 64>,
        /// The SHA-0 digest of the new password and the account name.
        password_hash "passwordHash": [u8; 20],
    }

    /// Changes an account's privileges; never sent by current clients.
    9 AcctSetRolesRequest<'a> {
        trans_id "transId": TransId,
        /// The account name; case-insensitive.
        account_name "accountName": Str<'a, 64>,
        /// The account's privileges.
        account_flags "accountFlags": AccountFlags,
    }

    /// Changes an account's billing type; never sent by current clients.
    10 AcctSetBillingTypeRequest<'a> {
        trans_id "transId": TransId,
        /// The account name; case-insensitive.
        account_name "accountName": Str<'a, 64>,
        /// 1 if paid; bit 1 is GameTap.
        billing_type "billingType": u32,
    }

    /// Activates an account; never sent by current clients.
    11 AcctActivateRequest {
        trans_id "transId": TransId,
        /// The activation key.
        activation_key "activationKey": Uuid,
    }

    /// Creates an account from a key; never sent by current clients.
    12 AcctCreateFromKeyRequest<'a> {
        trans_id "transId": TransId,
        /// The account name; case-insensitive.
        account_name "accountName": Str<'a, 64>,
        /// The digest of the password.
        password_hash "passwordHash": [u8; 20],
        /// The activation key.
        key "key": Uuid,
        /// 1 if paid; bit 1 is GameTap.
        billing_type "billingType": u32,
    }

    /// Deletes a player of the account.
    13 PlayerDeleteRequest {
        trans_id "transId": TransId,
        /// The player's KI number.
        player_id "playerId": u32,
    }

    /// Creates a player.
    17 PlayerCreateRequest<'a> {
        trans_id "transId": TransId,
        /// The player's name.
        player_name "playerName": Str<'a, 40>,
        /// `male` or `female`.
        avatar_shape "avatarShape": Str<'a, 260>,
        /// Ignored.
        friend_invite "friendInvite": Str<'a, 260>,
    }

    /// Upgrades a visitor to an explorer; never sent by current clients.
    20 UpgradeVisitorRequest {
        trans_id "transId": TransId,
        /// The player's KI number.
        player_id "playerId": u32,
    }

    /// Bans a player; never sent by current clients.
    21 SetPlayerBanStatusRequest {
        trans_id "transId": TransId,
        /// The player's KI number.
        player_id "playerId": u32,
        /// 1 to ban, 0 to lift the ban.
        banned "banned": u32,
    }

    /// Kicks a player; never sent by current clients, and never answered.
    22 KickPlayer {
        /// The player's KI number.
        player_id "playerId": u32,
    }

    /// Renames a player; never sent by current clients.
    23 ChangePlayerNameRequest<'a> {
        trans_id "transId": TransId,
        /// The player's KI number.
        player_id "playerId": u32,
        /// The new name.
        new_name "newName": Str<'a, 40>,
    }

    /// Invites a friend by e-mail.
    24 SendFriendInviteRequest<'a> {
        trans_id "transId": TransId,
        /// The invitation.
        invite_uuid "inviteUuid": Uuid,
        /// The address to invite.
        email_address "emailAddress": Str<'a, 64>,
        /// The friend's name.
        to_player "toPlayer": Str<'a, 40>,
    }

    /// Creates a vault node. The server assigns number, times and creator.
    25 VaultNodeCreate<'a> {
        trans_id "transId": TransId,
        /// The node's fields; see [`VaultNode`].
        node "node": Nested<'a, VaultNode<'static>, 1_048_576>,
    }

    /// Requests a vault node.
    26 VaultNodeFetch {
        trans_id "transId": TransId,
        /// The node.
        node_id "nodeId": u32,
    }

    /// Changes fields of a vault node: the given fields are replaced, and all others are kept.
    27 VaultNodeSave<'a> {
        trans_id "transId": TransId,
        /// The node.
        node_id "nodeId": u32,
        /// Identifies this change.
        revision_id "revisionId": Uuid,
        /// The node's fields; see [`VaultNode`].
        node "node": Nested<'a, VaultNode<'static>, 1_048_576>,
    }

    /// Adds a node as a child of another.
    29 VaultNodeAdd {
        trans_id "transId": TransId,
        /// The parent node.
        parent_id "parentId": u32,
        /// The child node.
        child_id "childId": u32,
        /// The owner of the reference.
        owner_id "ownerId": u32,
    }

    /// Removes a child node from its parent.
    30 VaultNodeRemove {
        trans_id "transId": TransId,
        /// The parent node.
        parent_id "parentId": u32,
        /// The child node.
        child_id "childId": u32,
    }

    /// Requests all references reachable from a node.
    31 VaultFetchNodeRefs {
        trans_id "transId": TransId,
        /// The node.
        node_id "nodeId": u32,
    }

    /// Requests the vault nodes of an age instance, which are created if missing.
    32 VaultInitAgeRequest<'a> {
        trans_id "transId": TransId,
        /// The instance of the age.
        age_instance_id "ageInstanceId": Uuid,
        /// The instance to which the age belongs, or zero.
        parent_age_instance_id "parentAgeInstanceId": Uuid,
        /// The age's file name.
        age_filename "ageFilename": Str<'a, 260>,
        /// The instance's name.
        age_instance_name "ageInstanceName": Str<'a, 260>,
        /// The name given by its owner.
        age_user_name "ageUserName": Str<'a, 260>,
        /// The description.
        age_description "ageDescription": Str<'a, 1_024>,
        /// The number that distinguishes instances with the same name; negative for "next".
        age_sequence_number "ageSequenceNumber": i32,
        /// The language; -1 for none.
        age_language "ageLanguage": i32,
    }

    /// Requests all nodes whose fields equal those of a template.
    33 VaultNodeFind<'a> {
        trans_id "transId": TransId,
        /// The node's fields; see [`VaultNode`].
        node "node": Nested<'a, VaultNode<'static>, 1_048_576>,
    }

    /// Marks a reference as seen; ignored, and never answered.
    34 VaultSetSeen {
        /// The parent node.
        parent_id "parentId": u32,
        /// The child node.
        child_id "childId": u32,
        /// Whether the reference has been seen.
        seen "seen": u8,
    }

    /// Sends a node to another player's inbox; never answered.
    35 VaultSendNode {
        /// The node.
        node_id "nodeId": u32,
        /// The receiving player.
        receiver_id "receiverId": u32,
    }

    /// Requests a game server for an age instance.
    36 AgeRequest<'a> {
        trans_id "transId": TransId,
        /// The age's file name.
        age_name "ageName": Str<'a, 64>,
        /// The instance of the age.
        age_instance_id "ageInstanceId": Uuid,
    }

    /// Requests the list of secure files; only `Python`/`pak` and `SDL`/`sdl` exist.
    37 FileListRequest<'a> {
        trans_id "transId": TransId,
        /// `Python` or `SDL`.
        directory "directory": Str<'a, 260>,
        /// `pak` or `sdl`.
        extension "extension": Str<'a, 256>,
    }

    /// Requests a secure file. It is sent in chunks, and the client acknowledges each.
    38 FileDownloadRequest<'a> {
        trans_id "transId": TransId,
        /// The directory and name, separated by a backslash.
        filename "filename": Str<'a, 260>,
    }

    /// Acknowledges a chunk of a file.
    39 FileDownloadChunkAck {
        trans_id "transId": TransId,
    }

    /// Never sent on auth connections.
    40 PropagateBuffer<'a> {
        /// The class index of the net message; the first two bytes of the buffer repeat it.
        type_ "type": ClassIndex,
        /// The net message.
        buffer "buffer": Bytes32<'a, 1_048_576>,
    }

    /// Requests the public instances of an age.
    41 GetPublicAgeList<'a> {
        trans_id "transId": TransId,
        /// The age's file name.
        age_filename "ageFilename": Str<'a, 64>,
    }

    /// Makes an age instance public or private; never answered directly.
    42 SetAgePublic {
        /// The AgeInfo node.
        age_info_id "ageInfoId": u32,
        /// 1 to make it public, 0 to make it private.
        public_ "public": u8,
    }

    /// Reports an error in a script; never answered.
    43 LogPythonTraceback<'a> {
        /// The report.
        text "text": Str<'a, 1_024>,
    }

    /// Reports a crash; never answered.
    44 LogStackDump<'a> {
        /// The report.
        text "text": Str<'a, 1_024>,
    }

    /// Reports that a debugger is attached; never answered.
    45 LogClientDebuggerConnect {
        /// Sent but meaningless.
        nothing "nothing": u32,
    }

    /// Creates a score.
    46 ScoreCreate<'a> {
        trans_id "transId": TransId,
        /// The owner's node.
        owner_id "ownerId": u32,
        /// The score's name.
        game_name "gameName": Str<'a, 64>,
        /// 0 fixed, 1 accumulative, 2 accumulative with negatives.
        game_type "gameType": u32,
        /// The initial points.
        value "value": i32,
    }

    /// Deletes a score; never sent by current clients.
    47 ScoreDelete {
        trans_id "transId": TransId,
        /// The score's ID.
        score_id "scoreId": u32,
    }

    /// Requests an owner's scores.
    48 ScoreGetScores<'a> {
        trans_id "transId": TransId,
        /// The owner's node.
        owner_id "ownerId": u32,
        /// The score's name.
        game_name "gameName": Str<'a, 64>,
    }

    /// Adds points to a score.
    49 ScoreAddPoints {
        trans_id "transId": TransId,
        /// The score's ID.
        score_id "scoreId": u32,
        /// The points.
        points "points": i32,
    }

    /// Moves points from one score to another.
    50 ScoreTransferPoints {
        trans_id "transId": TransId,
        /// The score to take points from.
        src_score_id "srcScoreId": u32,
        /// The score to add points to.
        dest_score_id "destScoreId": u32,
        /// The points.
        points "points": i32,
    }

    /// Sets the points of a score.
    51 ScoreSetPoints {
        trans_id "transId": TransId,
        /// The score's ID.
        score_id "scoreId": u32,
        /// The points.
        points "points": i32,
    }

    /// Requests a ranking; never sent by current clients.
    52 ScoreGetRanks<'a> {
        trans_id "transId": TransId,
        /// The owner's node.
        owner_id "ownerId": u32,
        /// Unverified: the group to rank.
        score_group "scoreGroup": u32,
        /// Unverified: a directory that limits the ranking.
        parent_folder_id "parentFolderId": u32,
        /// The score's name.
        game_name "gameName": Str<'a, 64>,
        /// Unverified: the time period.
        time_period "timePeriod": u32,
        /// The number of results per page.
        num_results "numResults": u32,
        /// The page number.
        page_number "pageNumber": u32,
        /// 1 for the highest first.
        sort_descending "sortDescending": u32,
    }

    /// Requests whether an account exists; never sent by current clients.
    53 AccountExistsRequest<'a> {
        trans_id "transId": TransId,
        /// The account name; case-insensitive.
        account_name "accountName": Str<'a, 64>,
    }

    /// Requests a game server's address as a host name. The number comes from H'uru and the layout
    /// from two servers; no known client sends it.
    0x1000 AgeRequestEx<'a> {
        trans_id "transId": TransId,
        /// The age's file name.
        age_name "ageName": Str<'a, 64>,
        /// The instance of the age.
        age_instance_id "ageInstanceId": Uuid,
    }

    /// Requests the highest scores (H'uru).
    0x1001 ScoreGetHighScores<'a> {
        trans_id "transId": TransId,
        /// The owner's node.
        owner_id "ownerId": u32,
        /// The maximum number of scores.
        max_scores "maxScores": u32,
        /// The score's name.
        game_name "gameName": Str<'a, 64>,
    }
}
