//! Messages to and from the game manager and its games: the contents of `GameMgrMsg`.
//!
//! | module | messages of |
//! | --- | --- |
//! | [`manager`] | the game manager itself: creating and joining games |
//! | [`any`] | every game: the first numbers of each side |
//! | [`blue_spiral`], [`climbing_wall`], [`heek`], [`marker`], [`tic_tac_toe`], [`var_sync`] | one type of game |
//!
//! Each module has the tables [`client`](manager::client) and [`server`](manager::server).

pub mod any;
pub mod blue_spiral;
pub mod climbing_wall;
pub mod heek;
pub mod manager;
pub mod marker;
mod request;
pub mod tic_tac_toe;
pub mod var_sync;

use worldwire_core::json::{FieldsOf, Given, Json, expected};
use worldwire_core::{
    Error, MessageInfo, Messages, Names, Reader, Result, Sampler, Side, Trace, Value, Writer,
};

pub use request::{CreateData, CreateRequest, JoinRequest, MarkerParams, NewGame, TicTacToeParams};

use super::{GameScope, GameType};
use crate::types::{Tail, TransId};

/// The size of the header: four numbers.
pub const HEADER_BYTES: usize = 16;
/// The maximum size of a message. The longest one that clients send is 1,040 bytes long.
pub const MAX_BYTES: usize = 2_048;

/// A message of the game manager or of a game.
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 4 | message number; its meaning depends on the sender and the game |
/// | 4 | 4 | transaction, in requests to the manager and in `GameInstance`; otherwise 0 |
/// | 8 | 4 | game; 0 for the manager |
/// | 12 | 4 | size of the message, including this header |
/// | 16 | | the fields |
#[derive(Clone, Debug, PartialEq)]
pub struct GameMessage<'d> {
    /// The transaction.
    pub trans_id: TransId,
    /// The game; 0 for the manager.
    pub game_id: u32,
    /// The fields.
    pub body: GameBody<'d>,
}

macro_rules! bodies {
    ($($variant:ident: $table:ident, $side:ident, $at:ident::$part:ident::$messages:ident $(<$d:lifetime>)?;)*) => {
        /// The fields of a message, by table.
        #[derive(Clone, Debug, PartialEq)]
        pub enum GameBody<'d> {
            $(
                #[doc = concat!("A message of [`", stringify!($at), "`] from the ", stringify!($part), ".")]
                $variant($at::$part::$messages $(<$d>)?),
            )*
            /// A message of a game whose type is not known.
            Unknown {
                /// The message number.
                number: u32,
                /// The bytes after the header.
                bytes: Tail<'d>,
            },
        }

        impl<'d> GameBody<'d> {
            /// The message number.
            #[must_use]
            pub fn number(&self) -> u32 {
                match self {
                    $(Self::$variant(message) => message.number(),)*
                    Self::Unknown { number, .. } => *number,
                }
            }

            /// The name, as spelled by the protocol, if the message is known.
            #[must_use]
            pub fn name(&self) -> Option<&'static str> {
                match self {
                    $(Self::$variant(message) => Some(message.name()),)*
                    Self::Unknown { .. } => None,
                }
            }

            /// Copies borrowed parts.
            #[must_use]
            pub fn into_owned(self) -> GameBody<'static> {
                match self {
                    $(Self::$variant(message) => GameBody::$variant(message.into_owned()),)*
                    Self::Unknown { number, bytes } => {
                        GameBody::Unknown { number, bytes: worldwire_core::Field::into_owned(bytes) }
                    }
                }
            }

            fn decode<'n, T: Trace<'n>>(
                table: Table,
                sender: Side,
                number: u32,
                reader: &mut Reader<'d, T>,
            ) -> Result<Self> {
                match (table, sender) {
                    $((Table::$table, Side::$side) => {
                        Messages::decode_body(number, reader).map(Self::$variant)
                    })*
                }
            }

            fn encode(&self, writer: &mut Writer) -> Result<()> {
                match self {
                    $(Self::$variant(message) => message.encode_body(writer),)*
                    Self::Unknown { bytes, .. } => {
                        writer.bytes(bytes);
                        Ok(())
                    }
                }
            }

            fn from_json(
                table: Table,
                sender: Side,
                name: &str,
                fields: Given<'_>,
            ) -> Result<Self> {
                match (table, sender) {
                    $((Table::$table, Side::$side) => {
                        Messages::from_json(name, fields).map(Self::$variant)
                    })*
                }
            }

            fn sample(
                table: Table,
                sender: Side,
                number: u32,
                sampler: &mut Sampler,
            ) -> Option<Self> {
                match (table, sender) {
                    $((Table::$table, Side::$side) => {
                        Messages::sample(number, sampler).map(Self::$variant)
                    })*
                }
            }
        }

        impl<'d> GameBody<'d> {
            fn names(table: Table, sender: Side) -> &'static Names {
                match (table, sender) {
                    $((Table::$table, Side::$side) => {
                        <$at::$part::$messages $(<$d>)? as Messages<'d>>::NAMES
                    })*
                }
            }

            fn info(table: Table, sender: Side) -> &'static [MessageInfo] {
                match (table, sender) {
                    $((Table::$table, Side::$side) => {
                        <$at::$part::$messages $(<$d>)? as Messages<'d>>::INFO
                    })*
                }
            }
        }

        $(
            impl<'d> From<$at::$part::$messages $(<$d>)?> for GameBody<'d> {
                fn from(message: $at::$part::$messages $(<$d>)?) -> Self {
                    Self::$variant(message)
                }
            }
        )*
    };
}

