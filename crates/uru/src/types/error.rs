//! The result codes that replies carry.

use worldwire_core::wire_enum;

wire_enum! {
    /// The result of a request (`ENetError`, `i32`). Only positive values are errors.
    ///
    /// For historical reasons, clients treat [`VaultNodeNotFound`](Self::VaultNodeNotFound) as
    /// success in login and age replies, so a server must not send it there.
    pub enum NetError(i32) {
        /// Not decided yet; never sent.
        Pending = -1,
        /// Success.
        Success = 0,
        /// Internal server error.
        InternalError = 1,
        /// No response from server.
        Timeout = 2,
        /// Invalid server data.
        BadServerData = 3,
        /// Age not found.
        AgeNotFound = 4,
        /// Network connection failed.
        ConnectFailed = 5,
        /// Disconnected from server.
        Disconnected = 6,
        /// File not found.
        FileNotFound = 7,
        /// Old build.
        OldBuildId = 8,
        /// Remote shutdown.
        RemoteShutdown = 9,
        /// Database timeout.
        TimeoutOdbc = 10,
        /// Account already exists.
        AccountAlreadyExists = 11,
        /// Player already exists.
        PlayerAlreadyExists = 12,
        /// Account not found.
        AccountNotFound = 13,
        /// Player not found.
        PlayerNotFound = 14,
        /// Invalid parameter.
        InvalidParameter = 15,
        /// Name lookup failed.
        NameLookupFailed = 16,
        /// Logged in elsewhere.
        LoggedInElsewhere = 17,
        /// Vault node not found.
        VaultNodeNotFound = 18,
        /// Max players on account.
        MaxPlayersOnAcct = 19,
        /// Authentication failed.
        AuthenticationFailed = 20,
        /// State object not found.
        StateObjectNotFound = 21,
        /// Login denied.
        LoginDenied = 22,
        /// Circular reference.
        CircularReference = 23,
        /// Account not activated.
        AccountNotActivated = 24,
        /// Key already used.
        KeyAlreadyUsed = 25,
        /// Key not found.
        KeyNotFound = 26,
        /// Activation code not found.
        ActivationCodeNotFound = 27,
        /// Player name invalid.
        PlayerNameInvalid = 28,
        /// Not supported.
        NotSupported = 29,
        /// Service forbidden.
        ServiceForbidden = 30,
        /// Auth token too old.
        AuthTokenTooOld = 31,
        /// Must use GameTap client.
        MustUseGameTapClient = 32,
        /// Too many failed logins.
        TooManyFailedLogins = 33,
        /// GameTap: connection failed.
        GameTapConnectionFailed = 34,
        /// GameTap: too many auth options.
        GTTooManyAuthOptions = 35,
        /// GameTap: missing parameter.
        GTMissingParameter = 36,
        /// GameTap: server error.
        GTServerError = 37,
        /// Account has been banned.
        AccountBanned = 38,
        /// Account kicked by CCR.
        KickedByCCR = 39,
        /// Wrong score type for operation.
        ScoreWrongType = 40,
        /// Not enough points.
        ScoreNotEnoughPoints = 41,
        /// Non-fixed score already exists.
        ScoreAlreadyExists = 42,
        /// No score data found.
        ScoreNoDataFound = 43,
        /// Invite: couldn't find player.
        InviteNoMatchingPlayer = 44,
        /// Invite: too many hoods.
        InviteTooManyHoods = 45,
        /// Payments not up to date.
        NeedToPay = 46,
        /// Server busy.
        ServerBusy = 47,
        /// Vault node access violation.
        VaultNodeAccessViolation = 48,
    }
}

/// The texts that clients show for each result, starting with 0.
const TEXTS: [&str; 49] = [
    "Success",
    "Internal Error",
    "No Response From Server",
    "Invalid Server Data",
    "Age Not Found",
    "Network Connection Failed",
    "Disconnected From Server",
    "File Not Found",
    "Old Build",
    "Remote Shutdown",
    "Database Timeout",
    "Account Already Exists",
    "Player Already Exists",
    "Account Not Found",
    "Player Not Found",
    "Invalid Parameter",
    "Name Lookup Failed",
    "Logged In Elsewhere",
    "Vault Node Not Found",
    "Max Players On Account",
    "Authentication Failed",
    "State Object Not Found",
    "Login Denied",
    "Circular Reference",
    "Account Not Activated",
    "Key Already Used",
    "Key Not Found",
    "Activation Code Not Found",
    "Player Name Invalid",
    "Not Supported",
    "Service Forbidden",
    "Auth Token Too Old",
    "Must Use GameTap Client",
    "Too Many Failed Logins",
    "GameTap: Connection Failed",
    "GameTap: Too Many Auth Options",
    "GameTap: Missing Parameter",
    "GameTap: Server Error",
    "Account is banned",
    "Kicked by customer service",
    "Operation does not fit the score's type",
    "Too few points",
    "Score exists and is not fixed",
    "No scores",
    "Invite: No such player",
    "Invite: Too many neighborhoods",
    "Payment overdue",
    "Server Busy",
    "Vault Node Access Violation",
];

impl NetError {
    /// The text that clients show to players. Full sentences are in worldwire's own words.
    #[must_use]
    pub fn text(self) -> Option<&'static str> {
        usize::try_from(self.0).ok().and_then(|number| TEXTS.get(number)).copied()
    }

    /// Whether the request failed: only positive values are errors.
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 > 0
    }
}
