//! Runs every conformance vector of login, margin and the start of the game channel.

use std::collections::BTreeMap;

use worldwire_core::json::{Json, Object, Style, json};
use worldwire_core::testing::{Case, agrees, hex, render, run_vectors};
use worldwire_core::{
    Content, Error, ErrorKind, Field, Reader, Result as Decoded, Side, Tree, Writer,
};
use worldwire_mxo::crypt::{KeyUse, PrivateKey, PublicKey, Random, RsaError, SessionKey, Unopened};
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::frame::{
    Channel, MarginText, Packet, Plain, RpcList, RpcMessage, Section, TcpFrame,
};
use worldwire_mxo::login::{
    AuthClientMessage, AuthProof, AuthSecret, LoginMessage, MarginClientMessage, MarginSecret,
    SignedCertificate,
};
use worldwire_mxo::message::{Context, Section as ObjectSection, Viewed};
use worldwire_mxo::rpc::{ClientRpc, ServerRpc};
use worldwire_mxo::schema::Objects;

type Outcome = Result<(), String>;

#[test]
fn every_case_of_the_login() {
    let keys = Keys::read();
    run_vectors("mxo-login", &["keys"], |case: Case<'_>| match case.file {
        "primitives" => primitive(case.case, &keys),
        "auth" | "margin" => message(case.case, &keys),
        "malformed" => malformed(case.case, &keys),
        "udp" => datagram(case.case),
        other => Err(format!("no test for {other}.json")),
    });
}

/// The test keys of the vectors.
struct Keys(Json);

impl Keys {
    fn read() -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors");
        let folder = std::env::var("WORLDWIRE_VECTORS").unwrap_or_else(|_| folder.into());
        let text = std::fs::read_to_string(format!("{folder}/mxo-login/keys.json")).unwrap();
        Self(serde_json::from_str(&text).unwrap())
    }

    fn of(&self, name: &str) -> PrivateKey {
        let purpose = match name {
            "signing_2048" => KeyUse::Signing,
            "server_1024" => KeyUse::Server,
            _ => KeyUse::User,
        };
        let number = |part| hex(&self.0[name], part).unwrap();
        PrivateKey::from_exponent(purpose, &number("n"), &number("d")).unwrap()
    }
}

fn random() -> Random {
    Random::new([1; 32])
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

fn same<T: PartialEq + core::fmt::Debug>(found: &T, wanted: &T) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("wanted {wanted:02x?}, found {found:02x?}")) }
}

fn array<const N: usize>(case: &Json, key: &str) -> Result<[u8; N], String> {
    hex(case, key)?.try_into().map_err(|_| format!("{key} has another length"))
}

fn session_key(case: &Json) -> Result<SessionKey, String> {
    Ok(SessionKey::new(&array(case, "key")?))
}

fn written(encode: impl FnOnce(&mut Writer) -> Decoded<()>) -> Result<Vec<u8>, String> {
    let mut writer = Writer::new();
    encode(&mut writer).map_err(text)?;
    Ok(writer.into_bytes())
}

fn primitive(case: &Json, keys: &Keys) -> Outcome {
    let name = case["key"].as_str().unwrap_or_default();
    match case["kind"].as_str() {
        Some("twofish_block") => {
            let (plain, cipher) = (array(case, "plain")?, array(case, "cipher")?);
            same(&session_key(case)?.seal_block(&plain), &cipher)?;
            same(&session_key(case)?.open_block(&cipher), &plain)
        }
        Some("twofish_cbc") => {
            let (key, iv) = (session_key(case)?, array(case, "iv")?);
            let (plain, cipher) = (hex(case, "plain")?, hex(case, "cipher")?);
            same(&key.seal_blocks(&iv, &plain), &cipher)?;
            same(&*key.open_blocks(&iv, &cipher).map_err(|why| format!("{why:?}"))?, &plain)
        }
        Some("rsa_oaep_sha1") => {
            let (key, plain) = (keys.of(name), hex(case, "plain")?);
            let opened = key.decrypt(&hex(case, "cipher")?, &mut random()).map_err(text)?;
            same(&*opened, &plain)?;
            let again = key.public().encrypt(&plain, &mut random()).map_err(text)?;
            same(&*key.decrypt(&again, &mut random()).map_err(text)?, &plain)
        }
        Some("rsa_pkcs1_md5") => {
            let (message, signature) = (hex(case, "message")?, hex(case, "signature")?);
            let key = keys.of(name);
            same(&key.sign(&message, &mut random()).map_err(text)?, &signature)?;
            same(&key.public().verifies(&message, &signature), &true)
        }
        Some("pubkey_dat") => public_key_file(&hex(case, "bytes")?, keys),
        Some("tcp_frame") => frames(case),
        other => Err(format!("no test for {other:?}")),
    }
}