bodies! {
    ManagerClient: Manager, Client, manager::client::ClientMessage<'d>;
    ManagerServer: Manager, Server, manager::server::ServerMessage;
    AnyClient: Any, Client, any::client::ClientMessage;
    AnyServer: Any, Server, any::server::ServerMessage;
    BlueSpiralClient: BlueSpiral, Client, blue_spiral::client::ClientMessage;
    BlueSpiralServer: BlueSpiral, Server, blue_spiral::server::ServerMessage;
    ClimbingWallClient: ClimbingWall, Client, climbing_wall::client::ClientMessage;
    ClimbingWallServer: ClimbingWall, Server, climbing_wall::server::ServerMessage;
    HeekClient: Heek, Client, heek::client::ClientMessage<'d>;
    HeekServer: Heek, Server, heek::server::ServerMessage<'d>;
    MarkerClient: Marker, Client, marker::client::ClientMessage<'d>;
    MarkerServer: Marker, Server, marker::server::ServerMessage<'d>;
    TicTacToeClient: TicTacToe, Client, tic_tac_toe::client::ClientMessage;
    TicTacToeServer: TicTacToe, Server, tic_tac_toe::server::ServerMessage;
    VarSyncClient: VarSync, Client, var_sync::client::ClientMessage<'d>;
    VarSyncServer: VarSync, Server, var_sync::server::ServerMessage<'d>;
}

/// A pair of tables, one per sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Manager,
    Any,
    BlueSpiral,
    ClimbingWall,
    Heek,
    Marker,
    TicTacToe,
    VarSync,
}

impl Table {
    const fn of(game: GameType) -> Self {
        match game {
            GameType::BlueSpiral => Self::BlueSpiral,
            GameType::ClimbingWall => Self::ClimbingWall,
            GameType::Heek => Self::Heek,
            GameType::Marker => Self::Marker,
            GameType::TicTacToe => Self::TicTacToe,
            GameType::VarSync => Self::VarSync,
        }
    }

    fn names(self, sender: Side) -> &'static Names {
        GameBody::names(self, sender)
    }

    fn info(self, sender: Side) -> &'static [MessageInfo] {
        GameBody::info(self, sender)
    }

    /// The table that contains a message number; `None` if that depends on the unknown type of the
    /// game.
    fn find(scope: GameScope, sender: Side, number: u32) -> Option<Self> {
        match scope {
            GameScope::Manager => Some(Self::Manager),
            _ if number < own_numbers(sender) => Some(Self::Any),
            GameScope::Game(game) => Some(Self::of(game)),
            GameScope::Unknown => None,
        }
    }
}

/// The first number of a game's own messages. Lower numbers belong to [`any`].
#[must_use]
pub const fn own_numbers(sender: Side) -> u32 {
    match sender {
        Side::Client => 3,
        Side::Server => 4,
    }
}

/// The messages that one side sends in the scope of the game manager or a game: first those common
/// to all games, then the game's own.
#[must_use]
pub fn tables(scope: GameScope, sender: Side) -> Vec<&'static [MessageInfo]> {
    match scope {
        GameScope::Manager => vec![Table::Manager.info(sender)],
        GameScope::Unknown => vec![Table::Any.info(sender)],
        GameScope::Game(game) => vec![Table::Any.info(sender), Table::of(game).info(sender)],
    }
}

