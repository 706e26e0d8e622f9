//! Runs every conformance vector for logins, the margin channel and the start of the game channel.

mod expected;
mod game_channel;

use worldwire_core::json::{Json, Style, json};
use worldwire_core::testing::{Case, agrees, hex, render, run_vectors};
use worldwire_core::{Error, ErrorKind, Field, Reader, Result as Decoded, Side, Tree, Writer};
use worldwire_mxo::crypt::{KeyUse, PrivateKey, PublicKey, Random, RsaError, SessionKey, Unopened};
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::frame::{Channel, MarginText, TcpFrame};
use worldwire_mxo::login::{
    AuthClientMessage, AuthProof, AuthSecret, LoginMessage, MarginClientMessage, MarginSecret,
    SignedCertificate,
};

use expected::{expectation, renamed};
use game_channel::datagram;

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

/// Checks the signature of a certificate: one of ours, or a real client's, for which the case
/// contains the server's modulus.
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
    wanted.as_object().ok_or("no blob_decoded")?;
    agrees(tree.find("blob").ok_or("no blob")?, &renamed(wanted, names))
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
                // Both are reported as a wrong key, which is more likely than a wrong length or
                // padding.
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
            // A lenient reader keeps the message as bytes.
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

/// The name that the vectors use for an error's class.
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
