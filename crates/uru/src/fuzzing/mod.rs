//! Fuzz targets: every kind of input, with the invariants that must hold.

mod age;
mod connection;
mod game;
mod games;
mod sdl;

use std::sync::{Arc, LazyLock};

use worldwire_core::json::{Json, Style, write_children, write_node};
use worldwire_core::testing::{Target, decode, encoded, sample_file};
use worldwire_core::{Field, Limits, Reader, Result, Sampler, Side, Tree, Value};

use crate::connect::{ConnectPacket, SetupPacket};
use crate::file::keys::{KeyFileFormat, KeyRing};
use crate::file::manifest::{FileList, Manifest};
use crate::file::secure::{self, SecureKey};
use crate::frame::{Message, Service, table};
use crate::message::NetAgeInfo;
use crate::net_message::{NetMessage, SharedState};
use crate::plasma_message::{AgeLink, AvatarObject, NotifyEvent, PlasmaMessage};
use crate::schema::Descriptors;
use crate::types::{
    BitVector, ClientGuid, Creatable, GenericType, Key, Location, SafeString, SafeWString, Str,
    TermStr, UnifiedTime, Uoid, WFix, ZStr,
};
use crate::vault::VaultNode;

/// All fuzz targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    let states = sdl::TARGETS.iter().chain(age::TARGETS);
    let connections = connection::TARGETS.iter().chain(connection::ENCRYPTED);
    TARGETS
        .iter()
        .chain(FIELDS)
        .chain(game::TARGETS)
        .chain(games::TARGETS)
        .chain(states)
        .chain(connections)
}

/// The project's SDL files and their descriptors.
static TEXTS: LazyLock<[String; 2]> = LazyLock::new(|| {
    ["sdl/Fernhollow.sdl", "sdl/things.sdl"]
        .map(|name| String::from_utf8_lossy(&sample_file(name)).into_owned())
});
static DESCRIPTORS: LazyLock<Arc<Descriptors>> = LazyLock::new(|| {
    Arc::new(Descriptors::load(["Fernhollow.sdl", "things.sdl"].into_iter().zip(&*TEXTS)))
});

/// A message of a service and side. Decoded messages must encode to the same bytes, directly and
/// from their JSON.
fn message(service: Service, sender: Side, data: &[u8]) {
    let plain = |reader: &mut _| Message::decode(service, sender, reader);
    let traced = |reader: &mut _| Message::decode(service, sender, reader);
    decode(data, &Limits::DEFAULT, Style { safe: true }, plain, traced).encodes_back(
        |message| message.to_bytes(),
        |json| Message::from_json(service, sender, json)?.to_bytes(),
    );
}

/// A stand-alone format. Decoded values must encode to the same bytes directly and from their JSON.
fn field<'d, F: Field<'d>>(data: &'d [u8]) {
    let plain = |reader: &mut _| F::decode(reader, "value");
    let traced = |reader: &mut _| F::decode(reader, "value");
    let decoded = decode(data, &Limits::DEFAULT, Style { safe: true }, plain, traced);
    assert_eq!(decoded.value, decoded.traced, "a trace changed the value");
    let Ok(value) = decoded.value else { return };
    let json = root_json(&decoded.tree);
    let again = serde_json::from_str::<Json>(&json).expect("valid JSON");
    let again = F::from_json((&again).into()).unwrap_or_else(|error| panic!("{json}: {error}"));
    let [bytes, again] = [value, again].map(|value| encoded(|writer| value.encode(writer)));
    assert_eq!(again, bytes, "JSON encodes to different bytes");
}

/// The JSON of a tree's first root.
fn root_json(tree: &Tree<'_>) -> String {
    let mut json = String::new();
    if let Some(root) = tree.roots().next() {
        write_node(root, Style::default(), &mut json);
    }
    json
}

/// A key file: its keys must survive being written in every format.
fn key_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let ring = match KeyRing::parse(&text) {
        Ok(ring) => ring,
        Err(errors) => {
            assert!(!errors.to_string().is_empty());
            return;
        }
    };
    let written = ring.format(KeyFileFormat::Toml);
    let again = KeyRing::parse(&written);
    assert!(again.is_ok_and(|again| again.format(KeyFileFormat::Toml) == written));
}

/// A manifest file.
///
/// # Panics
/// Panics if formatting a parsed manifest yields text that does not parse to the same manifest.
fn manifest_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(manifest) = Manifest::parse(&text)
        && let Ok(written) = manifest.format()
    {
        assert_eq!(Manifest::parse(&written).as_ref(), Ok(&manifest));
    }
}

