//! What the fuzz targets of this family call: every way in, with the promises that must hold.

use core::time::Duration;
use std::sync::{Arc, LazyLock};

use worldwire_core::json::{Json, Style, write_children, write_node};
use worldwire_core::testing::Target;
use worldwire_core::text::{TextStyle, write_tree};
use worldwire_core::{Field, Limits, Reader, Result, Sampler, Side, Tree, Value, Writer};

use crate::connect::{ConnectPacket, SetupPacket};
use crate::connection::{ClientConfig, Connection, Encryption, Event, ServerConfig};
use crate::crypt::key::{Modulus, PrivateKey, ServerKind};
use crate::crypt::rc4::Rc4;
use crate::file::keys::{KeyRing, Spelling};
use crate::file::manifest::{FileList, Manifest};
use crate::file::secure::{self, SecureKey};
use crate::frame::{Message, Service, table};
use crate::message::NetAgeInfo;
use crate::types::{
    BitVector, Creatable, Key, Location, SafeString, SafeWString, Str, TermStr, UnifiedTime, Uoid,
    WFix, ZStr,
};
use crate::vault::VaultNode;

/// A message of a service and side: what can be decoded has a tree that says the same, encodes to
/// the same bytes, and survives JSON.
///
/// # Panics
/// When a promise is broken.
pub fn message(service: Service, sender: Side, data: &[u8]) {
    let mut plain = Reader::new(data);
    let decoded = Message::decode(service, sender, &mut plain);
    let mut traced = Reader::traced("input", data, Tree::new());
    let outcome = Message::decode(service, sender, &mut traced);
    assert_eq!(outcome, decoded, "plain and traced decode differ");
    let (tree, _) = traced.conclude(outcome.map(|_| ()));
    let json = show(&tree);
    let Ok(message) = decoded else {
        return;
    };
    let used = &data[..plain.position()];
    assert_eq!(message.to_bytes().as_deref(), Ok(used), "encodes to other bytes");
    let again = Message::from_json(service, sender, &json);
    let again = again.unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(again.to_bytes().as_deref(), Ok(used), "JSON encodes to other bytes");
}

/// Renders a tree in every way and gives its JSON back.
fn show(tree: &Tree<'_>) -> Json {
    let mut text = String::new();
    write_tree(tree, TextStyle { ranges: true, ..TextStyle::default() }, &mut text);
    text.clear();
    write_children(Value::Record, tree.roots(), Style { safe: true }, &mut text);
    match serde_json::from_str(&text) {
        Ok(json) => json,
        Err(error) => panic!("{error}: {text}"),
    }
}

