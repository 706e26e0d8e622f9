//! Reasons for refusals: the string IDs in the fields `Error` and `ErrorCode`.

use core::fmt;

use worldwire_ki::string_id;

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The reason for a refusal. On the wire it is the string ID of its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Refusal {
            $($(#[$doc])* $name,)*
        }

        impl Refusal {
            /// All refusals.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The refusal's name, which is also the text of `Reason`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

refusals! {
    /// The name or password is wrong, or the login message is not accepted.
    AuthenFailed,
    /// The account is banned.
    AccountBanned,
    /// The machine is banned.
    MachineBanned,
    /// The server is closed to players (`open` in `ki.toml`).
    AISNoLogin,
    /// The system cannot supply random numbers, or no more zone keys can be created.
    Timeout,
    /// The limit on free players (`free_players` in `ki.toml`) has been reached.
    FtpCapped,
    /// The character is being played.
    ErrorNoLock,
    /// The database did not store the change.
    FailedUpload,
    /// The ticket key is wrong, or its CK2 has expired.
    ValidateFailed,
    /// A new character's name is invalid: its indices or its text.
    InvalidName,
    /// Not in the original protocol: the client has not logged in, or is still waiting in the
    /// queue.
    NotAdmitted,
    /// Not in the original protocol: a new character's blob cannot be decoded.
    MalformedCharacter,
    /// Not in the original protocol: the account has no character slot left.
    SlotLimit,
    /// Not in the original protocol: the character does not exist or belongs to another account.
    UnknownCharacter,
    /// Not in the original protocol: the key to a zone is wrong, has been used, or has expired.
    WrongKey,
}

impl Refusal {
    /// The number on the wire.
    #[must_use]
    pub const fn id(self) -> u32 {
        string_id(self.name().as_bytes())
    }

    /// The refusal with this number on the wire.
    #[must_use]
    pub fn of(id: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|refusal| refusal.id() == id)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_17_every_refusal_has_a_unique_number() {
        let known = [
            (Refusal::AccountBanned, 87_620_544),
            (Refusal::MachineBanned, 1_157_331_960),
            (Refusal::AuthenFailed, 996_708_736),
            (Refusal::AISNoLogin, 1_662_107_094),
            (Refusal::Timeout, 1_361_855_231),
            (Refusal::FtpCapped, 1_543_467_878),
            (Refusal::ErrorNoLock, 1_742_541_802),
            (Refusal::FailedUpload, 277_183_861),
            (Refusal::ValidateFailed, 246_825_817),
            (Refusal::InvalidName, 1_745_079_928),
        ];
        for (refusal, id) in known {
            assert_eq!(refusal.id(), id, "{refusal}");
        }
        for (index, refusal) in Refusal::ALL.iter().enumerate() {
            assert_ne!(refusal.id(), 0);
            assert_eq!(Refusal::ALL.iter().position(|one| one.id() == refusal.id()), Some(index));
            assert_eq!(Refusal::of(refusal.id()), Some(*refusal));
        }
    }
}