fn public_key_file(bytes: &[u8], keys: &Keys) -> Outcome {
    same(&bytes.len(), &396)?;
    let mut reader = Reader::traced("file", bytes, Tree::new());
    let file = PublicKeyFile::decode(&mut reader).map_err(text)?;
    reader.end().map_err(text)?;
    let json = render(&reader.finish(), Style::default());
    same(&PublicKeyFile::from_json(&json).map_err(text)?, &file)?;
    same(&written(|writer| file.encode(writer))?, &bytes.to_vec())?;
    let (signing, server) = (keys.of("signing_2048"), keys.of("server_1024"));
    same(&file.is_signed_by(signing.public()), &true)?;
    same(&file.key().map_err(text)?, server.public())?;
    let made = PublicKeyFile::sign(4, server.public(), &signing, &mut random()).map_err(text)?;
    same(&made, &file)
}

fn frames(case: &Json) -> Outcome {
    let bodies = case["bodies"].as_array().ok_or("no bodies")?;
    let stream = hex(case, "stream")?;
    let mut reader = Reader::new(&stream);
    let mut made = Writer::new();
    for body in bodies {
        let body = hex(&json!({"body": body.clone()}), "body")?;
        let frame = TcpFrame::of(&body);
        frame.encode(&mut made).map_err(text)?;
        same(&TcpFrame::decode(&mut reader).map_err(text)?, &frame)?;
    }
    reader.end().map_err(text)?;
    same(&made.into_bytes(), &stream)
}

fn channel_of(case: &Json) -> Result<(Channel, Side), String> {
    let channel = match case["channel"].as_str() {
        Some("auth") => Channel::Auth,
        Some("margin") => Channel::Margin,
        other => return Err(format!("no channel {other:?}")),
    };
    let from = if case["direction"] == "client" { Side::Client } else { Side::Server };
    Ok((channel, from))
}

/// Decodes a message, compares its fields, and encodes it again, from the value and from JSON.
fn message(case: &Json, keys: &Keys) -> Outcome {
    let (channel, from) = channel_of(case)?;
    let body = hex(case, "body")?;
    let mut reader = Reader::traced("message", &body, Tree::new());
    let message = LoginMessage::decode(&mut reader, channel, from).map_err(text)?;
    let tree = reader.finish();
    let json = render(&tree, Style::default());
    same(&LoginMessage::decode_strictly(&body, channel, from).map_err(text)?, &message)?;
    same(&written(|writer| message.encode(writer))?, &body)?;
    let read = LoginMessage::from_json(&json, channel, from).map_err(text)?;
    same(&written(|writer| read.encode(writer))?, &body)?;
    let decoded = case["decoded"].as_object().ok_or("no decoded")?;
    let wanted = expectation(decoded, case, channel, &body)?;
    let fields = tree.find("fields").or_else(|| tree.find("data"));
    agrees(fields.ok_or("no fields")?, &wanted)?;
    frame(case, &body)?;
    contents(case, &message, keys)
}

/// Checks the bytes on the wire.
fn frame(case: &Json, body: &[u8]) -> Outcome {
    let wire = hex(case, "frame")?;
    let frame = TcpFrame::decode(&mut Reader::new(&wire)).map_err(text)?;
    if case["encrypted"] != true {
        return same(&written(|writer| TcpFrame::of(body).encode(writer))?, &wire);
    }
    let (key, iv) = (session_key(case)?, array(case, "iv")?);
    let time = case["time"].as_u64().and_then(|time| u32::try_from(time).ok()).ok_or("no time")?;
    let sealed = MarginText { time, body: body.into() };
    let made = sealed.seal(&key, &iv).map_err(text)?;
    same(&written(|writer| made.encode(writer))?, &wire)?;
    let opened = key.open(&iv, &frame.body[16..]).map_err(|why| format!("{why:?}"))?;
    same(&MarginText::decode(&mut Reader::new(&opened)).map_err(text)?, &sealed)
}

