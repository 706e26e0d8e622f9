//! Why messages for the game manager have no effect.

use core::fmt;

use worldwire_core::Error;

use super::text::{TextFault, text_fault};
use super::{GameText, message::manager::GameResult};

macro_rules! classes {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal;)*) => {
        /// The kinds of [`Refused`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum RefusedClass {
            $($(#[doc = $doc])* $name,)*
        }

        impl RefusedClass {
            /// All kinds.
            pub const ALL: [Self; [$($text),*].len()] = [$(Self::$name),*];

            /// The name, for counters.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

classes! {
    /// Shorter than a header.
    ShortHeader = "short-header";
    /// Longer than any message.
    Oversize = "oversize";
    /// The size in the header differs from the message's length.
    SizeMismatch = "size-mismatch";
    /// The manager has no message with this number.
    UnknownManagerMessage = "unknown-manager-message";
    /// No game with this ID runs in the age.
    UnknownGame = "unknown-game";
    /// The game has no message with this number.
    UnknownMessage = "unknown-message";
    /// Shorter than its fields.
    TruncatedBody = "truncated-body";
    /// Longer than its fields.
    TrailingBytes = "trailing-bytes";
    /// A field has an impossible value.
    BadValue = "bad-value";
    /// Text does not end within its field.
    UnterminatedString = "unterminated-string";
    /// Text has an unpaired surrogate.
    BadUtf16 = "bad-utf16";
    /// The type of the game is unknown or not served.
    UnknownGameType = "unknown-game-type";
    /// The data for creating a game does not fit its type.
    BadCreateData = "bad-create-data";
    /// The template is not a UUID.
    BadTemplateId = "bad-template-id";
    /// The sender is not in the game.
    NotMember = "not-member";
    /// The sender does not own the game.
    NotOwner = "not-owner";
    /// The sender has not created the game.
    NotCreator = "not-creator";
    /// The game is not in the right state, which happens when messages cross on the wire.
    BadState = "bad-state";
    /// A bound would be exceeded.
    Limit = "limit";
}

impl RefusedClass {
    /// Whether such a message counts towards closing its sender's connection. This applies to all
    /// messages that a working client never sends.
    #[must_use]
    pub const fn is_counted(self) -> bool {
        !matches!(self, Self::BadState)
    }
}

/// Why a message for the game manager has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The kind.
    pub class: RefusedClass,
    /// The problem and its position.
    pub error: Error,
    /// The reply to a request.
    pub(super) answer: Option<GameResult>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// A refusal without a reply.
    #[cold]
    pub(super) fn new(class: RefusedClass, error: Error) -> Self {
        Self { class, error, answer: None }
    }

    /// A refusal because the game is not in the right state.
    #[cold]
    pub(super) fn state(why: &'static str) -> Self {
        Self::new(RefusedClass::BadState, Error::invalid(why))
    }

    /// A refusal because a field has an impossible value.
    #[cold]
    pub(super) fn value(
        field: &'static str,
        wanted: &'static str,
        found: impl fmt::Display,
    ) -> Self {
        let error = Error::malformed(wanted, found.to_string()).inside(field);
        Self::new(RefusedClass::BadValue, error)
    }

    /// A refusal because a bound would be exceeded.
    #[cold]
    pub(super) fn limit(what: &'static str, limit: usize) -> Self {
        let error = Error::limit(what, limit as u64, limit as u64 + 1);
        Self::new(RefusedClass::Limit, error).answered(GameResult::MaxPlayers)
    }

    /// Replies to the message if it was a request.
    #[must_use]
    pub(super) fn answered(self, result: GameResult) -> Self {
        Self { answer: Some(result), ..self }
    }

    /// Adds the name of the message to the error.
    #[must_use]
    pub(super) fn about(self, message: String) -> Self {
        Self { error: self.error.about(message), ..self }
    }
}

/// Checks that text can be sent to clients.
pub(super) fn check_text<const N: usize>(
    field: &'static str,
    text: &GameText<'_, N>,
) -> Result<(), Refused> {
    match text_fault(text) {
        None => Ok(()),
        Some(TextFault::Unterminated) => {
            let error = Error::malformed(format!("at most {} UTF-16 units", N - 1), format!("{N}"));
            Err(Refused::new(RefusedClass::UnterminatedString, error.inside(field)))
        }
        Some(TextFault::Surrogate { unit }) => {
            let found = format!("an unpaired surrogate at UTF-16 unit {unit}");
            let error = Error::malformed("valid UTF-16", found).inside(field);
            Err(Refused::new(RefusedClass::BadUtf16, error))
        }
    }
}

/// Checks that a number is finite.
pub(super) fn check_finite(field: &'static str, number: f64) -> Result<(), Refused> {
    if number.is_finite() {
        return Ok(());
    }
    Err(Refused::value(field, "a finite number", number))
}

/// Checks that a number is one of the allowed ones.
pub(super) fn check_range(
    field: &'static str,
    wanted: &'static str,
    range: core::ops::RangeInclusive<u8>,
    found: u8,
) -> Result<(), Refused> {
    if range.contains(&found) { Ok(()) } else { Err(Refused::value(field, wanted, found)) }
}
