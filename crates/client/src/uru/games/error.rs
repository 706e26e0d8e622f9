//! Why a player cannot do something in a game.

use worldwire_core::Error;
use worldwire_uru::games::GameType;
use worldwire_uru::games::message::manager::GameResult;
use worldwire_uru::types::Uuid;

/// Why a player cannot do something in a game. Servers drop most messages that are not allowed
/// without replying, so the client refuses to send them.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlayError {
    /// The server's capabilities do not include this type of game.
    #[error(
        "the shard does not announce {}; its operator must enable the game under [games] in shard.toml",
        .0.name()
    )]
    NotServed(GameType),
    /// The server refused to create or join a game.
    #[error("{}: refused with {result}: {}", game.name(), advice(*result))]
    Refused {
        /// The type of the game.
        game: GameType,
        /// The server's reply.
        result: GameResult,
    },
    /// The player is not in a game of this type.
    #[error("not in a {} game: join or open one first", .0.name())]
    NotJoined(GameType),
    /// The server did not let the player sit down.
    #[error("seat {0} is taken, or you are already seated")]
    SeatTaken(u8),
    /// Only the game's owner can do this.
    #[error("only the owner of the game can do this: {}", owner(*.0))]
    NotOwner(Option<u32>),
    /// A value is out of range.
    #[error("{field} must be {wanted}, not {found}")]
    Value {
        /// The name of the value.
        field: &'static str,
        /// The values that are accepted.
        wanted: &'static str,
        /// The value.
        found: String,
    },
    /// A string is too long.
    #[error("{field} must have at most {most} UTF-16 units, not {found}")]
    TooLong {
        /// The name of the value.
        field: &'static str,
        /// The maximum number of UTF-16 units.
        most: usize,
        /// The number that the string has.
        found: usize,
    },
    /// No variable has this name.
    #[error("there is no variable {0:?}; create it first")]
    NoVariable(String),
    /// A text variable cannot be set to a number, nor a number variable to text.
    #[error("the variable {name:?} holds {kind}, and its type cannot change")]
    WrongKind {
        /// The variable's name.
        name: String,
        /// The type that it holds.
        kind: &'static str,
    },
    /// Several marker games have this name.
    #[error("{} marker games are named {name:?}; open one by its template: {}", .templates.len(), listed_ids(.templates))]
    Ambiguous {
        /// The name.
        name: String,
        /// The templates of these games.
        templates: Vec<Uuid>,
    },
    /// The game has no marker with this ID.
    #[error("the game has no marker {0}")]
    NoMarker(u32),
    /// The player has captured this marker before.
    #[error("marker {0} has already been captured; reset the game to capture it again")]
    Captured(u32),
    /// The message cannot be encoded.
    #[error("{0}")]
    NotSent(Box<Error>),
}

/// What to do about a refusal.
fn advice(result: GameResult) -> &'static str {
    match result {
        GameResult::NotExist => "there is no such game in this age",
        GameResult::InitFailed => "the server does not offer this game",
        GameResult::GameStarted => "the game has started; try again later",
        GameResult::GameOver => "the game is over",
        GameResult::MaxPlayers => "the game or the server is full; leave other games, or wait",
        GameResult::AlreadyJoined => "you are already in the game",
        GameResult::NoInvite => "the game belongs to another player",
        _ => "the reason is unknown",
    }
}

fn listed_ids(ids: &[Uuid]) -> String {
    ids.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ")
}

fn owner(owner: Option<u32>) -> String {
    match owner {
        Some(owner) => format!("player {owner} owns it"),
        None => "nobody owns it at the moment".to_owned(),
    }
}
