//! Decodes net messages inside `PropagateBuffer`, and object states inside those.

use worldwire_core::json::{FieldsOf, Given, Json, Style, bytes, write_children};
use worldwire_core::opener::{Closer, Opener, Site};
use worldwire_core::{Classes, Error, Field, Reader, Result, Tree, TreeBuilder, Value, Writer};
use worldwire_uru::net_message::{NetMessage, checked_class};
use worldwire_uru::plasma_message::PlasmaMessage;
use worldwire_uru::sdl::{Blob, BlobHeader};
use worldwire_uru::types::ClassIndex;

use super::definitions::UruDefinitions;
use super::game_manager::{self, GameTypes, is_game};

/// The name of the message decoded from a buffer.
const MESSAGE: &str = "message";
/// The name of the state decoded from SDL.
const STATE: &str = "state";
/// The name of a state's head, for states whose variables cannot be read.
const HEAD: &str = "stateHead";
/// The maximum length of a descriptor's name in a remark.
const MAX_NAME: usize = 60;

/// Shows the net message `message` after the bytes of a buffer, and the object state `state` after
/// the bytes of SDL, or at least its head, `stateHead`.
///
/// Plasma messages are decoded without an opener. If one cannot be decoded, the opener reports why.
impl<'n> Opener<'n> for UruDefinitions {
    fn opens(&self, site: Site<'_>, bytes: &[u8]) -> bool {
        let has_descriptors = || !self.descriptors().is_empty();
        is_buffer(site)
            || is_game(site)
            || is_payload(site)
            || is_state(site) && !bytes.is_empty() && has_descriptors()
    }

    fn open(&'n self, site: Site<'_>, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        if is_state(site) {
            return self.open_state(site, reader);
        }
        if is_game(site) {
            // Outside a conversation, only the manager's own messages have a known type.
            return game_manager::open(&GameTypes::default(), site, reader);
        }
        if is_payload(site) {
            return PlasmaMessage::decode(reader, MESSAGE).map(drop);
        }
        let buffer = reader.rest();
        let inner = buffer.first_chunk().map_or(0, |class| u16::from_le_bytes(*class));
        let outer = outer_class(reader.trace_mut()).unwrap_or_else(|| inner.into());
        checked_class(ClassIndex(outer), buffer).map_err(|error| error.inside(MESSAGE))?;
        NetMessage::decode(reader, MESSAGE).map(drop)
    }
}

impl Closer for UruDefinitions {
    fn close(&self, site: Site<'_>, json: &Json) -> Result<Option<Vec<u8>>> {
        if is_game(site) {
            return game_manager::close(site, json);
        }
        let mut parts = FieldsOf::new(json)?;
        let beside = parts.take_optional("bytes");
        let name = if is_state(site) { STATE } else { MESSAGE };
        let opened = parts.take_optional(name);
        let head = parts.take_optional(HEAD).filter(|_| is_state(site));
        parts.end()?;
        let Some(opened) = opened else {
            if let (Some(head), Some(beside)) = (head, beside) {
                let beside = bytes(beside).map_err(|error| error.inside("bytes"))?;
                is_unchanged(head, &beside).map_err(|error| error.inside(HEAD))?;
            }
            return Ok(None);
        };
        let made = if is_state(site) {
            self.encode(opened)
        } else {
            NetMessage::from_json(Given::closing(opened, self)).and_then(|message| {
                let mut writer = Writer::new();
                message.encode(&mut writer)?;
                Ok(writer.into_bytes())
            })
        };
        let made = made.map_err(|error| error.inside(name))?;
        if let Some(beside) = beside {
            let beside = bytes(beside).map_err(|error| error.inside("bytes"))?;
            self.belongs(site, &beside, &made).map_err(|error| error.inside("bytes"))?;
        }
        Ok(Some(made))
    }
}

