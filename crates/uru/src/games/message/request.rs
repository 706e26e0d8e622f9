//! Requests to create and join games, whose data depends on the type of the game.

use std::borrow::Cow;

use worldwire_core::json::{FieldsOf, Given};
use worldwire_core::{
    Error, Field, FieldInfo, Reader, Record, Result, Sampler, Trace, Value, Writer, record,
};

use super::manager::GameOptions;
use super::marker::{AGE_UNITS, MarkerGameType, NAME_UNITS};
use crate::games::{GameText, GameType};
use crate::types::Uuid;

record! {
    /// The data for creating a marker game.
    pub struct MarkerParams<'a> {
        /// The type, unless the template exists.
        marker_type "type": MarkerGameType,
        /// The name, unless the template exists.
        name "name": GameText<'a, NAME_UNITS>,
        /// The time limit in milliseconds.
        time_limit "timeLimit": u32,
        /// The template, as a UUID; empty or zero to create a new one.
        template "template": GameText<'a, AGE_UNITS>,
    }
}

record! {
    /// The data for creating a game of tic-tac-toe.
    pub struct TicTacToeParams {
        /// The number of players, 1 or 2. A single player plays against the server.
        players "players": u8,
    }
}

/// The data for creating a game.
#[derive(Clone, Debug, PartialEq)]
pub enum CreateData<'a> {
    /// For a marker game.
    Marker(Box<MarkerParams<'a>>),
    /// For tic-tac-toe.
    TicTacToe(TicTacToeParams),
    /// For a game that needs no data. Most clients send one byte of uninitialised memory; it is
    /// neither kept nor shown.
    Nothing {
        /// Whether that byte is present.
        filler: bool,
    },
    /// Data of the wrong length or for an unknown type of game.
    Other(Cow<'a, [u8]>),
}

/// The maximum number of bytes.
const MAX_DATA: u64 = 2_048;
const MARKER_BYTES: usize = <MarkerParams<'static> as Field<'static>>::LEAST;

impl<'a> CreateData<'a> {
    /// Reads the count and the data of a game of this type.
    fn read<'n, T: Trace<'n>>(reader: &mut Reader<'a, T>, game_type: Uuid) -> Result<Self> {
        let start = reader.place_if_on();
        let at = reader.position() as u64;
        let read = |reader: &mut Reader<'a, T>| {
            let count = u32::from_le_bytes(reader.take_array()?);
            let length = usize::try_from(count).unwrap_or(usize::MAX);
            if length > reader.remaining() {
                let error = Error::incomplete(length, reader.remaining());
                return Err(error.at(reader.position() as u64));
            }
            match u64::from(count) {
                0..=MAX_DATA => Ok(length),
                asked => Err(Error::limit("bytes of create data", MAX_DATA, asked).at(at)),
            }
        };
        let length = read(reader).map_err(|error| error.inside(DATA))?;
        match (GameType::of(game_type), length) {
            (Some(GameType::Marker), MARKER_BYTES) => reader
                .scope_from(DATA, Value::Record, start, MarkerParams::decode_fields)
                .map(|params| Self::Marker(Box::new(params))),
            (Some(GameType::TicTacToe), 1) => reader
                .scope_from(DATA, Value::Record, start, TicTacToeParams::decode_fields)
                .map(Self::TicTacToe),
            (Some(GameType::Marker | GameType::TicTacToe) | None, _) | (_, 2..) => {
                let bytes = reader.take(length)?;
                let span = reader.span_behind(worldwire_core::Form::Bytes, length);
                reader.leaf_from(DATA, start, span);
                Ok(Self::Other(Cow::Borrowed(bytes)))
            }
            (Some(_), _) => {
                let filler = length == 1;
                reader.scope_from(DATA, Value::Record, start, |reader| {
                    let start = reader.place_if_on();
                    reader.take(length)?;
                    reader.leaf_from(FILLER, start, Value::Bool(filler));
                    Ok(())
                })?;
                Ok(Self::Nothing { filler })
            }
        }
    }

    fn write(&self, writer: &mut Writer) -> Result<()> {
        let count = writer.reserve::<4>();
        match self {
            Self::Marker(params) => params.encode_fields(writer),
            Self::TicTacToe(params) => params.encode_fields(writer),
            Self::Nothing { filler } => {
                writer.zeros(usize::from(*filler));
                Ok(())
            }
            Self::Other(bytes) => {
                if bytes.len() as u64 > MAX_DATA {
                    let found = bytes.len() as u64;
                    return Err(Error::limit("bytes of create data", MAX_DATA, found).inside(DATA));
                }
                writer.bytes(bytes);
                Ok(())
            }
        }
        .map_err(|error| error.inside(DATA))?;
        let length = u32::try_from(writer.since(count)).unwrap_or(u32::MAX);
        writer.patch(count, length.to_le_bytes());
        Ok(())
    }

    fn from_json(given: Given<'_>) -> Result<Self> {
        if given.get("$hex").is_some() {
            return given.bytes().map(|bytes| Self::Other(bytes.into()));
        }
        if given.get("players").is_some() {
            return TicTacToeParams::from_json(given).map(Self::TicTacToe);
        }
        if given.get(FILLER).is_some() {
            let mut fields = FieldsOf::new(given)?;
            let filler = fields.take(FILLER)?;
            let filler = filler.as_bool().ok_or_else(|| {
                worldwire_core::json::expected("true or false", filler).inside(FILLER)
            })?;
            fields.end()?;
            return Ok(Self::Nothing { filler });
        }
        MarkerParams::from_json(given).map(|params| Self::Marker(Box::new(params)))
    }

    /// Data for a game of this type, as clients send it.
    fn sample(game_type: Uuid, sampler: &mut Sampler) -> Self {
        match GameType::of(game_type) {
            Some(GameType::Marker) => Self::Marker(Box::new(Field::sample(sampler))),
            Some(GameType::TicTacToe) => Self::TicTacToe(Field::sample(sampler)),
            Some(_) => Self::Nothing { filler: sampler.below(2) == 1 },
            None => {
                let length = sampler.length(12);
                Self::Other(sampler.bytes(length).into())
            }
        }
    }

    /// Checks that the data has the form that decoding yields for this type of game.
    fn belongs(&self, game_type: Uuid) -> Result<()> {
        let fits = match (self, GameType::of(game_type)) {
            (Self::Marker(_), of) => of == Some(GameType::Marker),
            (Self::TicTacToe(_), of) => of == Some(GameType::TicTacToe),
            (Self::Nothing { .. }, of) => {
                of.is_some_and(|of| !matches!(of, GameType::Marker | GameType::TicTacToe))
            }
            (Self::Other(_), _) => true,
        };
        if fits {
            return Ok(());
        }
        let error = Error::value("data for this type of game", "data for another type");
        Err(error.inside(DATA).hint("write the bytes as {\"$hex\": \"00\"}"))
    }

    fn into_owned(self) -> CreateData<'static> {
        match self {
            Self::Marker(params) => CreateData::Marker(Box::new((*params).into_owned())),
            Self::TicTacToe(params) => CreateData::TicTacToe(params),
            Self::Nothing { filler } => CreateData::Nothing { filler },
            Self::Other(bytes) => CreateData::Other(bytes.into_owned().into()),
        }
    }
}

