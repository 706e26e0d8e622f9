//! Decodes messages of the game manager inside `GameMgrMsg`. Their layout depends on the type of
//! their game.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use worldwire_core::json::{FieldsOf, Given, Json, bytes};
use worldwire_core::opener::{Closer, Opener, Site};
use worldwire_core::{Error, Reader, Result, Side, TreeBuilder};
use worldwire_uru::connection::{Received, Unit};
use worldwire_uru::frame::Service;
use worldwire_uru::games::message::manager::GameResult;
use worldwire_uru::games::message::manager::server::ServerMessage;
use worldwire_uru::games::message::{message_name, tables};
use worldwire_uru::games::{GameBody, GameHeader, GameMessage, GameScope, GameType};

use super::definitions::UruDefinitions;

/// The name of the message decoded from a buffer.
const MESSAGE: &str = "message";
/// The maximum number of games kept per conversation.
const MAX_GAMES: usize = 4_096;

/// The types of a conversation's games by ID. `GameInstance` reveals them.
#[derive(Clone, Debug, Default)]
pub(super) struct GameTypes(BTreeMap<u32, GameType>);

impl GameTypes {
    /// The number of known games.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Learns the type of a game that the client has joined.
    pub(super) fn learn_from(&mut self, received: &Received<'_>) {
        let Some(buffer) = buffer_of(received).filter(|_| received.side == Side::Server) else {
            return;
        };
        if GameHeader::of(buffer).is_none_or(|header| header.game_id != 0) {
            return;
        }
        let message = GameMessage::decode(None, Side::Server, &mut Reader::new(buffer));
        let Ok(GameBody::ManagerServer(ServerMessage::GameInstance(game))) =
            message.map(|message| message.body)
        else {
            return;
        };
        let Some(game_type) = GameType::of(game.game_type) else { return };
        if game.result == GameResult::Success
            && (self.0.len() < MAX_GAMES || self.0.contains_key(&game.game_id))
        {
            self.0.insert(game.game_id, game_type);
        }
    }

    /// The type of a game, if it is known.
    pub(super) fn of(&self, game_id: u32) -> Option<GameType> {
        self.0.get(&game_id).copied()
    }

    /// A buffer's message.
    pub(super) fn decode<'d>(&self, sender: Side, buffer: &'d [u8]) -> Result<GameMessage<'d>> {
        let game = GameHeader::of(buffer).and_then(|header| self.of(header.game_id));
        GameMessage::decode(game, sender, &mut Reader::new(buffer))
    }

    /// The name of a buffer's message, with its scope: `Marker.AddMarker`. `None` for a message
    /// without a name.
    pub(super) fn name(&self, sender: Side, buffer: &[u8]) -> Option<(&'static str, &'static str)> {
        let header = GameHeader::of(buffer)?;
        let scope = match (header.game_id, self.of(header.game_id)) {
            (0, _) => GameScope::Manager,
            (_, Some(game)) => GameScope::Game(game),
            (_, None) => GameScope::Unknown,
        };
        message_name(scope, sender, header.number).map(|name| (scope.name(), name))
    }
}

/// The content of a `GameMgrMsg`.
pub(super) fn buffer_of<'c>(received: &Received<'c>) -> Option<&'c [u8]> {
    /// Message number and length.
    const HEAD: usize = 6;
    let is_game = received.unit == Unit::Message(Service::Game);
    let holds = is_game && received.name().1 == "GameMgrMsg";
    holds.then(|| received.bytes.get(HEAD..)).flatten()
}

/// All names of messages as [`GameTypes::name`] spells them.
pub(super) fn names() -> Vec<&'static str> {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut names = Vec::new();
        for scope in scopes() {
            for message in Side::BOTH.into_iter().flat_map(|side| tables(scope, side)).flatten() {
                let name = format!("{}.{}", scope.name(), message.name);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    });
    NAMES.iter().map(String::as_str).collect()
}

/// All scopes that have messages.
pub(super) fn scopes() -> impl Iterator<Item = GameScope> {
    let games = GameType::ALL.map(GameScope::Game);
    [GameScope::Manager, GameScope::Unknown].into_iter().chain(games)
}

/// Opens the fields of a conversation: the user's descriptors, and the types of its games.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contents<'m> {
    pub(super) states: &'m UruDefinitions,
    pub(super) games: &'m GameTypes,
}

impl<'n> Opener<'n> for Contents<'_> {
    fn opens(&self, site: Site<'_>, bytes: &[u8]) -> bool {
        self.states.opens(site, bytes)
    }

    fn open(&'n self, site: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        if is_game(site) { open(self.games, site, reader) } else { self.states.open(site, reader) }
    }
}