impl UruDefinitions {
    /// Shows the state `state`. If its variables cannot be read, shows `stateHead` instead. Both
    /// the head and the remark name the descriptor.
    fn open_state<'n>(
        &'n self,
        site: Site<'_>,
        reader: &mut Reader<'_, TreeBuilder<'n>>,
    ) -> Result<()> {
        let whole = reader.attempt(|reader| {
            reader.record(STATE, |reader| self.read(reader))?;
            reader.end()
        });
        let Err(error) = whole else { return Ok(()) };
        let head = reader.attempt(|reader| reader.record(HEAD, BlobHeader::decode_fields));
        let Ok(head) = head else { return Err(error) };
        let (name, version) = (head.name.to_text(), head.version);
        let name = name.get(..name.floor_char_boundary(MAX_NAME)).unwrap_or_default();
        let left = reader.remaining();
        reader.take(left)?;
        let state = format!("state of {} {version}", name.escape_debug());
        reader.remark(error.inside(site.field).about(state));
        Ok(())
    }

    /// Checks that edited JSON still belongs to `bytes`, the original content of the field: `made`
    /// must be a message of the same class, or a state with the same descriptor. Values may differ,
    /// because the edited JSON takes precedence.
    fn belongs(&self, site: Site<'_>, bytes: &[u8], made: &[u8]) -> Result<()> {
        if bytes == made {
            return Ok(());
        }
        let what = |bytes: &[u8]| -> Result<String> {
            let mut reader = Reader::new(bytes);
            let what = if is_state(site) {
                let blob = Blob::decode(self.descriptors(), &mut reader).map_err(Error::closed)?;
                format!("a state of {}", blob.descriptor.name())
            } else {
                let message = NetMessage::decode(&mut reader, "").map_err(Error::closed)?;
                let class = message.class();
                match message.class_name() {
                    Some(name) => format!("a {name}"),
                    None => format!("class 0x{class:04x}"),
                }
            };
            reader.end().map(|()| what)
        };
        let wanted = what(made)?;
        let found = what(bytes).unwrap_or_else(|error| format!("undecodable bytes ({error})"));
        if found == wanted {
            return Ok(());
        }
        let beside = if is_state(site) { STATE } else { MESSAGE };
        let error = Error::value(format!("{wanted} to match `{beside}`"), found);
        Err(error.hint(format!("remove `bytes` or `{beside}`")))
    }
}

/// Checks that the JSON of a state's head still describes the bytes, which take precedence because
/// the variables could not be read.
fn is_unchanged(head: &Json, bytes: &[u8]) -> Result<()> {
    let mut reader = Reader::traced("sdl", bytes, Tree::new());
    let shown = BlobHeader::decode_fields(&mut reader).map(drop).map_err(Error::closed);
    let mut text = String::new();
    write_children(Value::Record, reader.finish().roots(), Style::default(), &mut text);
    let same = shown.is_ok() && serde_json::from_str::<Json>(&text).is_ok_and(|it| it == *head);
    if same {
        return Ok(());
    }
    let error = Error::invalid("does not match `bytes`");
    Err(error.hint("the state is damaged, so edit `bytes` instead"))
}

/// The class given before the buffer that is being opened.
fn outer_class(trace: &TreeBuilder<'_>) -> Option<u32> {
    match trace.value_before()? {
        ("type", Value::Enum(class, _)) => u32::try_from(class).ok(),
        _ => None,
    }
}

/// Whether a field holds a net message.
fn is_buffer(site: Site<'_>) -> bool {
    site.field == "buffer"
        && site.message.name == "PropagateBuffer"
        && site.message.connection == "game"
}

/// Whether a field holds a Plasma message that could not be decoded.
fn is_payload(site: Site<'_>) -> bool {
    site.field == "payload" && site.message.connection == "NetMessage"
}

