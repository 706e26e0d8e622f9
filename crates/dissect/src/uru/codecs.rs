//! Uru's codecs.

use worldwire_core::json::{FieldsOf, Given, Json, bytes as json_bytes};
use worldwire_core::{Error, Field, Form, Result, Side, Tree};
use worldwire_uru::connect::{ConnectPacket, SetupPacket};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::file::manifest::{FileList, Manifest};
use worldwire_uru::file::secure;
use worldwire_uru::frame::{Message, Service, table};
use worldwire_uru::games::message::tables as game_tables;
use worldwire_uru::games::{GameMessage, GameScope, GameType};
use worldwire_uru::net_message::NetMessage;
use worldwire_uru::plasma_message::PlasmaMessage;
use worldwire_uru::safety::check_whole;
use worldwire_uru::types::{BitVector, Key, SafeString, SafeWString, Uoid};
use worldwire_uru::vault::VaultNode;

use super::definitions::states;
use crate::codec::{Codec, CodecOptions, Shape, read, read_opening, to_bytes};
use crate::line::{Blob, Line};

macro_rules! field_codec {
    ($name:literal, $type:ty, $node:literal, $about:literal) => {
        Codec {
            shape: Shape::Value,
            ..Codec::new(
                $name,
                $about,
                |data, options, tree| {
                    let opener = states(options.definitions);
                    read_opening($name, data, options, tree, opener, |reader| {
                        <$type>::decode(reader, $node).map(drop)
                    })
                },
                |json, options| {
                    let given = Given::closing(json, states(options.definitions));
                    to_bytes(|writer| <$type>::from_json(given)?.encode(writer))
                },
            )
        }
    };
}