/// Checks encrypted blobs and signatures.
fn contents(case: &Json, message: &LoginMessage<'_>, keys: &Keys) -> Outcome {
    let plain = case.get("blob_plain").map(|_| hex(case, "blob_plain")).transpose()?;
    match message {
        LoginMessage::AuthClient(AuthClientMessage::AuthRequest(request)) => {
            let server = keys.of("server_1024");
            let secret = AuthSecret::open(&request.blob.0, &server, &mut random()).map_err(text)?;
            let plain = plain.ok_or("no blob_plain")?;
            same(&written(|writer| secret.encode(writer))?, &plain)?;
            let names = [("lead", "reserved"), ("name_offset", "nameOffset")];
            traced::<AuthSecret<'_>>(&plain, &case["blob_decoded"], &names)?;
            let sealed = secret.seal(server.public(), &mut random()).map_err(text)?;
            same(&AuthSecret::open(&sealed, &server, &mut random()).map_err(text)?, &secret)
        }
        LoginMessage::AuthClient(AuthClientMessage::AuthChallengeResponse(response)) => {
            let key = session_key(case)?;
            let proof = AuthProof::open(&response.blob.0, &key).map_err(text)?;
            let plain = plain.ok_or("no blob_plain")?;
            same(&written(|writer| proof.encode(writer))?, &plain)?;
            same(&proof.seal(&key).map_err(text)?, &response.blob.0.to_vec())?;
            let mut wanted = case["blob_decoded"].clone();
            let padding = wanted["padding"].as_u64().ok_or("no padding")?;
            wanted["padding"] = json!("00".repeat(usize::try_from(padding).unwrap()));
            let names = [("lead", "reserved"), ("md5", "digest"), ("soe_password", "soePassword")];
            traced::<AuthProof<'_>>(&plain, &wanted, &names)?;
            // The challenge is that of the case `challenge`.
            let challenge = [
                0xb0, 0x4e, 0xc0, 0xad, 0xe3, 0xd4, 0x9b, 0x4a, 0x07, 0x9f, 0x0e, 0x20, 0x7d, 0x5e,
                0x28, 0x21,
            ];
            let made =
                AuthProof::new(&challenge, proof.password.0.clone(), proof.soe_password.0.clone());
            same(&(made.answers(&challenge), proof.answers(&challenge)), &(true, true))?;
            same(&proof.answers(&[0; 16]), &false)?;
            same(&written(|writer| made.encode(writer))?, &plain)
        }
        LoginMessage::MarginClient(message) => match &**message {
            MarginClientMessage::CertConnectRequest(request) => {
                certificate(case, &request.certificate, keys)
            }
            MarginClientMessage::CreateCharacterRequest(request) => {
                same(&request.text_offsets(), &request.offsets)
            }
            _ => Ok(()),
        },
        LoginMessage::MarginServer(_) if plain.is_some() => {
            let blob = hex(&case["decoded"], "blob")?;
            let user = keys.of("user_768");
            let secret = MarginSecret::open(&blob, &user, &mut random()).map_err(text)?;
            same(&written(|writer| secret.encode(writer))?, &plain.unwrap_or_default())?;
            let sealed = secret.seal(user.public(), &mut random()).map_err(text)?;
            same(&MarginSecret::open(&sealed, &user, &mut random()).map_err(text)?, &secret)
        }
        _ => Ok(()),
    }
}

/// Checks the signature of a certificate: ours, or that of a real client, for which the case has
/// the server's modulus.
fn certificate(case: &Json, signed: &SignedCertificate, keys: &Keys) -> Outcome {
    let server = keys.of("server_1024");
    if case.get("signed_by_modulus").is_some() {
        let modulus = hex(case, "signed_by_modulus")?;
        let other = PublicKey::new(KeyUse::Server, &modulus).map_err(text)?;
        same(&signed.is_signed_by(&other), &true)?;
        return same(&signed.is_signed_by(server.public()), &false);
    }
    same(&signed.is_signed_by(server.public()), &true)?;
    let again = SignedCertificate::sign(signed.certificate.clone(), &server, &mut random());
    same(&again.map_err(text)?, signed)
}