/// The names of the message numbers that [`tables`] lists last.
#[must_use]
pub fn names(scope: GameScope, sender: Side) -> &'static Names {
    let table = match scope {
        GameScope::Manager => Table::Manager,
        GameScope::Unknown => Table::Any,
        GameScope::Game(game) => Table::of(game),
    };
    table.names(sender)
}

/// The name of a message number.
#[must_use]
pub fn message_name(scope: GameScope, sender: Side, number: u32) -> Option<&'static str> {
    let table = Table::find(scope, sender, number)?;
    table.names(sender).name(number.into())
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GameHeader {
    /// The message number.
    pub number: u32,
    /// The transaction.
    pub trans_id: u32,
    /// The game; 0 for the manager.
    pub game_id: u32,
    /// The size of the message according to the header.
    pub size: u32,
}

impl GameHeader {
    /// The header at the beginning of these bytes; `None` if they are too short.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let mut fields = head.as_chunks::<4>().0.iter().map(|field| u32::from_le_bytes(*field));
        let mut next = || fields.next();
        Some(Self { number: next()?, trans_id: next()?, game_id: next()?, size: next()? })
    }
}

impl<'d> GameMessage<'d> {
    /// Decodes the message that fills the reader. The bytes do not reveal the type of the game, so
    /// `game` must be the type in its `GameInstance`.
    ///
    /// A trace contains `game`, `messageId`, `transId`, `gameId`, `size` and `fields`; if the type
    /// is needed but unknown, it contains `body` instead of `fields`.
    ///
    /// # Errors
    /// `Incomplete` if bytes are missing; `Malformed` for a wrong size, an unknown number or
    /// leftover bytes; a limit error for a message of more than [`MAX_BYTES`]; or an error from a
    /// field.
    pub fn decode<'n, T: Trace<'n>>(
        game: Option<GameType>,
        sender: Side,
        reader: &mut Reader<'d, T>,
    ) -> Result<Self> {
        let length = reader.remaining();
        if length > MAX_BYTES {
            let error = Error::limit("bytes of a game message", MAX_BYTES as u64, length as u64);
            return Err(error.at(reader.position() as u64));
        }
        let header = GameHeader::of(reader.rest());
        let scope = match (header.map(|header| header.game_id), game) {
            (Some(0), _) => GameScope::Manager,
            (_, Some(game)) => GameScope::Game(game),
            (_, None) => GameScope::Unknown,
        };
        let at = reader.place_if_on();
        reader.leaf_from(GAME, at, Value::Enum(scope.number(), GameScope::NAMES));
        let first = reader.position() as u64;
        let number = reader.take_array().map(u32::from_le_bytes);
        let number = number.map_err(|error| error.inside(NUMBER))?;
        let table = Table::find(scope, sender, number);
        if T::ON {
            let names = table.map_or(Table::Any, |table| table).names(sender);
            let shown = match table {
                Some(_) => Value::Enum(number.into(), names),
                None => Value::Unsigned(number.into()),
            };
            reader.leaf_from(NUMBER, at, shown);
        }
        let trans_id = TransId(reader.u32("transId")?);
        let game_id = reader.u32("gameId")?;
        let at = reader.position() as u64;
        let size = reader.u32(SIZE)?;
        if usize::try_from(size).ok() != Some(length) {
            let wanted = format!("{length}, the length of the message");
            return Err(Error::malformed(wanted, size.to_string()).at(at).inside(SIZE));
        }
        let body = match table {
            Some(table) => reader.record("fields", |reader| {
                let body = GameBody::decode(table, sender, number, reader);
                let body = body.map_err(|error| error.at(first))?;
                reader.end()?;
                Ok(body)
            })?,
            None => {
                let bytes = worldwire_core::Field::decode(reader, BODY)?;
                GameBody::Unknown { number, bytes }
            }
        };
        Ok(Self { trans_id, game_id, body })
    }

