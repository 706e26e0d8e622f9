//! What a client says on an auth connection.

use worldwire_core::{Bytes32, messages};

use crate::message::AccountFlags;
use crate::types::{ClassIndex, Nested, Str, TransId, Uuid};
use crate::vault::VaultNode;

messages! {
    /// What a client says on an auth connection.
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

    /// Keep-alive: sent right after setup and every 30 seconds. The server answers at once with all
    /// fields unchanged.
    0 PingRequest<'a> {
        /// The sender's clock in milliseconds.
        ping_time_ms "pingTimeMs": u32,
        trans_id "transId": TransId,
        /// Anything; comes back unchanged.
        payload "payload": Bytes32<'a, 65_536>,
    }

    /// The first message of a client: which build it is. A wrong build is answered by closing.
    1 ClientRegisterRequest {
        /// The build; 918 for practically everything today, 0 for "the newest".
        build_id "buildId": u32,
    }

    /// Never sent by today's clients; ignored.
    2 ClientSetCCRLevel {
        /// Means nothing today.
        ccr_level "ccrLevel": u32,
    }

    /// Logs in. Answered by an `AcctPlayerInfo` for every player of the account, then an
    /// `AcctLoginReply`.
    3 AcctLoginRequest<'a> {
        trans_id "transId": TransId,
        /// Random for e-mail names, 0 for plain ones.
        client_challenge "clientChallenge": u32,
        /// The account; compared without case.
        account_name "accountName": Str<'a, 64>,
        /// See [`crypt::login`](crate::crypt::login).
        challenge_hash "challengeHash": [u8; 20],
        /// Unused.
        auth_token "authToken": Str<'a, 64>,
        /// `win` or `mac`.
        os "os": Str<'a, 8>,
    }

    /// Chooses the player to play, or none.
    6 AcctSetPlayerRequest {
        trans_id "transId": TransId,
        /// The player's number (KI number).
        player_id "playerId": u32,
    }

    /// Makes an account; never sent by today's clients.
    7 AcctCreateRequest<'a> {
        trans_id "transId": TransId,
        /// The account; compared without case.
        account_name "accountName": Str<'a, 64>,
        /// See [`crypt::login`](crate::crypt::login).
        password_hash "passwordHash": [u8; 20],
        /// What the account may do.
        account_flags "accountFlags": AccountFlags,
        /// 1 is paid, bit 1 is GameTap.
        billing_type "billingType": u32,
    }

    /// Changes the password of an account (`/changepassword`).
    8 AcctChangePasswordRequest<'a> {
        trans_id "transId": TransId,
        /// The account; compared without case.
        account_name "accountName": Str<'a, 64>,
        /// See [`crypt::login`](crate::crypt::login).
        password_hash "passwordHash": [u8; 20],
    }

    /// Changes what an account may do; never sent by today's clients.
    9 AcctSetRolesRequest<'a> {
        trans_id "transId": TransId,
        /// The account; compared without case.
        account_name "accountName": Str<'a, 64>,
        /// What the account may do.
        account_flags "accountFlags": AccountFlags,
    }

    /// Changes how an account is paid for; never sent by today's clients.
    10 AcctSetBillingTypeRequest<'a> {
        trans_id "transId": TransId,
        /// The account; compared without case.
        account_name "accountName": Str<'a, 64>,
        /// 1 is paid, bit 1 is GameTap.
        billing_type "billingType": u32,
    }

    /// Activates an account; never sent by today's clients.
    11 AcctActivateRequest {
        trans_id "transId": TransId,
        /// The key.
        activation_key "activationKey": Uuid,
    }

    /// Makes an account from a key; never sent by today's clients.
    12 AcctCreateFromKeyRequest<'a> {
        trans_id "transId": TransId,
        /// The account; compared without case.
        account_name "accountName": Str<'a, 64>,
        /// See [`crypt::login`](crate::crypt::login).
        password_hash "passwordHash": [u8; 20],
        /// The key.
        key "key": Uuid,
        /// 1 is paid, bit 1 is GameTap.
        billing_type "billingType": u32,
    }

    /// Deletes a player of the account.
    13 PlayerDeleteRequest {
        trans_id "transId": TransId,
        /// The player's number (KI number).
        player_id "playerId": u32,
    }

    /// Makes a player.
    17 PlayerCreateRequest<'a> {
        trans_id "transId": TransId,
        /// The player's name.
        player_name "playerName": Str<'a, 40>,
        /// `male` or `female`.
        avatar_shape "avatarShape": Str<'a, 260>,
        /// Ignored.
        friend_invite "friendInvite": Str<'a, 260>,
    }

    /// Makes a visitor an explorer; never sent by today's clients.
    20 UpgradeVisitorRequest {
        trans_id "transId": TransId,
        /// The player's number (KI number).
        player_id "playerId": u32,
    }

    /// Bans a player; never sent by today's clients.
    21 SetPlayerBanStatusRequest {
        trans_id "transId": TransId,
        /// The player's number (KI number).
        player_id "playerId": u32,
        /// 1 to ban.
        banned "banned": u32,
    }

    /// Throws a player out; never sent by today's clients, and never answered.
    22 KickPlayer {
        /// The player's number (KI number).
        player_id "playerId": u32,
    }

    /// Renames a player; never sent by today's clients.
    23 ChangePlayerNameRequest<'a> {
        trans_id "transId": TransId,
        /// The player's number (KI number).
        player_id "playerId": u32,
        /// The new name.
        new_name "newName": Str<'a, 40>,
    }

    /// Invites a friend by mail.
    24 SendFriendInviteRequest<'a> {
        trans_id "transId": TransId,
        /// The invitation.
        invite_uuid "inviteUuid": Uuid,
        /// Whom to invite.
        email_address "emailAddress": Str<'a, 64>,
        /// The friend's name.
        to_player "toPlayer": Str<'a, 40>,
    }

    /// Makes a vault node. The server gives it its number, times and creator.
    25 VaultNodeCreate<'a> {
        trans_id "transId": TransId,
        /// The node's fields; see [`VaultNode`].
        node "node": Nested<'a, VaultNode<'static>, 1_048_576>,
    }

    /// Asks for a vault node.
    26 VaultNodeFetch {
        trans_id "transId": TransId,
        /// The node.
        node_id "nodeId": u32,
    }

    /// Changes fields of a vault node: those that are sent replace, others stay.
    27 VaultNodeSave<'a> {
        trans_id "transId": TransId,
        /// The node.
        node_id "nodeId": u32,
        /// Names this change.
        revision_id "revisionId": Uuid,
        /// The node's fields; see [`VaultNode`].
        node "node": Nested<'a, VaultNode<'static>, 1_048_576>,
    }

    /// Puts a node below another one.
    29 VaultNodeAdd {
        trans_id "transId": TransId,
        /// The node above.
        parent_id "parentId": u32,
        /// The node below.
        child_id "childId": u32,
        /// Whose reference it is.
        owner_id "ownerId": u32,
    }

    /// Takes a node away from below another one.
    30 VaultNodeRemove {
        trans_id "transId": TransId,
        /// The node above.
        parent_id "parentId": u32,
        /// The node below.
        child_id "childId": u32,
    }

    /// Asks for every reference that can be reached from a node.
    31 VaultFetchNodeRefs {
        trans_id "transId": TransId,
        /// The node.
        node_id "nodeId": u32,
    }

    /// Asks for an age instance in the vault, which is made if there is none.
    32 VaultInitAgeRequest<'a> {
        trans_id "transId": TransId,
        /// The instance of the age.
        age_instance_id "ageInstanceId": Uuid,
        /// The instance the age belongs to, or zero.
        parent_age_instance_id "parentAgeInstanceId": Uuid,
        /// The age's name in files.
        age_filename "ageFilename": Str<'a, 260>,
        /// The instance's name.
        age_instance_name "ageInstanceName": Str<'a, 260>,
        /// The name its owner gave it.
        age_user_name "ageUserName": Str<'a, 260>,
        /// Its description.
        age_description "ageDescription": Str<'a, 1_024>,
        /// Its number among its like; negative for "the next".
        age_sequence_number "ageSequenceNumber": i32,
        /// Its language; -1 is none.
        age_language "ageLanguage": i32,
    }

    /// Asks for all nodes whose fields equal those of a template.
    33 VaultNodeFind<'a> {
        trans_id "transId": TransId,
        /// The node's fields; see [`VaultNode`].
        node "node": Nested<'a, VaultNode<'static>, 1_048_576>,
    }

    /// Marks a reference as seen; ignored, and never answered.
    34 VaultSetSeen {
        /// The node above.
        parent_id "parentId": u32,
        /// The node below.
        child_id "childId": u32,
        /// Whether it was seen.
        seen "seen": u8,
    }

    /// Sends a node to another player's inbox; never answered.
    35 VaultSendNode {
        /// The node.
        node_id "nodeId": u32,
        /// The player who gets it.
        receiver_id "receiverId": u32,
    }

    /// Asks for a game server that hosts an age instance.
    36 AgeRequest<'a> {
        trans_id "transId": TransId,
        /// The age's name in files.
        age_name "ageName": Str<'a, 64>,
        /// The instance of the age.
        age_instance_id "ageInstanceId": Uuid,
    }

    /// Asks which secure files there are: only `Python`/`pak` and `SDL`/`sdl` are.
    37 FileListRequest<'a> {
        trans_id "transId": TransId,
        /// `Python` or `SDL`.
        directory "directory": Str<'a, 260>,
        /// `pak` or `sdl`.
        extension "extension": Str<'a, 256>,
    }

    /// Asks for a secure file. It comes in chunks, each of which is acknowledged.
    38 FileDownloadRequest<'a> {
        trans_id "transId": TransId,
        /// The name with its directory, with a backslash between.
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

    /// Asks for the public instances of an age.
    41 GetPublicAgeList<'a> {
        trans_id "transId": TransId,
        /// The age's name in files.
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

    /// Reports that a debugger is at work; never answered.
    45 LogClientDebuggerConnect {
        /// Means nothing, but is sent.
        nothing "nothing": u32,
    }

    /// Makes a score.
    46 ScoreCreate<'a> {
        trans_id "transId": TransId,
        /// The owner's node.
        owner_id "ownerId": u32,
        /// The score's name.
        game_name "gameName": Str<'a, 64>,
        /// 0 fixed, 1 accumulative, 2 accumulative with negatives.
        game_type "gameType": u32,
        /// The first points.
        value "value": i32,
    }

    /// Deletes a score; never sent by today's clients.
    47 ScoreDelete {
        trans_id "transId": TransId,
        /// The score.
        score_id "scoreId": u32,
    }

    /// Asks for the score of an owner.
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
        /// The score.
        score_id "scoreId": u32,
        /// How many points.
        points "points": i32,
    }

    /// Moves points from one score to another.
    50 ScoreTransferPoints {
        trans_id "transId": TransId,
        /// Where the points come from.
        src_score_id "srcScoreId": u32,
        /// Where the points go.
        dest_score_id "destScoreId": u32,
        /// How many points.
        points "points": i32,
    }

    /// Sets the points of a score.
    51 ScoreSetPoints {
        trans_id "transId": TransId,
        /// The score.
        score_id "scoreId": u32,
        /// How many points.
        points "points": i32,
    }

    /// Asks for a ranking; never sent by today's clients.
    52 ScoreGetRanks<'a> {
        trans_id "transId": TransId,
        /// The owner's node.
        owner_id "ownerId": u32,
        /// Unverified: what it groups by.
        score_group "scoreGroup": u32,
        /// Unverified: a folder to look below.
        parent_folder_id "parentFolderId": u32,
        /// The score's name.
        game_name "gameName": Str<'a, 64>,
        /// Unverified: the period to look at.
        time_period "timePeriod": u32,
        /// How many to a page.
        num_results "numResults": u32,
        /// Which page.
        page_number "pageNumber": u32,
        /// 1 for the highest first.
        sort_descending "sortDescending": u32,
    }

    /// Asks whether an account exists; never sent by today's clients.
    53 AccountExistsRequest<'a> {
        trans_id "transId": TransId,
        /// The account; compared without case.
        account_name "accountName": Str<'a, 64>,
    }

    /// Asks for a game server, to be told by name. The number is H'uru's, the layout that of two
    /// servers; no known client sends it.
    0x1000 AgeRequestEx<'a> {
        trans_id "transId": TransId,
        /// The age's name in files.
        age_name "ageName": Str<'a, 64>,
        /// The instance of the age.
        age_instance_id "ageInstanceId": Uuid,
    }

    /// Asks for the best scores (H'uru).
    0x1001 ScoreGetHighScores<'a> {
        trans_id "transId": TransId,
        /// The owner's node.
        owner_id "ownerId": u32,
        /// How many at most.
        max_scores "maxScores": u32,
        /// The score's name.
        game_name "gameName": Str<'a, 64>,
    }
}