/// Decodes the contents of a blob with a trace and compares them.
fn traced<'d, F: Field<'d>>(bytes: &'d [u8], wanted: &Json, names: &[(&str, &str)]) -> Outcome {
    let mut reader = Reader::traced("blob", bytes, Tree::new());
    F::decode(&mut reader, "blob").map_err(text)?;
    let tree = reader.finish();
    let wanted = wanted.as_object().ok_or("no blob_decoded")?;
    let renamed = wanted.iter().map(|(key, value)| {
        let name = names.iter().find(|(old, _)| *old == key).map(|(_, new)| (*new).to_owned());
        (name.unwrap_or_else(|| camel_case(key)), value.clone())
    });
    agrees(tree.find("blob").ok_or("no blob")?, &object(renamed))
}

fn object(entries: impl IntoIterator<Item = (String, Json)>) -> Json {
    let mut object = Object::new();
    entries.into_iter().for_each(|(key, value)| drop(object.insert(&key, value)));
    Json::Object(object)
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut text = words.next().unwrap_or_default().to_owned();
    for word in words {
        text.push_str(&word[..1].to_uppercase());
        text.push_str(&word[1..]);
    }
    text
}

/// Renames fields to the names of our trees.
fn renamed(json: &Json, names: &[(&str, &str)]) -> Json {
    let entries = json.as_object().into_iter().flatten().map(|(key, value)| {
        let name = names.iter().find(|(old, _)| *old == key).map(|(_, new)| (*new).to_owned());
        (name.unwrap_or_else(|| camel_case(key)), value.clone())
    });
    object(entries)
}

const CERTIFICATE: &[(&str, &str)] = &[
    ("version", "unknown1"),
    ("word", "unknown2"),
    ("zero", "unknown3"),
    ("expiry", "expires"),
    ("pad", "reserved"),
];
const CHARACTER: &[(&str, &str)] = &[("world", "worldId"), ("zero", "reserved")];
const WORLD: &[(&str, &str)] = &[("word", "unknown1"), ("zero", "reserved")];
const BACKGROUND: &[(&str, &str)] = &[
    ("background", "description"),
    ("cash", "information"),
    ("one", "unknown1"),
    ("points", "conquestPoints"),
    ("three", "unknown2"),
    ("list_a", "values"),
    ("list_b", "attributes"),
];

/// The names of a message's fields in our trees, if they differ from those in the vectors.
fn field_names(channel: Channel, opcode: u64) -> &'static [(&'static str, &'static str)] {
    match (channel, opcode) {
        (Channel::Auth, 8) => &[("word", "unknown1")],
        (Channel::Auth, 11) => &[("word1", "unknown1"), ("word2", "unknown2")],
        (_, 6) => &[("nine", "unknown1"), ("md5", "digest"), ("last", "unknown2")],
        (_, 7) => &[("param1", "unknown1"), ("param2", "unknown2")],
        (_, 8) => &[("md5", "digest")],
        (_, 9) => &[("zero", "unknown1"), ("session", "sessionId"), ("words", "unknown2")],
        (_, 12) => &[("unknown9", "unknown1"), ("unknown57", "unknown2")],
        (_, 13) => &[("word", "unknown1"), ("character", "characterId")],
        (_, 15) => &[
            ("character", "characterId"),
            ("zeros", "reserved"),
            ("md5s", "digests"),
            ("text", "chatName"),
        ],
        (_, 16) => &[("character", "characterId"), ("last", "isLast")],
        _ => &[("character", "characterId")],
    }
}