/// The codec for a list that can be long.
macro_rules! list_codec {
    ($name:literal, $type:ident, $about:literal) => {
        Codec {
            encode: |json, _| $type::json_to_bytes(json),
            ..field_codec! { $name, $type<'_>, "files", $about }
        }
    };
}

macro_rules! message_codec {
    ($name:literal, $service:ident, $about:literal) => {
        Codec {
            sided: true,
            tables: || Side::BOTH.map(|side| table(Service::$service, side).messages).to_vec(),
            ..Codec::new(
                $name,
                $about,
                |data, options, tree| {
                    let opener = states(options.definitions);
                    read_opening($name, data, options, tree, opener, |reader| {
                        Message::decode(Service::$service, options.from, reader).map(drop)
                    })
                },
                |json, options| {
                    let given = Given::closing(json, states(options.definitions));
                    Message::from_json(Service::$service, options.from, given)?.to_bytes()
                },
            )
        }
    };
}

/// The codec for messages of the game manager or of a type of game. Encoding writes zeros where
/// senders leave uninitialised memory.
macro_rules! game_codec {
    ($name:literal, $scope:expr, $about:literal) => {
        Codec {
            sided: true,
            tables: || Side::BOTH.into_iter().flat_map(|side| game_tables($scope, side)).collect(),
            ..Codec::new(
                $name,
                $about,
                |data, options, tree| {
                    let game = match $scope {
                        GameScope::Game(game) => Some(game),
                        _ => None,
                    };
                    read($name, data, options, tree, |reader| {
                        GameMessage::decode(game, options.from, reader).map(drop)
                    })
                },
                |json, options| GameMessage::from_json(options.from, json)?.to_bytes(),
            )
        }
    };
}

/// The codec for a message, a connect packet or a setup packet.
pub(super) fn blob(line: &Line<'_>) -> Result<Option<Blob>> {
    let (service, name) = line.name.split_once('.').ok_or_else(|| line.no_message())?;
    let codec = match service {
        "connect" => return Ok(Some(("uru.connect", line.fields.clone()))),
        "setup" => return Ok(Some(("uru.setup", line.fields.clone()))),
        "auth" => "uru.auth",
        "file" => "uru.file",
        "game" => "uru.game",
        "gatekeeper" => "uru.gatekeeper",
        _ => return Err(line.no_message()),
    };
    let members = [("name", name.into()), ("fields", line.fields.clone())];
    Ok(Some((codec, members.into_iter().collect())))
}

pub(crate) static CODECS: &[Codec] = &[
    message_codec! { "uru.auth", Auth, "a message on an auth connection" },
    field_codec! { "uru.bit-vector", BitVector, "bits", "hsBitVector" },
    Codec::new(
        "uru.connect",
        "the connect packet, which begins every connection",
        |data, options, tree| {
            read("uru.connect", data, options, tree, |reader| {
                ConnectPacket::decode_fields(reader).map(drop)
            })
        },
        |json, _| to_bytes(|writer| ConnectPacket::from_json(json.into())?.encode(writer)),
    ),
    message_codec! { "uru.file", File, "a message on a file connection, with its byte count" },
    list_codec! { "uru.file-list", FileList, "an auth server's list of secure files" },
    message_codec! { "uru.game", Game, "a message on a game connection" },
    game_codec! {
        "uru.game-heek",
        GameScope::Game(GameType::Heek),
        "a Heek message, as found in GameMgrMsg"
    },
    game_codec! {
        "uru.game-manager", GameScope::Manager, "a message of the game manager itself"
    },
    game_codec! {
        "uru.game-marker", GameScope::Game(GameType::Marker), "a marker game message"
    },
    game_codec! {
        "uru.game-spiral", GameScope::Game(GameType::BlueSpiral), "a blue spiral message"
    },
    game_codec! {
        "uru.game-tictactoe", GameScope::Game(GameType::TicTacToe), "a tic-tac-toe message"
    },
    game_codec! {
        "uru.game-var-sync", GameScope::Game(GameType::VarSync), "a VarSync message"
    },
    game_codec! {
        "uru.game-wall", GameScope::Game(GameType::ClimbingWall), "a climbing wall message"
    },
    message_codec! { "uru.gatekeeper", Gatekeeper, "a message on a gatekeeper connection" },
    field_codec! { "uru.key", Key<'_>, "key", "plKey: a reference to an object, or none" },
    list_codec! { "uru.manifest", Manifest, "a manifest in wire format" },
    Codec {
        shape: Shape::Value,
        ..Codec::new(
            "uru.net-message",
            "a net message, as found in PropagateBuffer",
            |data, options, tree| {
                let opener = states(options.definitions);
                read_opening("uru.net-message", data, options, tree, opener, |reader| {
                    NetMessage::decode(reader, "message")?;
                    reader.end()?;
                    // An incomplete message is an error. The tree shows what was decoded.
                    check_whole(data, options.limits).map_err(|error| error.inside("message"))
                })
            },
            |json, options| {
                let given = Given::closing(json, states(options.definitions));
                to_bytes(|writer| NetMessage::from_json(given)?.encode(writer))
            },
        )
    },
    field_codec! {
        "uru.plasma-message", PlasmaMessage<'_>, "message", "plMessage: the payload of a net message"
    },
    field_codec! { "uru.safe-string", SafeString<'_>, "text", "a SafeString" },
    field_codec! { "uru.safe-wstring", SafeWString<'_>, "text", "a SafeWString" },
    Codec::new(
        "uru.sdl",
        "the state of an object, read with the descriptors from --data",
        |data, options, tree| {
            let uru = states(options.definitions);
            read("uru.sdl", data, options, tree, |reader| uru.read(reader))
        },
        |json, options| states(options.definitions).encode(json),
    ),
    Codec {
        keyed: true,
        ..Codec::new(
            "uru.secure-file",
            "an encrypted script, state description or settings file",
            decode_secure,
            encode_secure,
        )
    },
    Codec::new(
        "uru.setup",
        "a setup packet: the client's number or the server's seed",
        |data, options, tree| {
            read("uru.setup", data, options, tree, |reader| {
                SetupPacket::decode_fields(reader).map(drop)
            })
        },
        |json, _| to_bytes(|writer| SetupPacket::from_json(json.into())?.encode(writer)),
    ),
    field_codec! { "uru.uoid", Uoid<'_>, "uoid", "plUoid: the name of an object" },
    Codec {
        shape: Shape::Value,
        ..Codec::new(
            "uru.vault-node",
            "a vault node",
            |data, options, tree| {
                let opener = states(options.definitions);
                read_opening("uru.vault-node", data, options, tree, opener, |reader| {
                    reader.record("node", VaultNode::decode_named).map(drop)
                })
            },
            |json, options| {
                let given = Given::closing(json, states(options.definitions));
                to_bytes(|writer| VaultNode::from_named_json(given)?.encode(writer))
            },
        )
    },
];

/// The shard's keys.
fn ring<'o>(options: &CodecOptions<'o>) -> Option<&'o KeyRing> {
    options.keys.get_ref()
}

fn decode_secure<'d>(data: &'d [u8], options: &CodecOptions<'d>, tree: Tree<'d>) -> Tree<'d> {
    read("uru.secure-file", data, options, tree, |reader| {
        let opened =
            secure::open(data, ring(options).and_then(KeyRing::droid), options.limits.file_bytes)
                .map_err(|error| Error::malformed("", error.to_string()))?;
        reader.span("magic", secure::Magic::BYTES, Form::Utf8)?;
        reader.u32("plainLength")?;
        let start = reader.place();
        let plain = opened.plain();
        let form = match core::str::from_utf8(plain) {
            Ok(_) => Form::Utf8,
            Err(_) => Form::Bytes,
        };
        let (content, padding) = (plain.len(), opened.padding().len());
        let layer = [plain, opened.padding()].concat();
        reader.take(reader.remaining() - opened.trailing().len())?;
        reader.layer("decrypted", start, layer, |reader| {
            reader.span("content", content, form)?;
            // All known writers use zeros. Anything else is preserved.
            if reader.rest().iter().any(|byte| *byte != 0) {
                reader.bytes("padding", padding)?;
            }
            Ok(())
        })?;
        if reader.remaining() > 0 {
            reader.bytes("trailing", reader.remaining())?;
        }
        Ok(())
    })
}

fn encode_secure(json: &Json, options: &CodecOptions<'_>) -> Result<Vec<u8>> {
    let mut fields = FieldsOf::new(json)?;
    let magic = fields.take("magic")?;
    let content = fields.take("content")?;
    // The length follows from the content.
    fields.take_optional("plainLength");
    let mut rest = |name| {
        let bytes = fields.take_optional(name).map_or(Ok(Vec::new()), json_bytes);
        bytes.map_err(|error| error.inside(name))
    };
    let (padding, trailing) = (rest("padding")?, rest("trailing")?);
    fields.end()?;
    let magic = magic.as_str().and_then(|text| secure::Magic::detect(text.as_bytes())).ok_or_else(
        || {
            worldwire_core::json::expected("notthedroids, whatdoyousee or BriceIsSmart", magic)
                .inside("magic")
        },
    )?;
    let plain = match content.as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => json_bytes(content).map_err(|error| error.inside("content"))?,
    };
    let key = match magic {
        secure::Magic::NotTheDroids => {
            ring(options).and_then(KeyRing::droid).cloned().ok_or_else(|| {
                Error::invalid("the droid key is missing").hint("supply a key file with --keys")
            })?
        }
        _ => secure::SecureKey::SETTINGS,
    };
    secure::SecureFile::new(magic, plain)
        .with_rest(padding, trailing)
        .seal(&key)
        .map_err(|error| Error::invalid(error.to_string()))
}