/// An encrypted file: a decrypted file must encrypt to the same bytes.
fn secure_file(data: &[u8]) {
    let key = SecureKey::DIRTSAND_DROID;
    if let Ok(file) = secure::open(data, Some(&key), 1 << 20) {
        let key = match file.magic() {
            secure::Magic::NotTheDroids => key,
            _ => SecureKey::SETTINGS,
        };
        assert_eq!(file.seal(&key).as_deref(), Ok(data));
    }
}

/// Arbitrary JSON as the fields of any message: it either encodes or fails with an error, and
/// encoded messages decode.
fn json(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let service = Service::ALL[usize::from(choice % 4)];
    let sender = if choice & 4 == 0 { Side::Client } else { Side::Server };
    let Ok(json) = serde_json::from_slice::<Json>(text) else { return };
    if let Ok(message) = Message::from_json(service, sender, &json)
        && let Ok(bytes) = message.to_bytes()
    {
        let decoded = Message::decode(service, sender, &mut Reader::new(&bytes));
        let decoded = decoded.unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(decoded.to_bytes().as_deref(), Ok(&*bytes));
    }
}

/// Arbitrary JSON as a stand-alone format selected by the first byte. Encoded values must decode
/// and encode to the same bytes again.
fn json_format(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let Ok(json) = serde_json::from_slice::<Json>(text) else { return };
    if let Some(format) = FORMATS.get(usize::from(*choice)) {
        (format.from_json)(&json);
    }
}

fn from_json<'d, F: Field<'d>>(json: &Json) -> Option<Vec<u8>> {
    let value = F::from_json(json.into()).ok()?;
    encoded(|writer| value.encode(writer)).ok()
}

/// Decodes and encodes bytes; also returns the JSON.
fn again<'d, F: Field<'d>>(bytes: &'d [u8]) -> Result<(Vec<u8>, String)> {
    let mut reader = Reader::traced("input", bytes, Tree::new());
    let value = F::decode(&mut reader, "value")?;
    reader.end()?;
    Ok((encoded(|writer| value.encode(writer))?, root_json(&reader.finish())))
}

/// A stand-alone format that can be read from JSON.
struct Format {
    /// Checks the invariants.
    from_json: fn(&Json),
    seeds: fn() -> Vec<Vec<u8>>,
}

/// Declares the stand-alone formats: for each, a target for its bytes and the number of seeds, and
/// for all of them a list for their JSON.
macro_rules! formats {
    ($($name:literal $type:ty, $samples:literal;)*) => {
        static FIELDS: &[Target] = &[$(Target {
            name: $name,
            run: |data| field::<$type>(data),
            seeds: || samples::<$type>($samples),
        }),*];
        static FORMATS: &[Format] = &[$(Format {
            from_json: |json| {
                let Some(bytes) = from_json::<$type>(json) else { return };
                let again = again::<$type>(&bytes);
                let again = again.unwrap_or_else(|error| panic!("{json}: {error}"));
                assert_eq!(again.0, bytes, "{json}");
            },
            seeds: || {
                let json = |bytes: Vec<u8>| again::<$type>(&bytes).map(|again| again.1);
                let texts = samples::<$type>(16).into_iter().filter_map(|bytes| json(bytes).ok());
                texts.map(String::into_bytes).collect()
            },
        }),*];
    };
}

formats! {
    "uru_connect" ConnectPacket, 16;
    "uru_setup" SetupPacket<'_>, 16;
    "uru_vault_node" VaultNode<'_>, 16;
    "uru_bit_vector" BitVector, 16;
    "uru_safe_string" SafeString<'_>, 16;
    "uru_safe_wstring" SafeWString<'_>, 16;
    "uru_uoid" Uoid<'_>, 16;
    "uru_key" Key<'_>, 16;
    "uru_location" Location, 16;
    "uru_unified_time" UnifiedTime, 16;
    "uru_creatable" Creatable, 16;
    "uru_age_info" NetAgeInfo<'_>, 16;
    "uru_manifest" Manifest<'_>, 16;
    "uru_file_list" FileList<'_>, 16;
    "uru_plasma_message" PlasmaMessage<'_>, 400;
    "uru_avatar_object" AvatarObject<'_>, 60;
    "uru_notify_event" NotifyEvent<'_>, 60;
    "uru_age_link" AgeLink<'_>, 30;
    "uru_shared_state" SharedState<'_>, 30;
    "uru_client_guid" ClientGuid<'_>, 30;
    "uru_generic_type" GenericType<'_>, 40;
    "uru_net_wstring" SafeWString<'_, 12>, 16;
    "uru_net_message" NetMessage<'_>, 400;
    "uru_str" Str<'_, 40>, 16;
    "uru_term_str" TermStr<'_>, 16;
    "uru_zero_str" ZStr<'_>, 16;
    "uru_fixed_str" WFix<'_, 20>, 16;
}

