//! KI's codecs.

use worldwire_core::json::{FieldsOf, Given, Json};
use worldwire_core::{Error, Reader, Result};
use worldwire_ki::frame::{Body, Frame};
use worldwire_ki::message::{Fit, RawMessage};
use worldwire_ki::object::{MAGIC, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::Classes;

use super::definitions::protocols;
#[cfg(feature = "file")]
use super::files;
use super::objects::{object_from_json, objects, unreadable};
use crate::codec::{Codec, CodecOptions, Remark, read, read_opening, to_bytes};
use crate::line::{Blob, Line};

/// The codec for a DML message, or for a frame with a control message.
pub(super) fn blob(line: &Line<'_>) -> Result<Option<Blob>> {
    match line.name.split_once('.') {
        Some(("control", opcode)) => {
            let members = [
                ("isControl", 1.into()),
                ("opcode", opcode.into()),
                ("fields", line.fields.clone()),
            ];
            let trailer = line.members.get("trailer").map(|trailer| ("trailer", trailer.clone()));
            Ok(Some(("ki.frame", members.into_iter().chain(trailer).collect())))
        }
        // Without a definition, the fields are the whole message.
        Some(_) if line.fields.get("payload").is_some() => {
            Ok(Some(("ki.dml", line.fields.clone())))
        }
        Some(("data", "empty")) => Ok(None),
        Some((service, order)) => {
            let members = [
                ("service", service.into()),
                ("order", order.into()),
                ("fields", line.fields.clone()),
            ];
            Ok(Some(("ki.dml", members.into_iter().collect())))
        }
        None => Err(line.no_message()),
    }
}

pub(crate) static CODECS: &[Codec] = &[
    #[cfg(feature = "file")]
    files::BCD,
    Codec {
        remarks: |data, options| {
            let message = RawMessage::decode(&mut Reader::new(data), false).ok();
            message
                .iter()
                .flat_map(|message| oddities(message, options))
                .map(Remark::note)
                .collect()
        },
        ..Codec::new(
            "ki.dml",
            "a DML message with its four-byte header; `ki dml` describes messages",
            |data, options, tree| {
                let opener = objects(options.definitions);
                read_opening("ki.dml", data, options, tree, opener, |reader| {
                    RawMessage::decode_named(reader, false, protocols(options.definitions))
                        .map(drop)
                })
            },
            |json, options| {
                let given = Given::closing(json, objects(options.definitions));
                let message = RawMessage::from_named_json(given, protocols(options.definitions))?;
                to_bytes(|writer| message.encode(writer))
            },
        )
    },
    #[cfg(feature = "file")]
    files::TABLE,
    Codec {
        sided: true,
        remarks: |data, options| {
            let frame = Frame::decode(&mut Reader::new(data), Some(options.from)).ok();
            let messages = frame.iter().flat_map(|frame| match &frame.body {
                Body::Data(messages) => &messages[..],
                Body::Control(_) => &[],
            });
            messages.flat_map(|message| oddities(message, options)).map(Remark::note).collect()
        },
        ..Codec::new(
            "ki.frame",
            "a frame: a control message, or DML messages",
            |data, options, tree| {
                let opener = objects(options.definitions);
                read_opening("ki.frame", data, options, tree, opener, |reader| {
                    Frame::decode_named(reader, Some(options.from), protocols(options.definitions))
                        .map(drop)
                })
            },
            encode_frame,
        )
    },
    #[cfg(feature = "file")]
    files::LANG,
    #[cfg(feature = "file")]
    files::NAV,
    Codec::new(
        "ki.object-property",
        "a game object: a BINd file, or a shallow stream; see also `ki op`",
        |data, options, tree| {
            read("ki.object-property", data, options, tree, |reader| {
                let codec = ObjectCodec::new(classes(options)?, stream(data.starts_with(MAGIC)));
                codec.decode(reader, &mut ()).map(drop)
            })
        },
        encode_object,
    ),
    #[cfg(feature = "file")]
    files::POI,
    #[cfg(feature = "file")]
    files::WAD,
];

/// The user's classes.
fn classes<'o>(options: &CodecOptions<'o>) -> Result<&'o Classes> {
    let classes = objects(options.definitions).classes().map(|classes| &**classes);
    classes.ok_or_else(|| Error::invalid("objects need a type list; supply one with --data"))
}

/// The format of objects in files, and in most messages.
fn stream(is_file: bool) -> ObjectOptions {
    let base = if is_file { ObjectOptions::file() } else { ObjectOptions::default() };
    ObjectOptions { null_root: true, ..base }
}

fn encode_object(json: &Json, options: &CodecOptions<'_>) -> Result<Vec<u8>> {
    let classes = classes(options)?;
    let mut parts = FieldsOf::new(json)?;
    let is_file = parts.take_optional("magic").is_some();
    let codec = ObjectCodec::new(classes, stream(is_file));
    let (object, header) = object_from_json(parts, &codec)?;
    codec.encode(&object, header)
}

/// Remarks about a message: bytes after its last field, or an unreadable object.
fn oddities(message: &RawMessage<'_>, options: &CodecOptions<'_>) -> Vec<String> {
    let protocols = protocols(options.definitions);
    let definition = protocols.message(message.service, message.order);
    let misfit = definition.and_then(|definition| match definition.fit(&message.payload) {
        fit @ Fit::TooLong { .. } => Some(format!("{}: {fit}", protocols.name(definition))),
        // A message that is too short is an error, not a remark.
        Fit::Exact | Fit::TooShort { .. } => None,
    });
    misfit.into_iter().chain(not_an_object(message, options)).collect()
}

/// A remark about a message with an unreadable object.
fn not_an_object(message: &RawMessage<'_>, options: &CodecOptions<'_>) -> Option<String> {
    let RawMessage { service, order, ref payload } = *message;
    unreadable(
        (service, order),
        payload,
        protocols(options.definitions),
        objects(options.definitions),
    )
}

fn encode_frame(json: &Json, options: &CodecOptions<'_>) -> Result<Vec<u8>> {
    let given = Given::closing(json, objects(options.definitions));
    Frame::from_json(given, protocols(options.definitions))?.to_bytes()
}
