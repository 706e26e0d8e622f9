//! Encrypts streams with new keys: each family's key exchange, and its cipher.

use worldwire_core::Side;
use worldwire_dissect::Time;
use worldwire_ki::crypt::keys::KeyFile as KiKeys;
use worldwire_ki::crypt::stream::{Sealer as KiSealer, StreamKey};
use worldwire_tera::crypt::exchange::{Key, Keys, SessionCiphers, Variant};
use worldwire_uru::crypt::exchange::SessionKey;
use worldwire_uru::crypt::rc4::Rc4;
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};
use worldwire_uru::frame::Service;

use super::mxo::MxoSealer;
use super::pseudonyms::Pseudonyms;

/// One conversation with its new keys.
pub(super) enum Sealer {
    Ki {
        /// The key, if the stream is to be encrypted once a session has been accepted.
        key: Option<StreamKey>,
        /// The ciphers by sender, once a session has been accepted.
        sealers: Option<Box<[KiSealer; 2]>>,
        nonces: u64,
    },
    Mxo(MxoSealer),
    Tera {
        keys: Box<[[Key; 2]; 2]>,
        /// The number of keys that each side has sent.
        sent: [usize; 2],
        ciphers: Option<Box<SessionCiphers>>,
    },
    Uru {
        key: SessionKey,
        seed: [u8; 7],
        service: Service,
        /// The ciphers by sender, once the server has answered with a seed.
        ciphers: Option<[Box<Rc4>; 2]>,
    },
}

/// The facts about a conversation that are needed before it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'s> {
    pub(super) stream: u64,
    pub(super) family: &'s str,
    /// The name of its first message.
    pub(super) first: &'s str,
    /// The keys that decrypted it, as part of a key file.
    pub(super) secrets: Option<&'s str>,
}

/// Why a step of connection setup cannot be written.
pub(super) const UNKNOWN: &str = "an unknown step of connection setup";

impl Sealer {
    /// Begins a conversation.
    ///
    /// # Errors
    /// Why it cannot be written: its beginning is missing, or the family is not supported.
    pub(super) fn new(start: &Start<'_>, pseudonyms: &Pseudonyms) -> Result<Self, &'static str> {
        const LATE: &str = "its beginning is missing";
        let stream = start.stream.to_le_bytes();
        match start.family {
            "ki" => {
                let (key, nonce) =
                    (pseudonyms.array("ki key", &stream), pseudonyms.array("ki nonce", &stream));
                let key = start.secrets.is_some().then_some(StreamKey { key, nonce });
                if start.first != "control.SessionOffer" && key.is_some() {
                    return Err(LATE);
                }
                Ok(Self::Ki { key, sealers: None, nonces: 0 })
            }
            "mxo" => Ok(Self::Mxo(MxoSealer::new(start, pseudonyms))),
            "tera" => {
                if start.first != "handshake.Hello" {
                    return Err(LATE);
                }
                let key = |name: &str| pseudonyms.array(name, &stream);
                let keys = [[key("tera 0"), key("tera 1")], [key("tera 2"), key("tera 3")]];
                Ok(Self::Tera { keys: keys.into(), sent: [0; 2], ciphers: None })
            }
            "uru" => {
                let service = match start.first {
                    "connect.CliToGateKeeper" => Service::Gatekeeper,
                    "connect.CliToAuth" => Service::Auth,
                    "connect.CliToFile" => Service::File,
                    "connect.CliToGame" => Service::Game,
                    _ => return Err(LATE),
                };
                let key = SessionKey::new(pseudonyms.array("uru key", &stream));
                let seed = pseudonyms.array("uru seed", &stream);
                Ok(Self::Uru { key, seed, service, ciphers: None })
            }
            _ => Err("its family is not supported"),
        }
    }

    /// The new keys as part of a key file. TERA's are in the conversation itself.
    pub(super) fn keys(&self) -> Option<String> {
        match self {
            Self::Ki { key, .. } => key.as_ref().map(|key| KiKeys::format_stream(None, key)),
            Self::Mxo(sealer) => sealer.keys(),
            Self::Tera { .. } | Self::Uru { service: Service::File, .. } => None,
            Self::Uru { key, seed, service, .. } => {
                let mut ring = KeyRing::new();
                let key = SessionKey::new(*key.as_bytes());
                ring.insert_session(*service, *seed, key);
                Some(ring.format(KeyFileFormat::Toml).to_string())
            }
        }
    }

    /// The bytes of a step of connection setup, with new keys in place of the old ones.
    ///
    /// # Errors
    /// Why the step cannot be written.
    pub(super) fn step(
        &mut self,
        from: Side,
        name: &str,
        bytes: &[u8],
        pseudonyms: &Pseudonyms,
    ) -> Result<Vec<u8>, &'static str> {
        match self {
            Self::Ki { .. } => control(from, name, bytes, pseudonyms).ok_or(UNKNOWN),
            Self::Mxo(sealer) => sealer.step(bytes, pseudonyms),
            Self::Tera { keys, sent, .. } if name == "handshake.Key" => {
                let count = &mut sent[from.index()];
                let key = keys[from.index()].get(*count).ok_or(UNKNOWN)?;
                *count += 1;
                Ok(key.to_vec())
            }
            // This value is the same on every server.
            Self::Tera { .. } if name == "handshake.Hello" => Ok(bytes.to_vec()),
            Self::Tera { .. } => Err(UNKNOWN),
            Self::Uru { key, seed, ciphers, .. } => match (name, bytes) {
                // The client's number.
                ("setup.Connect", [kind, count, y @ ..]) => {
                    let head = [*kind, *count];
                    Ok([&head[..], &pseudonyms.bytes("uru y", y, y.len())].concat())
                }
                ("setup.Encrypt", [kind, 9, ..]) => {
                    *ciphers = Some([(); 2].map(|()| Box::new(Rc4::new(key))));
                    Ok([&[*kind, 9][..], &seed[..]].concat())
                }
                ("setup.Encrypt" | "setup.Error", _) => Ok(bytes.to_vec()),
                _ => Err(UNKNOWN),
            },
        }
    }