impl Closer for Contents<'_> {
    fn close(&self, site: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        self.states.close(site, json)
    }
}

/// Whether a field holds a message of the game manager.
pub(super) fn is_game(site: Site<'_>) -> bool {
    site.field == "buffer" && site.message.name == "GameMgrMsg" && site.message.connection == "game"
}

/// Shows `message` after the bytes of a buffer.
pub(super) fn open<'n>(
    games: &GameTypes,
    site: Site<'_>,
    reader: &mut Reader<'_, TreeBuilder<'n>>,
) -> Result<()> {
    let sender = site.message.sender.unwrap_or(Side::Client);
    let game = GameHeader::of(reader.rest()).and_then(|header| games.of(header.game_id));
    reader.record(MESSAGE, |reader| GameMessage::decode(game, sender, reader)).map(drop)
}

/// Encodes a buffer from its JSON: `bytes`, `message`, or both. The message takes precedence unless
/// the bytes decode to the same one: they can contain uninitialised memory that the message lacks.
///
/// # Errors
/// `Value` if the message cannot be encoded or the bytes are not a message of the same name.
pub(super) fn close(site: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
    let sender = site.message.sender.unwrap_or(Side::Client);
    let mut parts = FieldsOf::new(json)?;
    let beside = parts.take_optional("bytes");
    let opened = parts.take_optional(MESSAGE);
    parts.end()?;
    let Some(opened) = opened else { return Ok(None) };
    let message = GameMessage::from_json(sender, Given::from(opened));
    let message = message.map_err(|error| error.inside(MESSAGE))?;
    let made = message.to_bytes().map_err(|error| error.inside(MESSAGE))?;
    let Some(beside) = beside else { return Ok(Some(made)) };
    let beside = bytes(beside).map_err(|error| error.inside("bytes"))?;
    let game = opened.get("game").and_then(Json::as_str).and_then(GameType::from_name);
    let found = GameMessage::decode(game, sender, &mut Reader::new(&beside));
    let (wanted, number) = (message.body.name(), message.body.number());
    let found = match found {
        Ok(found) if found == message => return Ok(Some(beside)),
        Ok(found) if (found.body.name(), found.body.number()) == (wanted, number) => {
            return Ok(Some(made));
        }
        Ok(found) => {
            found.body.name().map_or_else(|| "an unknown message".to_owned(), str::to_owned)
        }
        Err(error) => format!("undecodable bytes ({error})"),
    };
    let wanted = wanted.map_or_else(|| format!("message {number}"), |name| format!("a {name}"));
    let error = Error::value(format!("{wanted} to match `{MESSAGE}`"), found).inside("bytes");
    Err(error.hint("remove `bytes` or `message`"))
}

#[cfg(test)]
mod tests {
    use worldwire_core::Writer;
    use worldwire_core::json::json;
    use worldwire_core::opener::Subject;
    use worldwire_core::value::parse_hex;

    use super::*;
    use crate::{Codec, CodecOptions, Definitions, Keys};

