//! The codecs of MxO.

use worldwire_core::json::Given;
use worldwire_core::{Messages as _, Result, Writer};
use worldwire_mxo::frame::{Channel, Datagram, Packet, RpcMessage, TcpFrame};
use worldwire_mxo::login::{
    AuthClientMessage, AuthServerMessage, LoginMessage, MarginClientMessage, MarginServerMessage,
};
use worldwire_mxo::message::Section;

use super::objects;
use crate::codec::{Codec, Shape, no_remarks, read, read_opening};
use crate::line::{Blob, Line};

macro_rules! login_codec {
    ($name:literal, $channel:ident, $client:ty, $server:ty, $about:literal) => {
        Codec {
            name: $name,
            about: $about,
            shape: Shape::Fields,
            sided: true,
            decode: |data, options, tree| {
                let from = options.from;
                read($name, data, options, tree, |reader| {
                    LoginMessage::decode(reader, Channel::$channel, from).map(drop)
                })
            },
            encode: |json, options| {
                let mut writer = Writer::new();
                LoginMessage::from_json(json, Channel::$channel, options.from)?
                    .encode(&mut writer)?;
                Ok(writer.into_bytes())
            },
            tables: || vec![<$client>::INFO, <$server>::INFO],
            remarks: no_remarks,
        }
    };
}

/// The codec of a packet, or of a plain datagram.
pub(super) fn blob(line: &Line<'_>) -> Result<Blob> {
    let codec = match line.name.split_once('.') {
        Some(("game", _)) => "mxo.packet",
        Some(("setup", _)) => "mxo.datagram",
        _ => return Err(line.no_message()),
    };
    Ok((codec, line.fields.clone()))
}

/// All of them, by name.
pub(crate) static CODECS: &[Codec] = &[
    login_codec! {
        "mxo.auth", Auth, AuthClientMessage<'_>, AuthServerMessage,
        "a message of the auth channel, with its opcode"
    },
    Codec {
        name: "mxo.datagram",
        about: "a datagram; what is encrypted stays so",
        shape: Shape::Fields,
        sided: false,
        decode: |data, options, tree| {
            read("mxo.datagram", data, options, tree, |reader| Datagram::decode(reader).map(drop))
        },
        encode: |json, _| {
            let mut writer = Writer::new();
            Datagram::from_json(json)?.encode(&mut writer)?;
            Ok(writer.into_bytes())
        },
        tables: Vec::new,
        remarks: no_remarks,
    },
    login_codec! {
        "mxo.margin", Margin, MarginClientMessage, MarginServerMessage<'_>,
        "a message of the margin channel, decrypted, with its opcode"
    },
    Codec {
        name: "mxo.objects",
        about: "an object section, with its id 3",
        shape: Shape::Fields,
        sided: true,
        decode: |data, options, tree| {
            let sections = objects(options.definitions).blob(options.from).sections();
            read("mxo.objects", data, options, tree, |reader| {
                Section::decode(reader, &sections.context()).map(drop)
            })
        },
        encode: |json, options| {
            let sections = objects(options.definitions).blob(options.from).sections();
            let section = Section::from_json(json, &sections.context())?;
            let mut writer = Writer::new();
            section.encode(sections.objects, options.from, &mut writer)?;
            Ok(writer.into_bytes())
        },
        tables: Vec::new,
        remarks: no_remarks,
    },
    Codec {
        name: "mxo.packet",
        about: "a packet of the game channel, decrypted",
        shape: Shape::Fields,
        sided: true,
        decode: |data, options, tree| {
            let blob = objects(options.definitions).blob(options.from);
            read_opening("mxo.packet", data, options, tree, blob, |reader| {
                let mut measure = |bytes: &[u8]| Ok(blob.sections().measure(bytes));
                Packet::decode_measured(reader, Some(options.from), &mut measure).map(drop)
            })
        },
        encode: |json, options| {
            let given = Given::closing(json, objects(options.definitions).blob(options.from));
            Packet::from_json(given, Some(options.from))?.to_bytes()
        },
        tables: Vec::new,
        remarks: no_remarks,
    },
    Codec {
        name: "mxo.rpc",
        about: "an RPC message, with its length",
        shape: Shape::Fields,
        sided: true,
        decode: |data, options, tree| {
            let from = Some(options.from);
            read("mxo.rpc", data, options, tree, |reader| {
                RpcMessage::decode(reader, from).map(drop)
            })
        },
        encode: |json, options| {
            let mut writer = Writer::new();
            RpcMessage::from_json(json.into(), Some(options.from))?.encode(&mut writer)?;
            Ok(writer.into_bytes())
        },
        tables: Vec::new,
        remarks: no_remarks,
    },
    Codec {
        name: "mxo.tcp-frame",
        about: "a frame of the auth or margin channel",
        shape: Shape::Fields,
        sided: false,
        decode: |data, options, tree| {
            read("mxo.tcp-frame", data, options, tree, |reader| TcpFrame::decode(reader).map(drop))
        },
        encode: |json, _| {
            let mut writer = Writer::new();
            TcpFrame::from_json(json)?.encode(&mut writer)?;
            Ok(writer.into_bytes())
        },
        tables: Vec::new,
        remarks: no_remarks,
    },
];