const DATA: &str = "createData";
const FILLER: &str = "filler";

fn row(name: &'static str, layout: &'static str, doc: &'static str) -> FieldInfo {
    FieldInfo::in_words(name, layout, doc)
}

fn data_row() -> FieldInfo {
    row(
        DATA,
        "u32 count, u8[..2048] (MarkerParams, TicTacToeParams)",
        "The data for creating the game. Games that need none have one meaningless byte, or no bytes.",
    )
}

/// A request to create a game.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRequest<'a> {
    /// The type of the game.
    pub game_type: Uuid,
    /// Ignored: the game is always a new one.
    pub options: GameOptions,
    /// The data for creating the game.
    pub data: CreateData<'a>,
}

impl<'d> Record<'d> for CreateRequest<'d> {
    const NAME: &'static str = "CreateRequest";

    fn fields() -> Vec<FieldInfo> {
        vec![
            row("gameType", "uuid", "The type of the game."),
            row("options", "u32 GameOptions", "Ignored: the game is always a new one."),
            data_row(),
        ]
    }

    fn decode_fields<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let game_type = Uuid::decode(reader, "gameType")?;
        let options = GameOptions::decode(reader, "options")?;
        let data = CreateData::read(reader, game_type)?;
        Ok(Self { game_type, options, data })
    }

    fn encode_fields(&self, writer: &mut Writer) -> Result<()> {
        self.data.belongs(self.game_type)?;
        self.game_type.encode(writer)?;
        self.options.encode(writer)?;
        self.data.write(writer)
    }

    fn from_fields(fields: &mut FieldsOf<'_>) -> Result<Self> {
        let game_type = fields.value("gameType")?;
        let options = fields.value("options")?;
        let data = CreateData::from_json(fields.given(DATA)?);
        Ok(Self { game_type, options, data: data.map_err(|error| error.inside(DATA))? })
    }
}

