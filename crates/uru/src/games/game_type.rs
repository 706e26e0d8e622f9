//! The types of games.

use worldwire_core::{Names, Sampler};

use crate::types::Uuid;

macro_rules! types {
    ($($(#[doc = $doc:literal])* $name:ident = $id:literal, bit $bit:literal;)*) => {
        /// A type of game that the game manager runs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum GameType {
            $($(#[doc = $doc])* $name,)*
        }

        impl GameType {
            /// All types.
            pub const ALL: [Self; [$($bit),*].len()] = [$(Self::$name),*];

            /// The name, which is also the prefix of the names of its messages.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The UUID that stands for the type in messages.
            #[must_use]
            pub fn id(self) -> Uuid {
                let text = match self {
                    $(Self::$name => $id,)*
                };
                Uuid::parse(text).unwrap_or(Uuid::ZERO)
            }

            /// The bit that announces the type in `ServerCaps`; see
            /// [`Caps::NAMES`](crate::message::Caps::NAMES).
            #[must_use]
            pub const fn caps_bit(self) -> u32 {
                match self {
                    $(Self::$name => $bit,)*
                }
            }

            /// The type with this UUID.
            #[must_use]
            pub fn of(id: Uuid) -> Option<Self> {
                Self::ALL.into_iter().find(|game| game.id() == id)
            }

            /// The type with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|game| game.name() == name)
            }
        }
    };
}

types! {
    /// Seven cloths that open a door.
    BlueSpiral = "5ff98165-913e-4fd1-a2c2-9c7f31be2cc8", bit 1;
    /// Two teams on a climbing wall.
    ClimbingWall = "6224cdf4-3556-4740-b7cd-d637562d07be", bit 2;
    /// Rock, paper, scissors at a table.
    Heek = "9d83c2e2-7835-4477-9aaa-22254c59a753", bit 3;
    /// Markers to be captured.
    Marker = "000b2c39-0319-4be1-b06c-7a105b160fcf", bit 4;
    /// Tic-tac-toe.
    TicTacToe = "a7236529-11d8-4758-9368-59cb43445a83", bit 5;
    /// Shared variables.
    VarSync = "475c2e9b-a245-4106-a047-9b25d41ff333", bit 6;
}

impl GameType {
    /// The UUID of a type, or sometimes a random UUID.
    pub(super) fn sample_id(sampler: &mut Sampler) -> Uuid {
        let at = usize::try_from(sampler.below(8)).unwrap_or(0);
        match Self::ALL.get(at) {
            Some(game) => game.id(),
            None => worldwire_core::Field::sample(sampler),
        }
    }
}

/// The manager or game that a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GameScope {
    /// The game manager.
    Manager,
    /// A game of a known type.
    Game(GameType),
    /// A game whose type is not known.
    Unknown,
}

impl GameScope {
    /// The names of all scopes.
    pub const NAMES: &'static Names = &Names::fixed(&[
        (0, "Manager"),
        (1, "BlueSpiral"),
        (2, "ClimbingWall"),
        (3, "Heek"),
        (4, "Marker"),
        (5, "TicTacToe"),
        (6, "VarSync"),
        (7, "AnyGame"),
    ])
    .words();

    /// The number in [`Self::NAMES`].
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::Manager => 0,
            Self::Game(game) => game.caps_bit() as i64,
            Self::Unknown => 7,
        }
    }

    /// The scope with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "Manager" => Some(Self::Manager),
            "AnyGame" => Some(Self::Unknown),
            name => GameType::from_name(name).map(Self::Game),
        }
    }

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Manager => "Manager",
            Self::Game(game) => game.name(),
            Self::Unknown => "AnyGame",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Caps;

    #[test]
    fn types_are_found_by_id_and_name() {
        for game in GameType::ALL {
            assert_eq!(GameType::of(game.id()), Some(game));
            assert_eq!(GameScope::from_name(game.name()), Some(GameScope::Game(game)));
            let scope = GameScope::Game(game);
            assert_eq!(GameScope::NAMES.name(scope.number()), Some(scope.name()));
            let caps = Caps::NAMES.name(game.caps_bit().into()).unwrap();
            assert!(caps.starts_with(game.name()), "{caps}");
        }
        for scope in [GameScope::Manager, GameScope::Unknown] {
            assert_eq!(GameScope::NAMES.name(scope.number()), Some(scope.name()));
            assert_eq!(GameScope::from_name(scope.name()), Some(scope));
        }
        assert_eq!(GameType::of(Uuid::ZERO), None);
    }
}
