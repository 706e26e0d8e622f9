//! MxO's codecs.

use worldwire_core::json::Given;
use worldwire_core::{Field as _, Messages as _, Reader, Record as _, Result, Side};
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::frame::{
    Channel, Datagram, Packet, RpcMessage, Section as PacketSection, TcpFrame,
};
use worldwire_mxo::login::{
    AuthClientMessage, AuthProof, AuthSecret, AuthServerMessage, LoginMessage, MarginClientMessage,
    MarginSecret, MarginServerMessage,
};
use worldwire_mxo::message::{Fault, MPM_ID, Operation, Section};
use worldwire_mxo::rpc::{ClientRpc, ServerRpc};

use super::definitions::objects;
use super::unread::{unknown_goobj, unread};
use crate::codec::{Codec, CodecOptions, Remark, read, read_opening, to_bytes};
use crate::line::{Blob, Line};

macro_rules! login_codec {
    ($name:literal, $channel:ident, $client:ty, $server:ty, $about:literal) => {
        Codec {
            sided: true,
            tables: || vec![<$client>::INFO, <$server>::INFO],
            ..Codec::new(
                $name,
                $about,
                |data, options, tree| {
                    read($name, data, options, tree, |reader| {
                        LoginMessage::decode(reader, Channel::$channel, options.from).map(drop)
                    })
                },
                |json, options| {
                    let message = LoginMessage::from_json(json, Channel::$channel, options.from)?;
                    to_bytes(|writer| message.encode(writer))
                },
            )
        }
    };
}

/// The codec for the decrypted contents of a blob.
macro_rules! blob_codec {
    ($name:literal, $type:ty, $about:literal) => {
        Codec::new(
            $name,
            $about,
            |data, options, tree| {
                read($name, data, options, tree, |reader| <$type>::decode_fields(reader).map(drop))
            },
            |json, _| to_bytes(|writer| <$type>::from_json(json.into())?.encode(writer)),
        )
    };
}

/// Advice for a section that only the other side sends.
fn other_side(from: Side) -> String {
    format!("--from {} decodes it", from.other())
}

/// Remarks about sections of a packet that are kept as bytes, completely or in part.
fn packet_remarks(data: &[u8], options: &CodecOptions<'_>) -> Vec<Remark> {
    let blob = objects(options.definitions).blob(options.from);
    let sections = blob.sections();
    let mut reader = Reader::new(data);
    let Ok(packet) = sections.packet(&mut reader) else { return Vec::new() };
    let remarks = |(index, section): (usize, &PacketSection<'_>)| {
        let PacketSection::Objects(bytes) = section else {
            let unread = unread(index, section, options.from);
            return unread.map(|why| why.remark(section, options.from)).into_iter().collect();
        };
        let mut remarks =
            match Section::decode_after_id(&mut Reader::new(bytes), &sections.context()) {
                Ok(section) => remarks_of(&section),
                Err(error) if sections.fits_other_side(bytes) => {
                    let error = error.closed().hint(other_side(options.from));
                    vec![Remark::problem(error.to_string())]
                }
                Err(error) => vec![Remark::problem(error.closed().to_string())],
            };
        remarks.iter_mut().for_each(|remark| remark.text.insert_str(0, "objects: "));
        remarks
    };
    packet.sections.iter().enumerate().flat_map(remarks).collect()
}

/// Remarks about undecoded parts of an object section, and about oddities.
fn section_remarks(data: &[u8], options: &CodecOptions<'_>) -> Vec<Remark> {
    let sections = objects(options.definitions).blob(options.from).sections();
    match Section::decode(&mut Reader::new(data), &sections.context()) {
        Ok(section) => remarks_of(&section),
        Err(_) => Vec::new(),
    }
}

fn remarks_of(section: &Section<'_>) -> Vec<Remark> {
    const KEPT: &str = "the rest is kept as bytes";
    let odd = section.oddities().map(|(_, oddity)| Remark::note(oddity.to_string()));
    let open = section.operations.iter().filter_map(|operation| match operation {
        Operation::UnknownCreate(create) => Some(unknown_goobj(create.head.goid)),
        Operation::Undecoded(rest) => Some(match rest.fault {
            Fault::UnknownView => format!("view {} is unknown: {KEPT}", rest.view),
            Fault::ServerOnlyCommand => {
                format!("this is a relevance notice, which only servers exchange: {KEPT}")
            }
            _ => format!("an update of view {} has a block of unknown layout: {KEPT}", rest.view),
        }),
        _ => None,
    });
    odd.chain(open.map(Remark::problem)).collect()
}