impl<'d> Field<'d> for CreateRequest<'d> {
    type Owned = CreateRequest<'static>;
    const LEAST: usize = 24;

    worldwire_core::__record_as_field!(['d] CreateRequest);

    fn sample(sampler: &mut Sampler) -> Self {
        let game_type = GameType::sample_id(sampler);
        let data = CreateData::sample(game_type, sampler);
        Self { game_type, options: Field::sample(sampler), data }
    }

    fn into_owned(self) -> Self::Owned {
        let Self { game_type, options, data } = self;
        CreateRequest { game_type, options, data: data.into_owned() }
    }
}

/// A request to join a game.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinRequest<'a> {
    /// The game; with [`GameOptions::Common`], the table.
    pub game_id: u32,
    /// How to join the game.
    pub options: GameOptions,
    /// The type of the game and the data for creating it. `None` in the short form, which can only
    /// join an existing game.
    pub new_game: Option<NewGame<'a>>,
}

/// The second half of a [`JoinRequest`].
#[derive(Clone, Debug, PartialEq)]
pub struct NewGame<'a> {
    /// The type of the game.
    pub game_type: Uuid,
    /// The data for creating the game.
    pub data: CreateData<'a>,
}

impl<'d> Record<'d> for JoinRequest<'d> {
    const NAME: &'static str = "JoinRequest";

    fn fields() -> Vec<FieldInfo> {
        vec![
            row("gameId", "u32", "The ID of the game; with the option Common, the table."),
            row("options", "u32 GameOptions", "How to join."),
            row("gameType", "uuid, if present", "The type of the game."),
            data_row(),
        ]
    }

    fn decode_fields<'n, T: Trace<'n>>(reader: &mut Reader<'d, T>) -> Result<Self> {
        let game_id = reader.u32("gameId")?;
        let options = GameOptions::decode(reader, "options")?;
        let is_short = reader.remaining() == 0 && !options.contains(GameOptions::Common);
        let new_game = if is_short {
            None
        } else {
            let game_type = Uuid::decode(reader, "gameType")?;
            Some(NewGame { game_type, data: CreateData::read(reader, game_type)? })
        };
        Ok(Self { game_id, options, new_game })
    }

    fn encode_fields(&self, writer: &mut Writer) -> Result<()> {
        self.game_id.encode(writer)?;
        self.options.encode(writer)?;
        match &self.new_game {
            Some(new_game) => {
                new_game.data.belongs(new_game.game_type)?;
                new_game.game_type.encode(writer)?;
                new_game.data.write(writer)
            }
            None if self.options.contains(GameOptions::Common) => {
                Err(Error::invalid("is missing; a common game needs it").inside("gameType"))
            }
            None => Ok(()),
        }
    }

    fn from_fields(fields: &mut FieldsOf<'_>) -> Result<Self> {
        let game_id = fields.value("gameId")?;
        let options = fields.value("options")?;
        let new_game = match fields.given_optional("gameType") {
            Some(game_type) => {
                let game_type =
                    Uuid::from_json(game_type).map_err(|error| error.inside("gameType"))?;
                let data = CreateData::from_json(fields.given(DATA)?);
                Some(NewGame { game_type, data: data.map_err(|error| error.inside(DATA))? })
            }
            None => None,
        };
        Ok(Self { game_id, options, new_game })
    }
}

impl<'d> Field<'d> for JoinRequest<'d> {
    type Owned = JoinRequest<'static>;
    const LEAST: usize = 8;

    worldwire_core::__record_as_field!(['d] JoinRequest);

    fn sample(sampler: &mut Sampler) -> Self {
        let (game_id, mut options) = (Field::sample(sampler), GameOptions::sample(sampler));
        let new_game = (sampler.below(4) != 0).then(|| {
            let game_type = GameType::sample_id(sampler);
            NewGame { game_type, data: CreateData::sample(game_type, sampler) }
        });
        if new_game.is_none() {
            options = GameOptions(options.0 & !GameOptions::Common.0);
        }
        Self { game_id, options, new_game }
    }

    fn into_owned(self) -> Self::Owned {
        let new_game = self
            .new_game
            .map(|NewGame { game_type, data }| NewGame { game_type, data: data.into_owned() });
        JoinRequest { game_id: self.game_id, options: self.options, new_game }
    }
}
