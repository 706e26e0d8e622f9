//! Checks the vectors for cipher, framing and integrity.

use sha2::{Digest, Sha256};
use std::time::Duration;
use worldwire_core::connection::{Connection as _, Event, Input, Piece as _};
use worldwire_core::json::Json;
use worldwire_core::sha0::sha0;
use worldwire_core::testing::hex;
use worldwire_core::value::parse_hex;
use worldwire_core::{Error, Side};
use worldwire_tera::connection::Connection;
use worldwire_tera::crypt::exchange::{Key, Keys, SessionCiphers, Variant};
use worldwire_tera::crypt::pike::Pike;
use worldwire_tera::frame::Header;
use worldwire_tera::fuzzing::{client_key, expanded_key};
use worldwire_tera::integrity::{Verdict, checksum, header, verify};

pub(crate) type Outcome = Result<(), String>;

fn same<V: PartialEq + core::fmt::Debug>(found: V, wanted: V) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("wanted {wanted:?}, found {found:?}")) }
}

fn number(case: &Json, key: &str) -> Result<u64, String> {
    case.get(key).and_then(Json::as_u64).ok_or_else(|| format!("no {key}"))
}

fn key(case: &Json, name: &str) -> Result<Key, String> {
    hex(case, name)?.try_into().map_err(|_| format!("{name} does not have 128 bytes"))
}

pub(crate) fn cipher(section: &str, case: &Json) -> Outcome {
    match section {
        "hash" => {
            let text = match case.get("ascii").and_then(Json::as_str) {
                Some(text) => text.as_bytes().to_vec(),
                None => hex(case, "hex")?,
            };
            let mut digest = sha0(&text).to_vec();
            same(digest.clone(), hex(case, "digest_be")?)?;
            digest.chunks_exact_mut(4).for_each(<[u8]>::reverse);
            same(digest, hex(case, "digest_words_le")?)
        }
        "key_expansion" => {
            let key = key(case, "key")?;
            same(expanded_key(&key).to_vec(), hex(case, "state")?)?;
            let mut stream = vec![0; 1 << 20];
            Pike::new(&key).apply(&mut stream);
            same(stream[..96].to_vec(), hex(case, "keystream_first_96")?)?;
            let hash = Sha256::digest(&stream).to_vec();
            same(hash, hex(case, "keystream_first_1MiB_sha256")?)
        }
        "sessions" => session(case),
        other => Err(format!("no test for {other}")),
    }
}

fn session(case: &Json) -> Outcome {
    let variant = match case.get("rotations").and_then(Json::as_str) {
        Some("patch >= 45") => Variant::From45,
        Some("patch < 45") => Variant::Before45,
        other => return Err(format!("no rotations {other:?}")),
    };
    let keys = Keys {
        client: [key(case, "client_key_1")?, key(case, "client_key_2")?],
        server: [key(case, "server_key_1")?, key(case, "server_key_2")?],
    };
    same(client_key(&keys, variant).to_vec(), hex(case, "client_stream_key")?)?;
    let session = SessionCiphers::new(&keys, variant);
    let ways = [("client_to_server", session.client), ("server_to_client", session.server)];
    for (name, mut pike) in ways {
        let way = case.get(name).ok_or_else(|| format!("no {name}"))?;
        let mut bytes = hex(way, "plain")?;
        pike.apply(&mut bytes);
        same(bytes, hex(way, "cipher")?)?;
    }
    Ok(())
}

/// Checks the one stream that is encrypted in parts.
pub(crate) fn chunked(case: &Json) -> Outcome {
    let mut pike = Pike::new(&key(case, "key")?);
    for part in case.get("parts").and_then(Json::as_array).ok_or("no parts")? {
        let mut bytes = match part.get("plain") {
            Some(_) => hex(part, "plain")?,
            None => vec![0; usize::try_from(number(part, "length")?).unwrap_or(0)],
        };
        pike.apply(&mut bytes);
        same(bytes, hex(part, "cipher")?)?;
    }
    Ok(())
}

/// Checks the one connection that is complete from its first byte.
pub(crate) fn transcript(case: &Json) -> Outcome {
    let mut observer = Connection::observer(None);
    let mut found = Vec::new();
    for segment in case.get("segments").and_then(Json::as_array).ok_or("no segments")? {
        let side = match segment.get("from").and_then(Json::as_str) {
            Some("client") => Side::Client,
            Some("server") => Side::Server,
            other => return Err(format!("no side {other:?}")),
        };
        let bytes = hex(segment, "bytes")?;
        observer.input(Duration::ZERO, side, Input::Bytes(&bytes));
        while let Some(event) = observer.poll_event() {
            match event {
                Event::Received(received) => {
                    if received.is_message() {
                        found.push((received.side, received.bytes.to_vec()));
                    }
                }
                Event::News(_) => {}
                other => return Err(format!("{other:?}")),
            }
        }
    }
    let wanted = case.get("messages").and_then(Json::as_array).ok_or("no messages")?;
    let side = |message: &Json| match message.get("from").and_then(Json::as_str) {
        Some("client") => Ok(Side::Client),
        Some("server") => Ok(Side::Server),
        other => Err(format!("no side {other:?}")),
    };
    let wanted: Result<Vec<_>, String> =
        wanted.iter().map(|message| Ok((side(message)?, hex(message, "bytes")?))).collect();
    let wanted = wanted?;
    // The file lists messages in the order in which they begin, not in which they end.
    Side::BOTH.into_iter().try_for_each(|side| {
        let of = |list: &[(Side, Vec<u8>)]| -> Vec<Vec<u8>> {
            list.iter().filter(|(by, _)| *by == side).map(|(_, bytes)| bytes.clone()).collect()
        };
        same(of(&found), of(&wanted))
    })
}

pub(crate) fn framing(section: &str, case: &Json) -> Outcome {
    if section == "rules" {
        same(case["expect"]["error"].as_str(), Some("bad_length"))?;
        return match Header::peek(&hex(case, "stream")?) {
            Err(_) => Ok(()),
            Ok(header) => Err(format!("accepted: {header:?}")),
        };
    }
    let list = |key: &str| -> Result<Vec<Vec<u8>>, String> {
        let items = case.get(key).and_then(Json::as_array).ok_or_else(|| format!("no {key}"))?;
        items
            .iter()
            .map(|item| item.as_str().and_then(parse_hex).ok_or_else(|| "no hex".into()))
            .collect()
    };
    let mut buffer = Vec::new();
    let mut found = Vec::new();
    for chunk in list("chunks")? {
        buffer.extend_from_slice(&chunk);
        while let Some(header) = Header::peek(&buffer).map_err(|error: Error| error.to_string())? {
            let length = usize::from(header.length);
            if buffer.len() < length {
                break;
            }
            found.push(buffer.drain(..length).collect::<Vec<u8>>());
        }
    }
    same(found, list("messages")?)
}

pub(crate) fn integrity(case: &Json) -> Outcome {
    let message = hex(case, "message")?;
    let iv = u32::try_from(number(case, "iv")?).map_err(|error| error.to_string())?;
    let (counter, _) = header(&message).ok_or("no header")?;
    same(u64::from(counter), number(case, "count")?)?;
    let valid = case.get("valid").and_then(Json::as_bool);
    same(Some(verify(&message, iv) == Verdict::Right), valid)?;
    let sum = checksum(&message, iv).ok_or("no checksum")?;
    if valid == Some(true) { same(u64::from(sum), number(case, "checksum")?) } else { Ok(()) }
}