    /// Encrypts the next bytes of a side, or a datagram.
    ///
    /// # Errors
    /// Why they cannot be encrypted.
    pub(super) fn seal(
        &mut self,
        (from, time): (Side, Time),
        name: &str,
        mut bytes: Vec<u8>,
        pseudonyms: &Pseudonyms,
    ) -> Result<Vec<u8>, &'static str> {
        match self {
            Self::Ki { key, sealers, nonces } => {
                if let Some(sealers) = sealers {
                    let mut sealed = Vec::with_capacity(bytes.len() + 32);
                    let nonce = || {
                        *nonces += 1;
                        let seed = [
                            key.map(|key| key.nonce).unwrap_or_default().as_slice(),
                            &nonces.to_le_bytes(),
                        ]
                        .concat();
                        pseudonyms.array("ki nonces", &seed)
                    };
                    sealers[from.index()].seal(&bytes, &mut sealed, nonce);
                    return Ok(sealed);
                }
                if let (Some(key), "control.SessionAccept") = (key, name) {
                    *sealers = Some(Side::BOTH.map(|side| KiSealer::new(key, side)).into());
                }
                Ok(bytes)
            }
            Self::Mxo(_) if name.starts_with("setup.") => Ok(bytes),
            Self::Mxo(sealer) if name.starts_with("game.") => {
                Ok(sealer.datagram(&bytes, pseudonyms))
            }
            Self::Mxo(sealer) => sealer.frame(name, &bytes, time, pseudonyms),
            Self::Tera { keys, sent, ciphers } => {
                if name.starts_with("handshake.") {
                    return Ok(bytes);
                }
                if *sent != [2, 2] {
                    return Err("the keys are missing");
                }
                let ciphers = ciphers.get_or_insert_with(|| {
                    let [client, server] = **keys;
                    Box::new(SessionCiphers::new(&Keys { client, server }, Variant::default()))
                });
                match from {
                    Side::Client => ciphers.client.apply(&mut bytes),
                    Side::Server => ciphers.server.apply(&mut bytes),
                }
                Ok(bytes)
            }
            Self::Uru { ciphers, .. } => {
                let is_message = !name.starts_with("connect.") && !name.starts_with("setup.");
                if let Some(ciphers) = ciphers.as_mut().filter(|_| is_message) {
                    ciphers[from.index()].apply(&mut bytes);
                }
                Ok(bytes)
            }
        }
    }
}

/// A KI control message, without the parts of the handshake that only the peers can read.
fn control(from: Side, name: &str, bytes: &[u8], pseudonyms: &Pseudonyms) -> Option<Vec<u8>> {
    /// The size of the signature in an offer, and of the sealed part of an accept.
    const RSA_BYTES: usize = 256;
    /// The size of the frame header, session, time and block length in an offer.
    const OFFER: usize = 8 + 14 + 4;
    const ACCEPT: usize = 8 + 16 + 4;
    let mut bytes = bytes.to_vec();
    let head = match name {
        "control.SessionOffer" if from == Side::Server => OFFER,
        "control.SessionAccept" if from == Side::Client => ACCEPT,
        "control.KeepAlive" | "control.KeepAliveRsp" => return Some(bytes),
        _ => return None,
    };
    let length = bytes.get(head - 4..head).and_then(|length| length.first_chunk().copied());
    let Some(length) = length.map(u32::from_le_bytes).and_then(|it| usize::try_from(it).ok())
    else {
        // Old peers do not send a block.
        return (bytes.len() < head).then_some(bytes);
    };
    let block = bytes.get_mut(head..head.checked_add(length)?)?;
    match block.len() {
        0 | 1 => {}
        length => {
            let rest = block.get_mut(length.saturating_sub(RSA_BYTES)..)?;
            let new = pseudonyms.bytes("ki handshake", rest, rest.len());
            rest.copy_from_slice(&new);
        }
    }
    Some(bytes)
}