/// What a case expects, with the names and the structure of our trees.
fn expectation(
    decoded: &Object,
    case: &Json,
    channel: Channel,
    body: &[u8],
) -> Result<Json, String> {
    let opcode = decoded.get("op").and_then(Json::as_u64).ok_or("no op")?;
    same(&u64::from(body[0]), &opcode)?;
    let mut fields = decoded.clone();
    fields.remove("op");
    let list = |name: &str, names| {
        let items = decoded.get(name).and_then(Json::as_array).unwrap_or_default();
        Json::from(items.iter().map(|item| renamed(item, names)).collect::<Vec<_>>())
    };
    let certificate = || {
        let certificate = decoded.get("certificate").map(|it| renamed(it, CERTIFICATE));
        let signature = decoded.get("signature").cloned();
        json!({"certificate": certificate.unwrap_or_default(), "signature": signature.unwrap_or_default()})
    };
    let rest = fields.remove("rest").unwrap_or_default();
    match (channel, opcode) {
        (Channel::Auth, 11) if decoded.contains_key("certificate") => {
            let status = fields.remove("status").unwrap_or_default();
            fields.insert("characters", list("characters", CHARACTER));
            fields.insert("worlds", list("worlds", WORLD));
            fields.remove("signature");
            fields.insert("certificate", certificate());
            let success = renamed(&Json::Object(fields), field_names(channel, opcode));
            return Ok(json!({"status": status, "success": success}));
        }
        (Channel::Auth, 11) => drop(fields.insert("reserved", rest)),
        (Channel::Auth, 53) | (Channel::Margin, 20) => return Ok(rest),
        (Channel::Margin, 1) => return Ok(json!({"certificate": certificate()})),
        (Channel::Margin, 16) => {
            if let Some(data) = fields.remove("data") {
                same(&hex(&json!({"data": data}), "data")?, &body[18..].to_vec())?;
            }
            if let Some(background) = case.get("background") {
                let pairs = |name: &str, names: [&str; 2]| {
                    let items = background[name].as_array().unwrap_or_default();
                    let pair = |item: &Json| {
                        object(
                            names
                                .iter()
                                .zip(item.as_array().unwrap_or_default())
                                .map(|(name, value)| ((*name).to_owned(), value.clone())),
                        )
                    };
                    Json::from(items.iter().map(pair).collect::<Vec<_>>())
                };
                let mut wanted = background.clone();
                wanted["list_a"] = pairs("list_a", ["number", "value"]);
                wanted["list_b"] = pairs("list_b", ["attribute", "value"]);
                fields.insert("data", renamed(&wanted, BACKGROUND));
            }
        }
        (Channel::Margin, 17) => {
            let rest = hex(&json!({"rest": rest}), "rest")?;
            let rest: Vec<Json> = rest.into_iter().map(|byte| json!(u64::from(byte))).collect();
            fields.insert("rest", Json::from(rest));
        }
        // The whole message has a layout, so nothing is left.
        _ => same(&rest.as_str().unwrap_or_default(), &"")?,
    }
    Ok(renamed(&Json::Object(fields), field_names(channel, opcode)))
}

/// Checks the start of the game channel.
fn datagram(case: &Json) -> Outcome {
    match case["kind"].as_str() {
        Some("hello") => hello(case),
        Some("answer") => {
            let bytes = hex(case, "datagram")?;
            same(&Plain::decode(&mut Reader::new(&bytes)).map_err(text)?, &Plain::Answer)
        }
        Some("rpc") => rpc(case),
        Some("packet") => packet(case),
        Some("npc_update") => update(case, "npc", "block1"),
        Some("player_state") => update(case, "player", ""),
        other => Err(format!("no test for {other:?}")),
    }
}

fn hello(case: &Json) -> Outcome {
    let (bytes, decoded) = (hex(case, "datagram")?, &case["decoded"]);
    let plain = Plain::decode(&mut Reader::new(&bytes)).map_err(text)?;
    same(&plain.to_bytes().map_err(text)?, &bytes)?;
    let Plain::Hello(hello) = plain else { return Err("not a hello".into()) };
    same(&json!(hello.character_uid), &decoded["character"])?;
    same(&json!(hello.unknown), &decoded["word"])?;
    same(&hello.encrypted_session, &array(decoded, "block")?)?;
    let block = session_key(case)?.open_block(&hello.encrypted_session);
    same(&json!(session_key(case)?.session_id(&hello.encrypted_session)), &decoded["session"])?;
    same(&block[4..].to_vec(), &hex(decoded, "pad")?)
}

