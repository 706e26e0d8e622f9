//! Encrypts MxO's three channels with new keys.
//!
//! The margin channel and the world that follows it share a session, so conversations with the same
//! key are given the same new key. Blobs for RSA keys are not encrypted again but replaced like any
//! other bytes, because no key in a capture opens them.

use worldwire_core::{Reader, Writer};
use worldwire_dissect::Time;
use worldwire_mxo::crypt::{BLOCK_BYTES, KeyFile, KnownSession, SessionKey};
use worldwire_mxo::frame::{Hello, MarginText, Plain, TcpFrame};

use super::pseudonyms::Pseudonyms;
use super::seal::{Start, UNKNOWN};

/// One conversation on any channel.
#[derive(Debug)]
pub(super) struct MxoSealer {
    /// The keys that opened it.
    known: Vec<KnownSession>,
    key: SessionKey,
    session: u32,
    stream: u64,
    /// The number of encrypted messages.
    sealed: u64,
}

impl MxoSealer {
    pub(super) fn new(start: &Start<'_>, pseudonyms: &Pseudonyms) -> Self {
        let file = start.secrets.and_then(|text| KeyFile::parse("", text).ok());
        let known = file.map(|file| file.sessions().to_vec()).unwrap_or_default();
        let stream = start.stream.to_le_bytes();
        let seed = known.first().map_or(&stream[..], |session| session.key.as_bytes());
        let key = SessionKey::new(&pseudonyms.array("mxo key", seed));
        let session = match known.first().and_then(|session| session.id) {
            Some(id) => session_number(id, pseudonyms),
            None => u32::from_le_bytes(pseudonyms.array("mxo session", seed)),
        };
        Self { known, key, session, stream: start.stream, sealed: 0 }
    }

    /// The new key as part of a key file. The auth channel has no key.
    pub(super) fn keys(&self) -> Option<String> {
        let id = self.known.first()?.id.map(|_| self.session);
        Some(KeyFile::format_session(&KnownSession { id, key: self.key.clone() }))
    }

    /// A datagram that is not encrypted.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub(super) fn step(
        &self,
        bytes: &[u8],
        pseudonyms: &Pseudonyms,
    ) -> Result<Vec<u8>, &'static str> {
        match Plain::decode(&mut Reader::new(bytes)) {
            Ok(Plain::Hello(hello)) => {
                let mut block: [u8; BLOCK_BYTES] =
                    pseudonyms.array("hello", &hello.encrypted_session);
                let session = self.session_of(&hello, pseudonyms);
                block[..4].copy_from_slice(&session.to_le_bytes());
                let hello = Hello {
                    character_uid: pseudonyms.number(hello.character_uid),
                    unknown: hello.unknown,
                    encrypted_session: self.key.seal_block(&block),
                };
                Plain::Hello(hello).to_bytes().map_err(|_| UNKNOWN)
            }
            Ok(Plain::Answer | Plain::Ping(_)) => Ok(bytes.to_vec()),
            _ => Err(UNKNOWN),
        }
    }

    /// The new ID of the session that a hello names.
    fn session_of(&self, hello: &Hello, pseudonyms: &Pseudonyms) -> u32 {
        let named = |known: &KnownSession| {
            let id = known.key.session_id(&hello.encrypted_session);
            (known.id == Some(id)).then_some(id)
        };
        let id = self.known.iter().find_map(named);
        id.map_or(self.session, |id| session_number(id, pseudonyms))
    }

    /// Encrypts a packet of the game channel.
    pub(super) fn datagram(&mut self, packet: &[u8], pseudonyms: &Pseudonyms) -> Vec<u8> {
        let iv = self.vector(pseudonyms);
        self.key.seal_datagram(&iv, packet)
    }

    /// Frames a message of the auth or margin channel and encrypts it if its name requires that.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub(super) fn frame(
        &mut self,
        name: &str,
        body: &[u8],
        time: Time,
        pseudonyms: &Pseudonyms,
    ) -> Result<Vec<u8>, &'static str> {
        const TOO_LONG: &str = "it is too long for its frame";
        let mut wire = Writer::new();
        if name.starts_with("auth.") || PLAIN.contains(&name) {
            TcpFrame::of(body).encode(&mut wire).map_err(|_| TOO_LONG)?;
            return Ok(wire.into_bytes());
        }
        if self.known.is_empty() {
            return Err("its key is missing");
        }
        let seconds = u64::try_from(time.0).unwrap_or(0) / 1_000_000_000;
        let time = u32::try_from(seconds).unwrap_or(u32::MAX);
        // By these bytes, readers without the key distinguish encrypted messages from plain ones.
        let iv = loop {
            let iv = self.vector(pseudonyms);
            if !matches!(iv, [1 | 2, 3, 0, ..]) {
                break iv;
            }
        };
        let text = MarginText { time, body: body.into() };
        let sealed = text.seal(&self.key, &iv).map_err(|_| TOO_LONG)?;
        sealed.encode(&mut wire).map_err(|_| TOO_LONG)?;
        Ok(wire.into_bytes())
    }

    /// The next initialisation vector. It must be unique, because other conversations can use the
    /// same key.
    fn vector(&mut self, pseudonyms: &Pseudonyms) -> [u8; BLOCK_BYTES] {
        self.sealed += 1;
        let numbers = [self.stream.to_le_bytes(), self.sealed.to_le_bytes()];
        let seed = [self.key.as_bytes().as_slice(), numbers.as_flattened()].concat();
        pseudonyms.array("mxo vector", &seed)
    }
}

/// Whether a conversation is on the auth or margin channel, given the family and the transport.
pub(super) fn is_login(family: &str, is_udp: bool) -> bool {
    family == "mxo" && !is_udp
}

/// The messages of the margin channel that are never encrypted.
const PLAIN: [&str; 2] = ["margin.CertConnectRequest", "margin.CertChallenge"];

/// The new ID of a session. Messages contain it, too.
fn session_number(id: u32, pseudonyms: &Pseudonyms) -> u32 {
    u32::try_from(pseudonyms.number(id.into())).unwrap_or(id)
}
