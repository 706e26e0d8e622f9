//! Checks for the vectors of string IDs, hashes, frames and the login's secrets.

use worldwire_core::json::{Json, Object, Style, write_children};
use worldwire_core::testing::hex;
use worldwire_core::{Reader, Side, Tree, Value};
use worldwire_ki::control::Control;
use worldwire_ki::crypt::Salt;
use worldwire_ki::crypt::login::{self, Rec1, Secret};
use worldwire_ki::crypto_block::SignedOffer;
use worldwire_ki::frame::{Body, Frame};
use worldwire_ki::message::RawMessage;
use worldwire_ki::schema::Protocols;
use worldwire_ki::{djb2_31, property_hash, string_id};

pub(crate) type Outcome = Result<(), String>;

fn text<'j>(case: &'j Json, key: &str) -> Result<&'j str, String> {
    case.get(key).and_then(Json::as_str).ok_or_else(|| format!("no {key}"))
}

fn number(case: &Json, key: &str) -> Result<i64, String> {
    case.get(key).and_then(Json::as_i64).ok_or_else(|| format!("no {key}"))
}

fn same<V: PartialEq + core::fmt::Debug>(found: V, wanted: V) -> Outcome {
    if found == wanted { Ok(()) } else { Err(format!("wanted {wanted:?}, found {found:?}")) }
}

pub(crate) fn string_ids(case: &Json) -> Outcome {
    let bytes = match case.get("bytes_hex") {
        Some(_) => hex(case, "bytes_hex")?,
        None => text(case, "text")?.as_bytes().to_vec(),
    };
    same(i64::from(string_id(&bytes)), number(case, "id")?)
}

pub(crate) fn property_hashes(section: &str, case: &Json) -> Outcome {
    let hash = match section {
        "djb2_31" => djb2_31(text(case, "text")?.as_bytes()),
        "pirate101_class_hash" => djb2_31(text(case, "name")?.as_bytes()),
        "property" => property_hash(text(case, "type")?.as_bytes(), text(case, "name")?.as_bytes()),
        other => return Err(format!("no test for {other}")),
    };
    same(i64::from(hash), number(case, "hash")?)
}

fn side(case: &Json) -> Result<Side, String> {
    match text(case, "direction")? {
        "c2s" => Ok(Side::Client),
        "s2c" => Ok(Side::Server),
        other => Err(format!("no direction {other}")),
    }
}

pub(crate) fn frames(section: &str, case: &Json) -> Outcome {
    if case.get("generate").is_some() {
        return large(case);
    }
    let bytes = hex(case, "hex")?;
    if section == "invalid" {
        return match (text(case, "name")?, decode(&bytes, None)) {
            // Strict peers refuse it; this decoder keeps the byte.
            ("control_flag_2", Ok(frame)) => {
                same(frame.is_control, 2)?;
                same(frame.to_bytes().map_err(|error| error.to_string())?, bytes.clone())
            }
            (_, Err(_)) => Ok(()),
            (_, Ok(frame)) => Err(format!("accepted: {frame:?}")),
        };
    }
    let from = side(case)?;
    let frame = decode(&bytes, Some(from))?;
    same(frame.to_bytes().map_err(|error| error.to_string())?, bytes.clone())?;
    let protocols = Protocols::built_in();
    let json = shown(&bytes, from, None)?;
    for json in [&json, &shown(&bytes, from, Some(&protocols))?] {
        let again = Frame::from_json(json, &protocols).and_then(|frame| frame.to_bytes());
        same(again.map_err(|error| error.to_string())?, bytes.clone())?;
    }
    match &frame.body {
        Body::Data(messages) => {
            let wanted = case.get("messages").and_then(Json::as_array).ok_or("no messages")?;
            same(messages.len(), wanted.len())?;
            for (message, wanted) in messages.iter().zip(wanted) {
                same(i64::from(message.service), number(wanted, "service")?)?;
                same(i64::from(message.order), number(wanted, "order")?)?;
                let length = wanted.get("payload_len").and_then(Json::as_u64);
                match length {
                    Some(length) => same(message.payload.len() as u64, length)?,
                    None => same(message.payload.to_vec(), hex(wanted, "payload_hex")?)?,
                }
            }
            Ok(())
        }
        Body::Control(control) => fields(control, &json, frame.trailer, case),
    }
}