fn rpc(case: &Json) -> Outcome {
    let body = hex(case, "body")?;
    let (_, from) =
        channel_of(&json!({"channel": "margin", "direction": case["direction"].clone()}))?;
    let message = RpcMessage::of(&body);
    same(&json!(message.opcode()), &case["opcode"])?;
    let wire = written(|writer| message.encode(writer))?;
    let mut reader = Reader::traced("message", &wire, Tree::new());
    RpcMessage::decode(&mut reader, Some(from)).map_err(text)?;
    let tree = reader.finish();
    let json = render(&tree, Style::default());
    let read = RpcMessage::from_json((&json).into(), Some(from)).map_err(text)?;
    same(&read.body.to_vec(), &body)?;
    let again = match from {
        Side::Client => ClientRpc::decode(&body).map_err(text)?.ok_or("unknown")?.encode(),
        Side::Server => ServerRpc::decode(&body).map_err(text)?.ok_or("unknown")?.encode(),
    };
    same(&again.map_err(text)?.body.to_vec(), &body)?;
    let mut wanted =
        renamed(&case["decoded"], &[("one", "unknown1"), ("character", "characterId")]);
    if let Some(x) = wanted.get("x").cloned() {
        wanted = json!({
            "object": wanted["object"].clone(),
            "position": {"x": x, "y": wanted["y"].clone(), "z": wanted["z"].clone()}
        });
    }
    if wanted["value"] == "" {
        wanted["value"] = Json::Null;
    }
    agrees(tree.find("fields").ok_or("no fields")?, &wanted)
}

/// Checks the flags and RPC messages of a packet, without the words before them.
fn packet(case: &Json) -> Outcome {
    let payload = hex(case, "payload")?;
    let mut counted = Writer::new();
    counted.u16(u16::try_from(payload.len() + 4).unwrap());
    counted.u32(1_248_965_312);
    counted.bytes(&[0; 4]);
    counted.bytes(&payload);
    let bytes = [&crc32fast::hash(counted.as_bytes()).to_le_bytes(), counted.as_bytes()].concat();
    let packet = Packet::decode(&mut Reader::new(&bytes), Some(Side::Client)).map_err(text)?;
    same(&json!(packet.flags.0), &case["decoded"]["flags"])?;
    let [Section::Rpc(lists)] = &packet.sections[..] else { return Err("no RPC lists".into()) };
    let found = lists.iter().flat_map(RpcList::numbered).map(|(number, message)| {
        let body: String = message.body.iter().map(|byte| format!("{byte:02x}")).collect();
        json!([number, body])
    });
    same(&Json::from(found.collect::<Vec<_>>()), &case["decoded"]["rpcs"])?;
    same(&packet.to_bytes().map_err(text)?, &bytes)
}

/// Checks an update's blocks: of view 5, an NPC, or of view 3, another player.
fn update(case: &Json, class: &str, first: &str) -> Outcome {
    let objects = Objects::built_in();
    let (class, _) = objects.class_named(class).ok_or("no class")?;
    let view: u16 = if first.is_empty() { 3 } else { 5 };
    let body = hex(case, "body")?;
    let views = BTreeMap::from([(view, Viewed { class, guess: false })]);
    let context = Context::server(&objects, &views);
    let bytes = [&[3][..], &view.to_le_bytes(), &body, &[0, 0]].concat();
    let mut reader = Reader::traced("section", &bytes, Tree::new());
    let section = ObjectSection::decode(&mut reader, &context).map_err(text)?;
    reader.end().map_err(text)?;
    let tree = reader.finish();
    let json = render(&tree, Style::default());
    same(&ObjectSection::from_json(&json, &context).map_err(text)?, &section)?;
    same(&written(|writer| section.encode(&objects, Side::Server, writer))?, &bytes)?;
    let shown = tree.find("operations[0].update").ok_or("no update")?;
    expect_update(&case["decoded"], shown)
}