/// Every message, in several generated variants.
fn messages(service: Service, sender: Side) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for info in table(service, sender).messages {
        for seed in 0..3 {
            let mut sampler = Sampler::new(seed * 1000 + u64::from(info.number));
            let message = Message::sample(service, sender, info.number, &mut sampler);
            seeds.extend(message.and_then(|message| message.to_bytes().ok()));
        }
    }
    seeds
}

fn samples<'d, F: Field<'d>>(count: u64) -> Vec<Vec<u8>> {
    let sample = |seed| {
        let value = F::sample(&mut Sampler::new(seed));
        encoded(|writer| value.encode(writer)).ok()
    };
    (0..count).filter_map(sample).collect()
}

fn keys_seeds() -> Vec<Vec<u8>> {
    let spellings = [
        KeyFileFormat::Toml,
        KeyFileFormat::TomlPublic,
        KeyFileFormat::Dirtsand,
        KeyFileFormat::Moulars,
        KeyFileFormat::Nagus,
        KeyFileFormat::ServerIni,
        KeyFileFormat::OpenUru,
    ];
    spellings.map(|spelling| connection::KEYS.format(spelling).as_bytes().to_vec()).to_vec()
}

fn json_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (index, service) in (0_u8..).zip(Service::ALL) {
        for (side, flag) in [(Side::Client, 0), (Side::Server, 4)] {
            for bytes in messages(service, side) {
                let mut reader = Reader::traced("seed", &bytes, Tree::new());
                let _ = Message::decode(service, side, &mut reader);
                let mut text = String::new();
                let tree = reader.finish();
                write_children(Value::Record, tree.roots(), Style::default(), &mut text);
                seeds.push([&[index | flag][..], text.as_bytes()].concat());
            }
        }
    }
    seeds
}

/// Files that can be decrypted.
fn secure_seeds() -> Vec<Vec<u8>> {
    let plain = b"STATEDESC Garden { VERSION 1 }".to_vec();
    let key = SecureKey::DIRTSAND_DROID;
    let magics = [
        (secure::Magic::NotTheDroids, &key),
        (secure::Magic::WhatDoYouSee, &SecureKey::SETTINGS),
        (secure::Magic::BriceIsSmart, &SecureKey::SETTINGS),
    ];
    let seal = |(magic, key): (secure::Magic, &SecureKey)| {
        secure::SecureFile::new(magic, plain.clone()).seal(key).ok()
    };
    magics.into_iter().filter_map(seal).collect()
}

macro_rules! message_target {
    ($name:literal, $service:ident, $side:ident) => {
        Target {
            name: $name,
            run: |data| message(Service::$service, Side::$side, data),
            seeds: || messages(Service::$service, Side::$side),
        }
    };
}

static TARGETS: &[Target] = &[
    message_target! { "uru_gatekeeper_client", Gatekeeper, Client },
    message_target! { "uru_gatekeeper_server", Gatekeeper, Server },
    message_target! { "uru_auth_client", Auth, Client },
    message_target! { "uru_auth_server", Auth, Server },
    message_target! { "uru_game_client", Game, Client },
    message_target! { "uru_game_server", Game, Server },
    message_target! { "uru_file_client", File, Client },
    message_target! { "uru_file_server", File, Server },
    Target {
        name: "uru_manifest_text",
        run: manifest_text,
        seeds: || {
            let digest = "0123456789abcdef0123456789abcdef";
            vec![format!("# a\ndat\\a,a.gz,{digest},{digest},1,2,8\n").into_bytes()]
        },
    },
    Target { name: "uru_key_file", run: key_file, seeds: keys_seeds },
    Target { name: "uru_secure_file", run: secure_file, seeds: secure_seeds },
    Target { name: "uru_json", run: json, seeds: json_seeds },
    Target {
        name: "uru_json_format",
        run: json_format,
        seeds: || {
            let seeds = (0..).zip(FORMATS).map(|(choice, format)| {
                (format.seeds)().into_iter().map(move |seed| [&[choice][..], &seed].concat())
            });
            seeds.flatten().collect()
        },
    },
];