/// A format by itself, with the same promises as a message.
///
/// # Panics
/// When a promise is broken.
pub fn field<'d, F: Field<'d>>(data: &'d [u8]) {
    let mut plain = Reader::new(data);
    let decoded = F::decode(&mut plain, "value");
    let mut traced = Reader::traced("input", data, Tree::new());
    let outcome = F::decode(&mut traced, "value");
    assert_eq!(outcome, decoded, "plain and traced decode differ");
    let (tree, _) = traced.conclude(outcome.map(|_| ()));
    show(&tree);
    let Ok(value) = decoded else {
        return;
    };
    let encode = |value: &F| {
        let mut writer = Writer::new();
        value.encode(&mut writer).map(|()| writer.into_bytes())
    };
    let bytes = encode(&value);
    let mut json = String::new();
    if let Some(root) = tree.roots().next() {
        write_node(root, Style::default(), &mut json);
    }
    let json: Json = match serde_json::from_str(&json) {
        Ok(json) => json,
        Err(error) => panic!("{error}: {json}"),
    };
    let again = F::from_json(&json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(encode(&again), bytes, "JSON encodes to other bytes");
}

/// Bytes received by a server: the first byte chooses service and encryption, then every piece has
/// its length in front.
///
/// # Panics
/// Never; the machine may close, but not break.
pub fn server(data: &[u8]) {
    let Some((choice, pieces)) = data.split_first() else {
        return;
    };
    let mut config = ServerConfig::new(KEYS.clone());
    config.encryption = match choice % 3 {
        0 => Encryption::AllowPlain,
        1 => Encryption::Require,
        _ => Encryption::OpenUruPlain,
    };
    let mut server = Connection::server(Arc::new(config), [7; 7], Duration::ZERO);
    feed(&mut server, Side::Client, pieces);
}

/// Bytes received by a client; the first byte chooses service and encryption.
///
/// # Panics
/// Never; the machine may close, but not break.
pub fn client(data: &[u8]) {
    let Some((choice, pieces)) = data.split_first() else {
        return;
    };
    let service = Service::ALL[usize::from(choice % 4)];
    let key = KEYS.public(ServerKind::Auth).filter(|_| choice & 0x80 != 0).cloned();
    let config = ClientConfig::new(service, key, [3; 64]);
    if let Ok(mut client) = Connection::client(config, Duration::ZERO) {
        feed(&mut client, Side::Server, pieces);
    }
}

fn feed(connection: &mut Connection, side: Side, mut pieces: &[u8]) {
    let mut now = Duration::ZERO;
    while let Some((length, rest)) = pieces.split_first() {
        let (piece, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        pieces = rest;
        now += Duration::from_millis(u64::from(*length));
        connection.receive(side, now, piece);
        drain(connection);
        connection.timeout(now);
        while connection.poll_transmit().is_some() {}
    }
    connection.end(now);
    drain(connection);
    assert!(connection.is_closed());
}

fn drain(connection: &mut Connection) {
    let mut next = [0; 2];
    while let Some(event) = connection.poll_event() {
        if let Event::Received(received) = event {
            let content = received.content();
            assert!(content.is_ok(), "what came out cannot be read: {content:?}");
            let next = &mut next[received.side.index()];
            assert!(received.offset >= *next, "told twice");
            *next = received.range().end;
        }
    }
}

/// Bytes that an observer sees: every operation has a byte (side, data or gap) and a length.
///
/// # Panics
/// Never.
pub fn observer(data: &[u8]) {
    let mut observer = Connection::observer(Arc::new(KEYS.clone()));
    let mut rest = data;
    while let [operation, length, tail @ ..] = rest {
        let side = if operation & 1 == 0 { Side::Client } else { Side::Server };
        if operation & 0x0e == 0x0e {
            observer.gap(side, Duration::ZERO, u64::from(*length) << (operation >> 5));
            rest = tail;
        } else {
            let (piece, tail) = tail.split_at(usize::from(*length).min(tail.len()));
            observer.receive(side, Duration::ZERO, piece);
            rest = tail;
        }
        drain(&mut observer);
    }
    observer.end(Duration::ZERO);
    drain(&mut observer);
}

/// What two ends say after a real key exchange, and whoever watches them with the key: the first
/// byte chooses the service, then every piece has a byte for its side and one for its length in
/// front. The pieces are plain here and encrypted on the way.
///
/// # Panics
/// When the one who watches hears something else than the ends do.
pub fn encrypted(data: &[u8]) {
    let Some((choice, mut rest)) = data.split_first() else {
        return;
    };
    let (service, kind) = match choice % 3 {
        0 => (Service::Gatekeeper, ServerKind::Gatekeeper),
        1 => (Service::Auth, ServerKind::Auth),
        _ => (Service::Game, ServerKind::Game),
    };
    let (random, seed, now) = ([3; 64], [7; 7], Duration::ZERO);
    let public = KEYS.public(kind).cloned();
    let begun = public.as_ref().and_then(|key| key.client_begin(&random).ok());
    let client = Connection::client(ClientConfig::new(service, public, random), now);
    let (Some((_, secret)), Ok(client)) = (begun, client) else {
        return;
    };
    let session = secret.session_key(seed);
    let server = Connection::server(Arc::new(ServerConfig::new(KEYS.clone())), seed, now);
    let mut ends = [client, server];
    let mut observer = Connection::observer(Arc::new(KEYS.clone()));
    let mut heard = Vec::new();
    let mut overheard = Vec::new();
    for side in Side::BOTH {
        while let Some(bytes) = ends[side.index()].poll_transmit() {
            observer.receive(side, now, &bytes);
            hear(&mut observer, &mut Vec::new());
            let other = &mut ends[side.other().index()];
            other.receive(side, now, &bytes);
            hear(other, &mut Vec::new());
        }
    }
    assert!(ends.iter().chain([&observer]).all(Connection::is_established));

    let mut ciphers = [Rc4::new(&session), Rc4::new(&session)];
    let mut good = true;
    while let [operation, length, tail @ ..] = rest {
        let side = if operation & 1 == 0 { Side::Client } else { Side::Server };
        let (piece, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        rest = tail;
        let mut piece = piece.to_vec();
        ciphers[side.index()].apply(&mut piece);
        let end = &mut ends[side.other().index()];
        end.receive(side, now, &piece);
        good &= hear(end, &mut heard);
        observer.receive(side, now, &piece);
        good &= hear(&mut observer, &mut overheard);
        while end.poll_transmit().is_some() {}
        assert_eq!(overheard, heard, "who watches hears something else");
        if !good {
            return;
        }
    }
}

/// A message that was heard: its side, its place in the stream, its bytes.
type Heard = (Side, u64, Vec<u8>);

/// Collects what was received; false when it could not be read.
fn hear(connection: &mut Connection, heard: &mut Vec<Heard>) -> bool {
    let mut good = true;
    while let Some(event) = connection.poll_event() {
        match event {
            Event::Received(received) => {
                let tree = received.tree(Tree::new(), &Limits::DEFAULT);
                assert!(tree.error().is_none(), "what came out cannot be read: {tree:?}");
                heard.push((received.side, received.offset, received.bytes.to_vec()));
            }
            Event::Fault { .. } => good = false,
            _ => {}
        }
    }
    good
}

/// A key file: what can be read is written in every spelling and read again.
///
/// # Panics
/// When a promise is broken.
pub fn key_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let ring = match KeyRing::parse(&text) {
        Ok(ring) => ring,
        Err(errors) => {
            assert!(!errors.to_string().is_empty());
            return;
        }
    };
    let written = ring.format(Spelling::Toml);
    let again = KeyRing::parse(&written);
    assert!(again.is_ok_and(|again| again.format(Spelling::Toml) == written));
}

/// A manifest as text.
///
/// # Panics
/// When what was read does not write and read as the same.
pub fn manifest_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(manifest) = Manifest::parse(&text)
        && let Ok(written) = manifest.format()
    {
        assert_eq!(Manifest::parse(&written).as_ref(), Ok(&manifest));
    }
}

/// An encrypted file: what can be opened seals to the same bytes.
///
/// # Panics
/// When it does not.
pub fn secure_file(data: &[u8]) {
    let key = SecureKey::DIRTSAND_DROID;
    if let Ok(file) = secure::open(data, Some(&key), 1 << 20) {
        let key = match file.magic() {
            secure::Magic::NotTheDroids => key,
            _ => SecureKey::SETTINGS,
        };
        assert_eq!(file.seal(&key).as_deref(), Ok(data));
    }
}

/// Any JSON as the fields of any message: it encodes, or says why not; what encodes decodes.
///
/// # Panics
/// When a promise is broken.
pub fn json(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    let service = Service::ALL[usize::from(choice % 4)];
    let sender = if choice & 4 == 0 { Side::Client } else { Side::Server };
    let Ok(json) = serde_json::from_slice::<Json>(text) else {
        return;
    };
    if let Ok(message) = Message::from_json(service, sender, &json)
        && let Ok(bytes) = message.to_bytes()
    {
        let decoded = Message::decode(service, sender, &mut Reader::new(&bytes));
        let decoded = decoded.unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(decoded.to_bytes().as_deref(), Ok(&*bytes));
    }
}

/// Any JSON as a format by itself; the first byte chooses which. What encodes decodes, to the same
/// bytes.
///
/// # Panics
/// When a promise is broken.
pub fn json_format(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else {
        return;
    };
    let Ok(json) = serde_json::from_slice::<Json>(text) else {
        return;
    };
    if let Some(format) = FORMATS.get(usize::from(*choice)) {
        (format.from_json)(&json);
    }
}

fn from_json<'d, F: Field<'d>>(json: &Json) -> Option<Vec<u8>> {
    let mut writer = Writer::new();
    F::from_json(json).and_then(|value| value.encode(&mut writer)).ok()?;
    Some(writer.into_bytes())
}

/// Decodes and encodes, and gives the JSON along.
fn again<'d, F: Field<'d>>(bytes: &'d [u8]) -> Result<(Vec<u8>, String)> {
    let mut reader = Reader::traced("input", bytes, Tree::new());
    let value = F::decode(&mut reader, "value")?;
    reader.end()?;
    let mut writer = Writer::new();
    value.encode(&mut writer)?;
    let mut json = String::new();
    if let Some(root) = reader.finish().roots().next() {
        write_node(root, Style::default(), &mut json);
    }
    Ok((writer.into_bytes(), json))
}

/// A format by itself.
struct Format {
    /// Checks the promises.
    from_json: fn(&Json),
    seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! formats {
    ($($type:ty;)*) => {
        &[$(Format {
            from_json: |json| {
                let Some(bytes) = from_json::<$type>(json) else {
                    return;
                };
                let again = again::<$type>(&bytes);
                let again = again.unwrap_or_else(|error| panic!("{json}: {error}"));
                assert_eq!(again.0, bytes, "{json}");
            },
            seeds: || {
                let json = |bytes: Vec<u8>| again::<$type>(&bytes).map(|again| again.1);
                let texts = fields::<$type>().into_iter().filter_map(|bytes| json(bytes).ok());
                texts.map(String::into_bytes).collect()
            },
        }),*]
    };
}

/// The formats that can be read from JSON by themselves.
static FORMATS: &[Format] = formats! {
    ConnectPacket;
    SetupPacket<'_>;
    VaultNode<'_>;
    Manifest<'_>;
    FileList<'_>;
    NetAgeInfo<'_>;
    BitVector;
    SafeString<'_>;
    SafeWString<'_>;
    Key<'_>;
    Str<'_, 40>;
    TermStr<'_>;
    ZStr<'_>;
    WFix<'_, 20>;
};

/// Keys that need no search for primes: fixed numbers, good enough to exchange secrets with noise.
static KEYS: LazyLock<KeyRing> = LazyLock::new(|| {
    let mut keys = KeyRing::new();
    let (mut n, mut a) = ([0xc5; 64], [0x36; 64]);
    (n[0], n[63], a[0]) = (0xd1, 0x8b, 0x5f);
    for kind in [ServerKind::Gatekeeper, ServerKind::Auth, ServerKind::Game] {
        if let Ok(n) = Modulus::from_be_bytes(&n)
            && let Ok(key) = PrivateKey::new(kind, n, &a)
        {
            keys.insert_private(key);
        }
    }
    keys
});

/// One of every message, in several made-up forms.
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

fn fields<'d, F: Field<'d>>() -> Vec<Vec<u8>> {
    let encode = |seed| {
        let mut writer = Writer::new();
        F::sample(&mut Sampler::new(seed)).encode(&mut writer).map(|()| writer.into_bytes())
    };
    (0..16).filter_map(|seed| encode(seed).ok()).collect()
}

/// Streams of whole connections, cut into pieces with their length in front.
fn streams(first: &[u8], side: Side, operation: Option<u8>) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for service in Service::ALL {
        let mut stream = Writer::new();
        let _ = ConnectPacket::new(service).encode(&mut stream);
        if side == Side::Server {
            stream = Writer::new();
        }
        if service.is_encrypted() {
            let setup = match side {
                Side::Client => SetupPacket::Connect(Vec::new().into()),
                Side::Server => SetupPacket::Encrypt(None),
            };
            let _ = setup.encode(&mut stream);
        }
        for bytes in messages(service, side) {
            stream.bytes(&bytes);
        }
        let bytes = stream.into_bytes();
        let cut = bytes.get(..3000).unwrap_or(&bytes);
        let mut seed = first.to_vec();
        for piece in cut.chunks(100) {
            seed.extend(operation);
            seed.push(u8::try_from(piece.len()).unwrap_or(0));
            seed.extend_from_slice(piece);
        }
        seeds.push(seed);
    }
    seeds
}

fn keys_seeds() -> Vec<Vec<u8>> {
    let spellings = [
        Spelling::Toml,
        Spelling::TomlPublic,
        Spelling::Dirtsand,
        Spelling::Moulars,
        Spelling::Nagus,
        Spelling::ServerIni,
        Spelling::OpenUru,
    ];
    spellings.map(|spelling| KEYS.format(spelling).as_bytes().to_vec()).to_vec()
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

/// Files that open.
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

macro_rules! field_target {
    ($name:literal, $type:ty) => {
        Target { name: $name, run: |data| field::<$type>(data), seeds: fields::<$type> }
    };
}

/// All targets of this family.
pub static TARGETS: &[Target] = &[
    message_target! { "uru_gatekeeper_client", Gatekeeper, Client },
    message_target! { "uru_gatekeeper_server", Gatekeeper, Server },
    message_target! { "uru_auth_client", Auth, Client },
    message_target! { "uru_auth_server", Auth, Server },
    message_target! { "uru_game_client", Game, Client },
    message_target! { "uru_game_server", Game, Server },
    message_target! { "uru_file_client", File, Client },
    message_target! { "uru_file_server", File, Server },
    field_target! { "uru_connect", ConnectPacket },
    field_target! { "uru_setup", SetupPacket<'_> },
    field_target! { "uru_vault_node", VaultNode<'_> },
    field_target! { "uru_bit_vector", BitVector },
    field_target! { "uru_safe_string", SafeString<'_> },
    field_target! { "uru_safe_wstring", SafeWString<'_> },
    field_target! { "uru_uoid", Uoid<'_> },
    field_target! { "uru_key", Key<'_> },
    field_target! { "uru_location", Location },
    field_target! { "uru_unified_time", UnifiedTime },
    field_target! { "uru_creatable", Creatable },
    field_target! { "uru_age_info", NetAgeInfo<'_> },
    field_target! { "uru_manifest", Manifest<'_> },
    field_target! { "uru_file_list", FileList<'_> },
    Target {
        name: "uru_manifest_text",
        run: manifest_text,
        seeds: || {
            let digest = "0123456789abcdef0123456789abcdef";
            vec![format!("# a\ndat\\a,a.gz,{digest},{digest},1,2,8\n").into_bytes()]
        },
    },
    Target {
        name: "uru_connection_client",
        run: client,
        seeds: || {
            let mut seeds = streams(&[0], Side::Server, None);
            for (choice, seed) in (0..).zip(&mut seeds) {
                seed[0] = choice;
            }
            seeds
        },
    },
    Target {
        name: "uru_connection_server",
        run: server,
        seeds: || streams(&[0], Side::Client, None),
    },
    Target {
        name: "uru_connection_observer",
        run: observer,
        seeds: || {
            let mut seeds = streams(&[], Side::Client, Some(0));
            for (seed, tail) in seeds.iter_mut().zip(streams(&[], Side::Server, Some(1))) {
                seed.extend(tail);
            }
            seeds
        },
    },
    Target {
        name: "uru_connection_encrypted",
        run: encrypted,
        seeds: || {
            let sides = Side::BOTH.map(|side| {
                let operation = if side == Side::Client { 0 } else { 1 };
                (0_u8..).zip([Service::Gatekeeper, Service::Auth, Service::Game]).map(
                    move |(choice, service)| {
                        let mut seed = vec![choice];
                        for piece in messages(service, side).concat().chunks(200) {
                            seed.extend([operation, u8::try_from(piece.len()).unwrap_or(0)]);
                            seed.extend(piece);
                        }
                        seed
                    },
                )
            });
            sides.into_iter().flatten().collect()
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