/// The codec for a packet, a plain datagram, or a message of a login.
pub(super) fn blob(line: &Line<'_>) -> Result<Option<Blob>> {
    let codec = match line.name.split_once('.') {
        Some(("game", _)) => "mxo.packet",
        Some(("setup", _)) => "mxo.datagram",
        Some(("auth", _)) => "mxo.auth",
        // Without its key, an encrypted message has no fields.
        Some(("margin", name)) if name != "Encrypted" => "mxo.margin",
        _ => return Err(line.no_message()),
    };
    Ok(Some((codec, line.fields.clone())))
}

pub(crate) static CODECS: &[Codec] = &[
    login_codec! {
        "mxo.auth", Auth, AuthClientMessage<'_>, AuthServerMessage<'_>,
        "a message on the auth channel, with its opcode"
    },
    blob_codec! {
        "mxo.auth-proof", AuthProof<'_>,
        "the blob of an AuthChallengeResponse, decrypted"
    },
    blob_codec! { "mxo.auth-secret", AuthSecret<'_>, "the blob of an AuthRequest, decrypted" },
    Codec::new(
        "mxo.datagram",
        "a datagram; encrypted content stays encrypted",
        |data, options, tree| {
            read("mxo.datagram", data, options, tree, |reader| Datagram::decode(reader).map(drop))
        },
        |json, _| to_bytes(|writer| Datagram::from_json(json)?.encode(writer)),
    ),
    login_codec! {
        "mxo.margin", Margin, MarginClientMessage<'_>, MarginServerMessage<'_>,
        "a message on the margin channel, decrypted, with its opcode"
    },
    blob_codec! { "mxo.margin-secret", MarginSecret, "the blob of a CertChallenge, decrypted" },
    Codec {
        sided: true,
        remarks: section_remarks,
        ..Codec::new(
            "mxo.objects",
            "an object section, with its ID, 3",
            |data, options, tree| {
                let sections = objects(options.definitions).blob(options.from).sections();
                read("mxo.objects", data, options, tree, |reader| {
                    let section = Section::decode(reader, &sections.context()).map(drop);
                    section.map_err(|error| match data.split_first() {
                        Some((&MPM_ID, bytes)) if sections.fits_other_side(bytes) => {
                            error.hint(other_side(options.from))
                        }
                        _ => error,
                    })
                })
            },
            |json, options| {
                let sections = objects(options.definitions).blob(options.from).sections();
                let section = Section::from_json(json, &sections.context())?;
                to_bytes(|writer| section.encode(sections.objects, options.from, writer))
            },
        )
    },
    Codec {
        sided: true,
        remarks: packet_remarks,
        ..Codec::new(
            "mxo.packet",
            "a packet on the game channel, decrypted",
            |data, options, tree| {
                let blob = objects(options.definitions).blob(options.from);
                read_opening("mxo.packet", data, options, tree, blob, |reader| {
                    blob.sections().packet(reader).map(drop)
                })
            },
            |json, options| {
                let given = Given::closing(json, objects(options.definitions).blob(options.from));
                Packet::from_json(given, Some(options.from))?.to_bytes()
            },
        )
    },
    Codec::new(
        "mxo.public-key",
        "pubkey.dat, the server's public key in the client's folder",
        |data, options, tree| {
            read("mxo.public-key", data, options, tree, |reader| {
                PublicKeyFile::decode(reader).map(drop)
            })
        },
        |json, _| to_bytes(|writer| PublicKeyFile::from_json(json)?.encode(writer)),
    ),
    Codec {
        sided: true,
        tables: || vec![ClientRpc::INFO, ServerRpc::INFO],
        ..Codec::new(
            "mxo.rpc",
            "an RPC message, with its length",
            |data, options, tree| {
                let from = Some(options.from);
                read("mxo.rpc", data, options, tree, |reader| {
                    RpcMessage::decode(reader, from).map(drop)
                })
            },
            |json, options| {
                to_bytes(|writer| {
                    RpcMessage::from_json(json.into(), Some(options.from))?.encode(writer)
                })
            },
        )
    },
    Codec::new(
        "mxo.tcp-frame",
        "a frame on the auth or margin channel",
        |data, options, tree| {
            read("mxo.tcp-frame", data, options, tree, |reader| TcpFrame::decode(reader).map(drop))
        },
        |json, _| to_bytes(|writer| TcpFrame::from_json(json)?.encode(writer)),
    ),
];