    /// Encodes the message with its header.
    ///
    /// # Errors
    /// `Value` if a field cannot be encoded, if a message of the manager has a game's ID, or if a
    /// message of a game has none; a limit error for a message of more than [`MAX_BYTES`].
    pub fn encode(&self, writer: &mut Writer) -> Result<()> {
        let is_manager =
            matches!(self.body, GameBody::ManagerClient(_) | GameBody::ManagerServer(_));
        if is_manager != (self.game_id == 0) {
            let wanted = if is_manager { "0, the manager" } else { "the ID of a game" };
            return Err(Error::value(wanted, self.game_id.to_string()).inside("gameId"));
        }
        let size_of_all = writer.len();
        writer.u32(self.body.number());
        writer.u32(self.trans_id.0);
        writer.u32(self.game_id);
        let size = writer.reserve::<4>();
        self.body.encode(writer).map_err(|error| error.inside("fields"))?;
        let length = writer.len() - size_of_all;
        if length > MAX_BYTES {
            return Err(Error::limit("bytes of a game message", MAX_BYTES as u64, length as u64));
        }
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        writer.patch(size, length.to_le_bytes());
        Ok(())
    }

    /// The encoded message.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut writer = Writer::new();
        self.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }

    /// Reads the JSON that a trace shows. The size follows from the fields, so it is ignored.
    ///
    /// # Errors
    /// `Value` if the JSON is not a message of this sender.
    pub fn from_json<'j>(sender: Side, json: impl Into<Given<'j>>) -> Result<Self> {
        let mut parts = FieldsOf::new(json)?;
        let scope = parts.take(GAME)?;
        let found = scope.as_str().and_then(GameScope::from_name);
        let scope = found.ok_or_else(|| {
            let wanted = "Manager, AnyGame or the name of a type of game, such as Marker";
            expected(wanted, scope).inside(GAME)
        })?;
        let name = parts.take(NUMBER)?;
        let trans_id = TransId(parts.value("transId")?);
        let game_id = parts.value("gameId")?;
        parts.take_optional(SIZE);
        let body = if let Some(body) = parts.given_optional(BODY) {
            let number = worldwire_core::json::integer(name, "the number of a message")
                .map_err(|error| error.inside(NUMBER))?;
            let bytes = worldwire_core::Field::from_json(body);
            GameBody::Unknown { number, bytes: bytes.map_err(|error| error.inside(BODY))? }
        } else {
            let fields = parts.given("fields")?;
            let (table, name) = named(scope, sender, name).map_err(|error| error.inside(NUMBER))?;
            GameBody::from_json(table, sender, name, fields)
                .map_err(|error| error.inside("fields"))?
        };
        parts.end()?;
        Ok(Self { trans_id, game_id, body })
    }

    /// Generates a message; returns `None` if there is no message with this number.
    #[must_use]
    pub fn sample(
        scope: GameScope,
        sender: Side,
        number: u32,
        sampler: &mut Sampler,
    ) -> Option<Self> {
        let table = Table::find(scope, sender, number)?;
        let body = GameBody::sample(table, sender, number, sampler)?;
        let game_id = match scope {
            GameScope::Manager => 0,
            _ => 1 + u32::try_from(sampler.below(9_000)).unwrap_or(0),
        };
        let trans_id = TransId(worldwire_core::Field::sample(sampler));
        Some(Self { trans_id, game_id, body })
    }

    /// Copies borrowed parts.
    #[must_use]
    pub fn into_owned(self) -> GameMessage<'static> {
        let Self { trans_id, game_id, body } = self;
        GameMessage { trans_id, game_id, body: body.into_owned() }
    }
}

const GAME: &str = "game";
const NUMBER: &str = "messageId";
const SIZE: &str = "size";
const BODY: &str = "body";

/// The table of a message and its name, given its name or number.
fn named(scope: GameScope, sender: Side, json: &Json) -> Result<(Table, &'static str)> {
    let own = match scope {
        GameScope::Manager => None,
        GameScope::Game(game) => Some(Table::of(game)),
        GameScope::Unknown => None,
    };
    let first = if scope == GameScope::Manager { Table::Manager } else { Table::Any };
    let found = [Some(first), own].into_iter().flatten().find_map(|table| {
        let number = match json {
            Json::String(name) => table.names(sender).number(name)?,
            number => number.as_i64()?,
        };
        table.names(sender).name(number).map(|name| (table, name))
    });
    found.ok_or_else(|| {
        let wanted = format!("a message of {} from the {sender}", scope.name());
        let error = expected(wanted, json);
        let known = tables(scope, sender).into_iter().flatten().map(|info| info.name);
        match json.as_str().and_then(|name| worldwire_core::nearest(name, known)) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None => error,
        }
    })
}
