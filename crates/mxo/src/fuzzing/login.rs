//! Targets for login messages, the contents of their blobs, and files with keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use worldwire_core::json::Style;
use worldwire_core::testing::{Target, decode, encoded};
use worldwire_core::{Field, Limits, Sampler, Side};

use super::wire::made;
use crate::crypt::{KeyUse, PrivateKey, Random};
use crate::file::{PublicKeyFile, format_private_key, parse_private_key};
use crate::frame::Channel;
use crate::login::{AuthProof, AuthSecret, Background, LoginMessage, MarginSecret};

/// All targets in this file.
pub(super) const TARGETS: &[Target] = &[
    Target { name: "mxo_login", run: login, seeds: logins },
    Target { name: "mxo_blob", run: blob, seeds: blobs },
    Target { name: "mxo_public_key", run: public_key, seeds: public_keys },
    Target { name: "mxo_private_key", run: private_key, seeds: private_keys },
];

/// The first byte selects the channel and the sender.
fn login(data: &[u8]) {
    let (first, data) = data.split_first().unwrap_or((&0, data));
    let channel = if first & 1 == 0 { Channel::Auth } else { Channel::Margin };
    let from = if first & 2 == 0 { Side::Client } else { Side::Server };
    super::wire::keeps!(data, |reader| LoginMessage::decode(reader, channel, from), |json| {
        LoginMessage::from_json(json, channel, from)
    });
    // If a peer accepts a message, an observer must show the same message.
    if let Ok(message) = LoginMessage::decode_strictly(data, channel, from) {
        assert_eq!(encoded(|writer| message.encode(writer)).ok().as_deref(), Some(data));
    }
}

/// Decodes the contents of a blob with and without a trace, and encodes them again.
macro_rules! field {
    ($data:expr, $type:ty) => {
        decode(
            $data,
            &Limits::DEFAULT,
            Style::default(),
            |reader| <$type>::decode(reader, "blob"),
            |reader| <$type>::decode(reader, "blob"),
        )
        .encodes_back(
            |value| encoded(|writer| value.encode(writer)),
            |json| {
                let value = <$type as Field<'_>>::from_json((&json["blob"]).into())?;
                encoded(|writer| value.encode(writer))
            },
        )
    };
}

/// The first byte selects the blob.
fn blob(data: &[u8]) {
    let (first, data) = data.split_first().unwrap_or((&0, data));
    match first % 4 {
        0 => drop(field!(data, AuthSecret<'_>)),
        1 => drop(field!(data, AuthProof<'_>)),
        2 => drop(field!(data, MarginSecret)),
        _ => drop(field!(data, Background)),
    }
}

fn public_key(data: &[u8]) {
    super::wire::keeps!(data, |reader| PublicKeyFile::decode(reader), |json| {
        PublicKeyFile::from_json(json)
    });
}

/// A key that can be read can also be used and written.
fn private_key(data: &[u8]) {
    let Ok(key) = parse_private_key(KeyUse::User, data) else { return };
    let mut random = Random::new([3; 32]);
    let blob = key.public().encrypt(b"blob", &mut random).unwrap_or_default();
    assert_eq!(key.decrypt(&blob, &mut random).as_deref().map(Vec::as_slice), Ok(&b"blob"[..]));
    let written = format_private_key(&key).map(|text| text.as_bytes().to_vec()).unwrap_or_default();
    let again = parse_private_key(KeyUse::User, &written).map(|key| key.exponent());
    assert_eq!(again, Ok(key.exponent()));
}

fn logins() -> Vec<Vec<u8>> {
    let make = |sampler: &mut Sampler| {
        let choice = sampler.below(4);
        let channel = if choice & 1 == 0 { Channel::Auth } else { Channel::Margin };
        let from = if choice & 2 == 0 { Side::Client } else { Side::Server };
        let message = LoginMessage::sample(sampler, channel, from);
        let bytes = encoded(|writer| message.encode(writer))?;
        Ok([&[choice.to_le_bytes()[0]], &bytes[..]].concat())
    };
    made(100, make)
}

fn blobs() -> Vec<Vec<u8>> {
    let make = |sampler: &mut Sampler| {
        let choice = sampler.below(4);
        let bytes = encoded(|writer| match choice {
            0 => AuthSecret::sample(sampler).encode(writer),
            1 => AuthProof::sample(sampler).encode(writer),
            2 => MarginSecret::sample(sampler).encode(writer),
            _ => Background::sample(sampler).encode(writer),
        })?;
        Ok([&[choice.to_le_bytes()[0]], &bytes[..]].concat())
    };
    made(24, make)
}

fn public_keys() -> Vec<Vec<u8>> {
    made(4, |sampler| encoded(|writer| PublicKeyFile::sample(sampler).encode(writer)))
}

fn private_keys() -> Vec<Vec<u8>> {
    let Ok(key) = PrivateKey::generate(KeyUse::User, &mut Random::new([4; 32])) else {
        return Vec::new();
    };
    let pem = format_private_key(&key).map(|text| text.as_bytes().to_vec());
    let [modulus, private] = [key.public().modulus(), key.exponent().to_vec()];
    let xml = format!(
        "<RSAKeyValue><Modulus>{}</Modulus><Exponent>EQ==</Exponent><D>{}</D></RSAKeyValue>",
        BASE64.encode(modulus),
        BASE64.encode(private),
    );
    pem.into_iter().chain([xml.into_bytes()]).collect()
}