/// Whether a field holds an object state.
fn is_state(site: Site<'_>) -> bool {
    site.field == "sdl" && site.message.connection == "NetMessage"
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::json;
    use worldwire_core::opener::Subject;
    use worldwire_core::{Limits, Tree};

    use super::*;

    const DESCRIPTORS: &[u8] = include_bytes!("../../../../samples/sdl/Fernhollow.sdl");

    fn message(sdl: &Json) -> Json {
        json!({
            "class": "plNetMsgSDLState",
            "flags": ["NeedsReliableSend"],
            "object": {
                "location": {"sequenceNumber": 7_929_887, "flags": ["BuiltIn"]},
                "classIndex": 1, "objectId": 1, "name": "AgeSDLHook",
            },
            "stream": {"uncompressedLength": 0, "compression": "None", "sdl": sdl},
            "isInitialState": true, "persistOnServer": true, "isAvatarState": false,
        })
    }

    fn encoded(json: &Json, uru: &UruDefinitions) -> Result<Vec<u8>> {
        let message = NetMessage::from_json(Given::closing(json, uru))?;
        let mut writer = Writer::new();
        message.encode(&mut writer)?;
        Ok(writer.into_bytes())
    }

    fn shown<'t>(bytes: &'t [u8], uru: &'t UruDefinitions, limits: &'t Limits) -> Tree<'t> {
        let mut reader = Reader::traced_within("message", bytes, Tree::new(), limits).opening(uru);
        let outcome = NetMessage::decode(&mut reader, MESSAGE).and_then(|_| reader.end());
        reader.conclude(outcome).0
    }

    #[test]
    fn a_buffer_with_the_wrong_class_stays_bytes() {
        use crate::{Codec, CodecOptions, Definitions, Keys};
        let (keys, definitions, limits) = (Keys::none(), Definitions::built_in(), Limits::DEFAULT);
        let (keys, definitions, limits) = (&keys, &definitions, &limits);
        let from = worldwire_core::Side::Client;
        let options = CodecOptions { from, keys, definitions, limits };
        let codec = Codec::named("uru.game").unwrap();
        let buffer = "12000000ad020110068000b9556900000000ce270000";
        for (class, is_opened) in [("ad020000", true), ("ad027f00", false)] {
            let hex = format!("0200{class}{buffer}");
            let bytes = worldwire_core::value::parse_hex(&hex).unwrap();
            let tree = codec.decode(&bytes, &options);
            assert_eq!(tree.error(), None);
            assert_eq!(tree.find("fields.buffer.message").is_some(), is_opened);
            let remarks: Vec<_> = tree.remarks().iter().map(ToString::to_string).collect();
            if is_opened {
                assert_eq!(remarks, [""; 0]);
            } else {
                insta::assert_snapshot!(remarks.join("\n"), @"buffer.message.class at byte 0: wanted class 0x7f02ad, as announced by the PropagateBuffer, found 0x02ad");
            }
            let mut json = String::new();
            codec.write_json(&tree, from, Default::default(), &mut json);
            let json: Json = serde_json::from_str(&json).unwrap();
            assert_eq!(codec.encode(json, &options).unwrap(), bytes);
        }
    }

    #[test]
    fn states_in_net_messages_are_decoded_and_changed() {
        let mut uru = UruDefinitions::default();
        assert_eq!(uru.add([("Fernhollow.sdl", DESCRIPTORS)]), []);
        let gate = json!({"hint": "", "flags": ["Dirty"], "value": true});
        let state = json!({
            "flags": ["AddedVarLengthIO"], "descriptor": "Fernhollow", "version": 2,
            "variables": {"fhGateOpen": gate},
        });
        let bytes = encoded(&message(&json!({"state": state})), &uru).unwrap();
        let limits = Limits::DEFAULT;
        let tree = shown(&bytes, &uru, &limits);
        assert_eq!((tree.error(), tree.remarks()), (None, &[][..]));
        let value = "message.stream.sdl.state.variables.fhGateOpen.value";
        assert!(tree.find(value).is_some());
        let text = worldwire_core::json::write_node;
        let mut written = String::new();
        text(tree.find(MESSAGE).unwrap(), Default::default(), &mut written);
        let mut json: Json = serde_json::from_str(&written).unwrap();
        assert_eq!(encoded(&json, &uru).unwrap(), bytes);

        // A change to the state takes precedence over the bytes beside it.
        json["stream"]["sdl"]["state"]["variables"]["fhGateOpen"]["value"] = false.into();
        let changed = encoded(&json, &uru).unwrap();
        assert_eq!((changed.len(), changed == bytes), (bytes.len(), false));
        // Bytes that never belonged to the state are refused.
        let came = json["stream"]["sdl"]["bytes"].clone();
        for wrong in [json!({"$hex": "00"}), json!("x")] {
            json["stream"]["sdl"]["bytes"] = wrong;
            let error = encoded(&json, &uru).unwrap_err().to_string();
            assert!(error.contains("stream.sdl.bytes"), "{error}");
        }
        json["stream"]["sdl"]["bytes"] = came;
        let request = json!({"bytes": {"$hex": "ad0200000000"}, "message": json});
        let site = Site {
            message: Subject {
                connection: "game",
                number: 2,
                name: "PropagateBuffer",
                sender: None,
            },
            field: "buffer",
        };
        let error = uru.close(site, &request).unwrap_err().to_string();
        assert_eq!(
            error,
            "bytes: wanted a plNetMsgSDLState to match `message`, found a \
             plNetMsgMembersListReq; remove `bytes` or `message`"
        );
        // Without the descriptors, states can neither be encoded nor shown.
        let none = UruDefinitions::default();
        assert!(encoded(&json, &none).is_err());
        assert!(shown(&bytes, &none, &limits).find("message.stream.sdl.state").is_none());
        // A state with an unknown descriptor is shown as bytes and its head, with a remark.
        let mut other = UruDefinitions::default();
        assert_eq!(other.add([("a.sdl", &b"STATEDESC Other { VERSION 1 VAR INT x[1] }"[..])]), []);
        let tree = shown(&bytes, &other, &limits);
        let remark = tree.remarks().first().unwrap().to_string();
        assert!(remark.contains("Fernhollow"), "{remark}");
    }

    /// A damaged state shows its descriptor and version and survives conversion to JSON.
    #[test]
    fn damaged_states_are_named() {
        let mut uru = UruDefinitions::default();
        assert_eq!(uru.add([("Fernhollow.sdl", DESCRIPTORS)]), []);
        let gate = json!({"hint": "", "flags": ["Dirty"], "value": true});
        let state = json!({
            "flags": ["AddedVarLengthIO"], "descriptor": "Fernhollow", "version": 2,
            "variables": {"fhGateOpen": gate},
        });
        let blob = uru.encode(&state).unwrap();
        let hex: String = blob[..blob.len() - 3].iter().map(|byte| format!("{byte:02x}")).collect();
        let bytes = encoded(&message(&json!({"$hex": hex})), &uru).unwrap();
        let limits = Limits::DEFAULT;
        let tree = shown(&bytes, &uru, &limits);
        let head = tree.find("message.stream.sdl.stateHead.version").unwrap();
        assert_eq!(head.unsigned(), Some(2));
        let remarks: Vec<String> = tree.remarks().iter().map(ToString::to_string).collect();
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        assert!(remarks[0].starts_with("state of Fernhollow 2: "), "{remarks:?}");
        let mut text = String::new();
        worldwire_core::json::write_node(
            tree.find(MESSAGE).unwrap(),
            Default::default(),
            &mut text,
        );
        let mut json: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(encoded(&json, &uru).unwrap(), bytes);
        json["stream"]["sdl"]["stateHead"]["version"] = 3.into();
        let error = encoded(&json, &uru).unwrap_err().to_string();
        assert!(error.contains("stateHead: does not match `bytes`"), "{error}");
    }
}
