//! Why a login server refuses something: the string ids in fields called `Error` and `ErrorCode`.

use core::fmt;

use worldwire_ki::string_id;

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Why a login server refuses something. On the wire it is the string id of its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Refusal {
            $($(#[$doc])* $name,)*
        }

        impl Refusal {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name, which is also the text of `Reason`.
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
    /// Wrong name or password, or a form of login that is not taken.
    AuthenFailed,
    /// The account is banned.
    AccountBanned,
    /// The machine is banned.
    MachineBanned,
    /// The server lets nobody in: `open` in `ki.toml`.
    AISNoLogin,
    /// Too many logins from one address wait for their answer.
    Timeout,
    /// As many free players are in as may be: `free_players` in `ki.toml`.
    FtpCapped,
    /// The character is being played.
    ErrorNoLock,
    /// The database took no change.
    FailedUpload,
    /// The pass key is wrong, or its CK2 has expired.
    ValidateFailed,
    /// The name of a new character: its indices, or its text.
    InvalidName,
    /// Our own: no login, or a place in the queue, before a request that needs to be let in.
    NotAdmitted,
    /// Our own: the blob of a new character cannot be read.
    MalformedCharacter,
    /// Our own: the account has no slot left.
    SlotLimit,
    /// Our own: there is no such character, or it is another account's.
    UnknownCharacter,
    /// Our own: the key with which a client enters a zone is wrong, used or out of date.
    WrongKey,
}

impl Refusal {
    /// The number on the wire.
    #[must_use]
    pub const fn id(self) -> u32 {
        string_id(self.name().as_bytes())
    }

    /// The refusal with this number.
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
    fn k_17_every_refusal_has_a_number_of_its_own() {
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