/// Generates a frame that the file describes but does not contain.
fn large(case: &Json) -> Outcome {
    let rule = case.get("generate").ok_or("no rule")?;
    same(text(rule, "payload_rule")?, "byte i = (i*31+7) & 255")?;
    let small = |key| number(rule, key).map(|n| u8::try_from(n).unwrap_or(0));
    let length = number(rule, "payload_len")?;
    let payload: Vec<u8> = (0..length).map(|i| (i * 31 + 7).to_le_bytes()[0]).collect();
    let message =
        RawMessage { service: small("service")?, order: small("order")?, payload: payload.into() };
    let frame = Frame::message(message);
    let bytes = frame.to_bytes().map_err(|error| error.to_string())?;
    same(bytes.len() as i64, number(case, "total_len")?)?;
    let header = hex(case, "header_hex")?;
    same(bytes.get(..header.len()), Some(&header[..]))?;
    // The checksum of archives: a CRC-32 that starts at 0, without the final inversion.
    let crc = bytes.iter().fold(0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    });
    same(i64::from(crc), number(case, "ki_crc_of_frame")?)?;
    same(decode(&bytes, None)?, frame)
}

fn decode(bytes: &[u8], from: Option<Side>) -> Result<Frame<'_>, String> {
    let mut reader = Reader::new(bytes);
    let frame = Frame::decode(&mut reader, from).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(frame)
}

/// The frame as JSON, with the names of definitions or without.
fn shown(bytes: &[u8], from: Side, protocols: Option<&Protocols>) -> Result<Json, String> {
    let mut reader = Reader::traced("frame", bytes, Tree::new());
    let outcome = match protocols {
        None => Frame::decode(&mut reader, Some(from)),
        Some(protocols) => Frame::decode_named(&mut reader, Some(from), protocols),
    };
    let (tree, outcome) = reader.conclude(outcome.map(drop));
    outcome.map_err(|error| error.to_string())?;
    let total: usize = tree.roots().map(|node| node.raw().len()).sum();
    same(total, bytes.len())?;
    let mut json = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut json);
    serde_json::from_str(&json).map_err(|error| error.to_string())
}

/// The vectors' names and this crate's.
const NAMES: [(&str, &str); 7] = [
    ("session_id", "sessionId"),
    ("time_high", "timeHigh"),
    ("time_low", "timeLow"),
    ("millis", "millis"),
    ("minutes", "minutes"),
    ("uptime_millis", "uptimeMillis"),
    ("reserved", "reserved"),
];

