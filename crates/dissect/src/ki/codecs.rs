//! The codecs of KI.

use worldwire_core::json::Json;
use worldwire_core::{Result, Writer};
use worldwire_ki::file::table::TableFile;
use worldwire_ki::file::wad::ArchiveFile;
use worldwire_ki::frame::Frame;
use worldwire_ki::message::{NoHook, RawMessage};

use crate::codec::{Codec, CodecOptions, Shape, read};

/// All of them, by name.
pub(crate) static CODECS: &[Codec] = &[
    Codec {
        name: "ki.dml",
        about: "a DML message with its header of four bytes",
        shape: Shape::Fields,
        sided: false,
        decode: |data, options, tree| {
            read("ki.dml", data, options, tree, |reader| {
                let protocols = &options.definitions.ki;
                RawMessage::decode_named(reader, false, protocols, &mut NoHook).map(drop)
            })
        },
        encode: |json, options| {
            let mut writer = Writer::new();
            RawMessage::from_named_json(json, &options.definitions.ki)?.encode(&mut writer)?;
            Ok(writer.into_bytes())
        },
        tables: Vec::new,
    },
    Codec {
        name: "ki.dml-table",
        about: "DML tables, such as LatestFileList.bin",
        shape: Shape::Fields,
        sided: false,
        decode: |data, options, tree| {
            read("ki.dml-table", data, options, tree, |reader| TableFile::decode(reader).map(drop))
        },
        encode: |json, _| TableFile::from_json(json)?.to_bytes(),
        tables: Vec::new,
    },
    Codec {
        name: "ki.frame",
        about: "a frame: a control message, or DML messages",
        shape: Shape::Fields,
        sided: true,
        decode: |data, options, tree| {
            read("ki.frame", data, options, tree, |reader| {
                let protocols = &options.definitions.ki;
                Frame::decode_named(reader, Some(options.from), protocols, &mut NoHook).map(drop)
            })
        },
        encode: |json, options| encode_frame(json, options),
        tables: Vec::new,
    },
    Codec {
        name: "ki.wad",
        about: "a KIWAD archive: its table, and the data as bytes",
        shape: Shape::Fields,
        sided: false,
        decode: |data, options, tree| {
            read("ki.wad", data, options, tree, |reader| ArchiveFile::decode(reader).map(drop))
        },
        encode: |json, _| ArchiveFile::from_json(json)?.to_bytes(),
        tables: Vec::new,
    },
];

fn encode_frame(json: &Json, options: &CodecOptions<'_>) -> Result<Vec<u8>> {
    Frame::from_json(json, &options.definitions.ki)?.to_bytes()
}