/// Compares an update with a case's flat list of fields.
fn expect_update(decoded: &Json, shown: worldwire_core::NodeRef<'_, '_>) -> Outcome {
    for (key, wanted) in decoded.as_object().ok_or("no decoded")? {
        let node = |path: &[&str]| {
            path.iter()
                .try_fold(shown, |node, name| node.child(name))
                .ok_or_else(|| format!("no {key}"))
        };
        match key {
            "mask" | "block1" => agrees(node(&[key])?, wanted)?,
            "properties" => {
                for (name, wanted) in wanted.as_object().ok_or("no properties")? {
                    let property = node(&["properties", name])?;
                    // Without a known type, a property is bytes.
                    let wanted = match (property.content(), wanted.as_u64()) {
                        (Some(Content::Bytes(bytes)), Some(number)) => {
                            let digits = number.to_le_bytes();
                            let digits = digits.get(..bytes.len()).unwrap_or_default();
                            json!(digits.iter().map(|it| format!("{it:02x}")).collect::<String>())
                        }
                        _ => wanted.clone(),
                    };
                    agrees(property, &wanted)?;
                }
            }
            "counter" => agrees(node(&["movement", "script_counter"])?, wanted)?,
            "position" => {
                let parts = wanted.as_array().unwrap_or_default().iter().zip(["x", "y", "z"]);
                for (part, name) in parts {
                    agrees(node(&["movement", "position", name])?, part)?;
                }
            }
            // 40 00 25 and the emote's ID.
            "script" => {
                let id = hex(decoded, "script")?[3..].try_into().map(u32::from_le_bytes);
                let id = json!(id.map_err(|_| "not an emote")?);
                agrees(node(&["movement", "script", "emote", "id"])?, &id)?;
            }
            other => agrees(node(&["movement", other])?, wanted)?,
        }
    }
    Ok(())
}

/// Every malformed input is refused, for the reason that the case names.
fn malformed(case: &Json, keys: &Keys) -> Outcome {
    let (body, wanted) = (hex(case, "body")?, case["error"].as_str().ok_or("no error")?);
    let found = match case["channel"].as_str() {
        Some("rsa") => match keys.of("server_1024").decrypt(&body, &mut random()) {
            Err(RsaError::Undecryptable) => return same(&wanted, &"bad_rsa"),
            other => return Err(format!("{other:?}")),
        },
        Some("margin-sealed") => {
            let iv = array(&json!({"iv": case["body"].as_str().ok_or("no body")?[..32]}), "iv")?;
            match session_key(case)?.open(&iv, &body[16..]) {
                Err(Unopened::NoBlocks { .. }) => "bad_block",
                // Both are one error: a wrong key is more likely than a wrong length or padding.
                Err(Unopened::OtherKey) if wanted == "bad_length" => "bad_length",
                Err(Unopened::Damaged) if wanted == "bad_padding" => "bad_padding",
                Err(Unopened::Damaged) => "bad_crc",
                other => return Err(format!("{other:?}")),
            }
        }
        _ => {
            let (channel, from) = channel_of(case)?;
            let error = LoginMessage::decode_strictly(&body, channel, from);
            let error = error.map_err(|error| (class(&error), error)).err().ok_or("accepted")?;
            // A reader that shows what it can keeps the message as bytes.
            let shown = LoginMessage::decode(&mut Reader::new(&body), channel, from);
            if !matches!(shown, Err(_) | Ok(LoginMessage::Other { .. })) {
                return Err(format!("{shown:?}"));
            }
            match error {
                // Too many characters for the message.
                ("truncated", _) if case["id"] == "reply-many-characters" => "bad_offset",
                (class, error) => {
                    return if class == wanted { Ok(()) } else { Err(format!("{class}: {error}")) };
                }
            }
        }
    };
    same(&found, &wanted)
}

/// The vectors' name for the class of an error.
fn class(error: &Error) -> &'static str {
    let wanted = error.wanted();
    if matches!(error.kind(), ErrorKind::Incomplete { .. }) {
        "truncated"
    } else if wanted == "the end" {
        "trailing"
    } else if wanted.contains("offset") {
        "bad_offset"
    } else if wanted.contains("NUL") {
        "bad_string"
    } else if wanted.contains("310 bytes") {
        "bad_length"
    } else {
        "truncated"
    }
}