    fn site(sender: Side) -> Site<'static> {
        let (connection, name, sender) = ("game", "GameMgrMsg", Some(sender));
        Site { message: Subject { connection, number: 3, name, sender }, field: "buffer" }
    }

    fn received(side: Side, bytes: &[u8]) -> Received<'_> {
        let unit = Unit::Message(Service::Game);
        Received { side, unit, offset: 0, bytes, encrypted: true }
    }

    /// A `GameMgrMsg` with this content.
    fn framed(message: &GameMessage<'_>) -> Vec<u8> {
        let bytes = message.to_bytes().unwrap();
        let mut writer = Writer::new();
        writer.u16(3);
        writer.u32(u32::try_from(bytes.len()).unwrap());
        writer.bytes(&bytes);
        writer.into_bytes()
    }

    fn instance(result: i32) -> Vec<u8> {
        let message = GameMessage::from_json(
            Side::Server,
            &json!({
                "game": "Manager", "messageId": "GameInstance", "transId": 5, "gameId": 0,
                "fields": {
                    "result": result, "owner": 7,
                    "gameType": "000b2c39-0319-4be1-b06c-7a105b160fcf", "gameId": 70,
                },
            }),
        );
        framed(&message.unwrap())
    }

    /// `ChangeGameName` in game 70, with uninitialised memory after the name.
    fn renamed() -> Vec<u8> {
        let mut bytes = parse_hex("06000000000000004600000010020000").unwrap();
        bytes.extend([b'H', 0, b'i', 0, 0, 0]);
        bytes.resize(528, 0xcd);
        bytes
    }

    fn shown(games: &GameTypes, buffer: &[u8]) -> (Json, Vec<String>) {
        let states = UruDefinitions::default();
        let contents = Contents { states: &states, games };
        let mut framed = vec![3, 0];
        framed.extend(u32::try_from(buffer.len()).unwrap().to_le_bytes());
        framed.extend(buffer);
        let limits = worldwire_core::Limits::DEFAULT;
        let received = received(Side::Client, &framed);
        let tree = received.tree_opening(worldwire_core::Tree::new(), &limits, &contents);
        let remarks = tree.remarks().iter().map(ToString::to_string).collect();
        let mut text = String::new();
        let node = tree.find("fields.buffer").unwrap();
        worldwire_core::json::write_node(node, Default::default(), &mut text);
        (serde_json::from_str(&text).unwrap(), remarks)
    }

    #[test]
    fn the_type_of_a_game_is_learned() {
        let buffer = renamed();
        let mut games = GameTypes::default();
        let (json, remarks) = shown(&games, &buffer);
        assert_eq!((&json["message"]["game"], remarks), (&json!("AnyGame"), vec![]));
        assert!(json["message"].get("body").is_some());
        // Failed requests reveal nothing, and neither do clients.
        games.learn_from(&received(Side::Server, &instance(2)));
        games.learn_from(&received(Side::Client, &instance(0)));
        assert_eq!((games.of(70), games.name(Side::Client, &buffer)), (None, None));
        games.learn_from(&received(Side::Server, &instance(0)));
        assert_eq!(games.of(70), Some(GameType::Marker));
        assert_eq!(games.name(Side::Client, &buffer), Some(("Marker", "ChangeGameName")));
        let (json, remarks) = shown(&games, &buffer);
        assert_eq!(remarks, [""; 0]);
        let wanted = json!({
            "game": "Marker", "messageId": "ChangeGameName", "transId": 0, "gameId": 70,
            "size": 528, "fields": {"name": "Hi"},
        });
        assert_eq!(json["message"], wanted);
    }

    #[test]
    fn unchanged_messages_keep_their_bytes_and_changed_ones_have_no_dead_memory() {
        let mut games = GameTypes::default();
        games.learn_from(&received(Side::Server, &instance(0)));
        let buffer = renamed();
        let (mut json, _) = shown(&games, &buffer);
        assert_eq!(close(site(Side::Client), &json).unwrap(), Some(buffer));
        json["message"]["fields"]["name"] = "Ho".into();
        let changed = close(site(Side::Client), &json).unwrap().unwrap();
        assert_eq!((changed.len(), &changed[16..20]), (528, &[b'H', 0, b'o', 0][..]));
        assert!(changed[20..].iter().all(|byte| *byte == 0));
        json["message"]["messageId"] = "PauseGame".into();
        json["message"]["fields"] = json!({});
        assert_eq!(
            close(site(Side::Client), &json).unwrap_err().to_string(),
            "bytes: wanted a PauseGame to match `message`, found ChangeGameName; remove \
             `bytes` or `message`"
        );
    }

    #[test]
    fn damaged_messages_stay_bytes_with_a_remark() {
        let mut games = GameTypes::default();
        games.learn_from(&received(Side::Server, &instance(0)));
        let mut buffer = renamed();
        buffer.pop();
        let (json, remarks) = shown(&games, &buffer);
        assert!(json.get("message").is_none());
        assert_eq!(
            remarks,
            ["buffer.message.size at byte 18: wanted 527, the length of the message, found 528"]
        );
    }

    /// Each codec knows the type of game from its own name.
    #[test]
    fn codecs_decode_messages_of_their_game() {
        let (keys, definitions) = (Keys::none(), Definitions::built_in());
        let limits = worldwire_core::Limits::DEFAULT;
        let (keys, definitions, limits) = (&keys, &definitions, &limits);
        let options = CodecOptions { from: Side::Client, keys, definitions, limits };
        let codec = Codec::named("uru.game-marker").unwrap();
        let buffer = renamed();
        let tree = codec.decode(&buffer, &options);
        assert_eq!(tree.error(), None);
        let mut text = String::new();
        codec.write_json(&tree, Side::Client, Default::default(), &mut text);
        assert!(!text.contains("cdcd"), "{text}");
        let json: Json = serde_json::from_str(&text).unwrap();
        let again = codec.encode(json, &options).unwrap();
        assert_eq!((again.len(), &again[..22]), (528, &buffer[..22]));
        let codec = Codec::named("uru.game-spiral").unwrap();
        assert!(codec.decode(&buffer, &options).error().is_some());
    }
}