fn fields(control: &Control<'_>, json: &Json, trailer: Option<u8>, case: &Json) -> Outcome {
    let kind = match control {
        Control::SessionOffer(_) => "session_offer",
        Control::SessionAccept(_) => "session_accept",
        Control::KeepAlive(_) => "keep_alive",
        Control::KeepAliveRsp(_) => "keep_alive_rsp",
        Control::Other { .. } => "unknown_control",
    };
    same(kind, text(case, "kind")?)?;
    let wanted = case.get("fields").and_then(Json::as_object).ok_or("no fields")?;
    let found = json.get("fields").ok_or("no fields shown")?;
    let crypto = match control {
        Control::SessionOffer(offer) => offer.crypto.as_ref(),
        Control::SessionAccept(accept) => accept.crypto.as_ref(),
        _ => None,
    };
    for (key, wanted) in wanted {
        match (key, wanted) {
            ("empty", _) => same(found.as_object().map(Object::len), Some(0))?,
            ("crypto", Json::Null) => same(crypto.is_none(), true)?,
            ("crypto", wanted) => {
                let block = crypto.ok_or("no offer")?;
                let block =
                    SignedOffer::decode(&mut Reader::new(&block.0)).map_err(|e| e.to_string())?;
                same(i64::from(block.flags), number(wanted, "flags")?)?;
                same(i64::from(block.key_slot), number(wanted, "key_slot")?)?;
                same(i64::from(block.key_mask), number(wanted, "key_mask")?)?;
                same(i64::from(block.challenge.hash_offset), number(wanted, "hash_offset")?)?;
                same(i64::from(block.challenge.hash_length), number(wanted, "hash_len")?)?;
                same(i64::from(block.echo), number(wanted, "echo")?)?;
                same(block.signature.len() as i64, number(wanted, "signature_len")?)?;
                let shown = found["crypto"]["challenge"]["type"].as_i64();
                same(shown, wanted.get("challenge_type").and_then(Json::as_i64))?;
            }
            ("crypto_hex", _) => {
                let wanted = hex(&Json::Object(wanted_of(case)), "crypto_hex")?;
                same(crypto.map(|block| block.0.to_vec()), Some(wanted))?;
            }
            ("crypto_len", wanted) => {
                same(crypto.map(|block| block.0.len() as u64), wanted.as_u64())?;
            }
            // A typo in the file.
            ("trailter" | "trailer", wanted) => same(Some(trailer.is_some()), wanted.as_bool())?,
            (key, wanted) => {
                let (_, ours) = NAMES
                    .iter()
                    .find(|(theirs, _)| *theirs == key)
                    .ok_or_else(|| format!("no {key}"))?;
                same(found.get(*ours), Some(wanted))?;
            }
        }
    }
    Ok(())
}

fn wanted_of(case: &Json) -> Object {
    case.get("fields").and_then(Json::as_object).cloned().unwrap_or_default()
}

pub(crate) fn login_crypto(section: &str, case: &Json) -> Outcome {
    if section != "cases" {
        return Err(format!("no test for {section}"));
    }
    let salt = salt(case)?;
    same(salt.to_string().as_str(), text(case, "salt")?)?;
    let password = text(case, "password")?;
    let hash = login::password_hash(password);
    same(hash.as_str(), text(case, "password_hash_b64")?)?;
    let ck1 = login::ck1(&hash, salt);
    same(ck1.as_str(), text(case, "ck1")?)?;
    let (key, iv) = login::rec1_key(salt);
    same(key.to_vec(), hex(case, "twofish_key_hex")?)?;
    same(iv.to_vec(), hex(case, "twofish_iv_hex")?)?;
    let sealed = hex(case, "rec1_cipher_hex")?;
    let username = text(case, "username")?;
    same(Rec1::new(username, &hash, salt).seal(salt), sealed.clone())?;
    let opened = Rec1::open(&sealed, salt).map_err(|error| error.to_string())?;
    same(opened.username.as_str(), username)?;
    same(opened.proves(&hash, salt), true)?;
    let mut plain = sealed;
    login::apply_rec1(salt, &mut plain);
    same(plain, text(case, "rec1_plain")?.as_bytes().to_vec())?;
    let ck2 = Secret::new(text(case, "ck2")?);
    let mut sealed = ck2.as_str().as_bytes().to_vec();
    login::apply_rec1(salt, &mut sealed);
    same(sealed, hex(case, "rec1_clientbound_cipher_hex")?)?;
    same(login::pk3(&ck2, salt).as_str(), text(case, "pk3")?)
}

/// This is the only case outside the list.
pub(crate) fn pk3_known(case: &Json) -> Outcome {
    let ck2 = Secret::new(text(case, "ck2")?);
    same(login::pk3(&ck2, salt(case)?).as_str(), text(case, "pk3")?)
}

fn salt(case: &Json) -> Result<Salt, String> {
    let small = |key| number(case, key).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    Ok(Salt {
        session_id: u16::try_from(number(case, "session_id")?).map_err(|e| e.to_string())?,
        seconds: number(case, "time_secs")?,
        millis: small("time_millis")?,
    })
}
