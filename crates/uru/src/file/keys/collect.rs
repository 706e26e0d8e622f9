//! Collects the numbers of a key file, then builds keys from them.

use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, Engine as _};
use base64::{DecodeError, alphabet};
use ctutils::CtEq;
use zeroize::Zeroizing;

use crate::crypt::exchange::SessionKey;
use crate::crypt::key::{KEY_BYTES, KeyError, Modulus, PrivateKey, PublicKey, ServerKind};
use crate::file::secure::SecureKey;
use crate::frame::Service;

use super::error::{KeyFault, KeyFileError, KeyFileErrors};
use super::{KeyRing, Seed, slot};

/// Which number of a key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPart {
    /// The modulus.
    N,
    /// The server's secret.
    A,
    /// The public value.
    X,
}

impl KeyPart {
    /// The part that a letter stands for, in any format and case.
    pub(super) fn from_letter(letter: &str) -> Option<Self> {
        Some(match letter {
            "n" | "N" => Self::N,
            "a" | "A" | "k" | "K" => Self::A,
            "x" | "X" => Self::X,
            _ => return None,
        })
    }
}

/// A position in the file.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) key: String,
}

/// The numbers and errors found in a file so far.
#[derive(Default)]
pub(super) struct Collector {
    servers: [Numbers; ServerKind::ALL.len()],
    droid: Number<SecureKey>,
    sessions: Vec<(Service, Seed, SessionKey)>,
    errors: Vec<KeyFileError>,
}

type Bytes = Zeroizing<[u8; KEY_BYTES]>;

/// The three numbers of one server.
#[derive(Default)]
struct Numbers {
    n: Number<Bytes>,
    a: Number<Bytes>,
    x: Number<Bytes>,
}

/// One number. A malformed one is recorded so that it is not reported as missing as well.
#[derive(Default)]
enum Number<T> {
    #[default]
    Absent,
    Broken(Location),
    Present(Location, T),
}

impl<T> Number<T> {
    fn location(&self) -> Option<&Location> {
        match self {
            Self::Absent => None,
            Self::Broken(location) | Self::Present(location, _) => Some(location),
        }
    }
}

impl Collector {
    /// Adds a number in base64.
    pub(super) fn base64(
        &mut self,
        kind: ServerKind,
        part: KeyPart,
        location: Location,
        text: &str,
    ) {
        let number = decode_base64(text);
        self.number(kind, part, location, number);
    }

    /// Adds a number, given most significant byte first, or records why it cannot be read.
    pub(super) fn number(
        &mut self,
        kind: ServerKind,
        part: KeyPart,
        location: Location,
        number: Result<Bytes, KeyFault>,
    ) {
        let numbers = &mut self.servers[slot(kind)];
        let number_slot = match part {
            KeyPart::N => &mut numbers.n,
            KeyPart::A => &mut numbers.a,
            KeyPart::X => &mut numbers.x,
        };
        let same = |a: &Bytes, b: &Bytes| a.as_slice().ct_eq(b.as_slice()).into();
        take(number_slot, location, number, same, &mut self.errors);
    }

    /// Adds the droid key in hex.
    pub(super) fn droid(&mut self, location: Location, text: &str) {
        let key = text.parse().map_err(KeyFault::Droid);
        take(&mut self.droid, location, key, |a, b| a == b, &mut self.errors);
    }

    /// Adds the key of a single connection.
    #[cfg(feature = "toml")]
    pub(super) fn session(&mut self, service: Service, seed: Seed, key: SessionKey) {
        self.sessions.push((service, seed, key));
    }

    /// Records an error.
    pub(super) fn fault(&mut self, location: Location, fault: KeyFault) {
        report(&mut self.errors, &location, fault);
    }

    /// Whether the search should stop because of too many errors.
    #[cfg(feature = "toml")]
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() > MAX_FAULTS
    }

    /// Builds the keys from the numbers.
    pub(super) fn finish(self) -> Result<KeyRing, KeyFileErrors> {
        let Self { servers, droid, sessions, mut errors } = self;
        let mut ring = KeyRing::new();
        for (kind, numbers) in ServerKind::ALL.into_iter().zip(&servers) {
            if let Err((location, fault)) = numbers.finish(kind, &mut ring) {
                report(&mut errors, location, fault);
            }
        }
        if let Number::Present(_, key) = droid {
            ring.set_droid(key);
        }
        for (service, seed, key) in sessions {
            ring.insert_session(service, seed, key);
        }
        if errors.is_empty() {
            return Ok(ring);
        }
        errors.sort_by_key(|error| (error.line, error.column));
        if let Some(first_omitted) = errors.get_mut(MAX_FAULTS) {
            first_omitted.fault = KeyFault::TooMany;
            errors.truncate(MAX_FAULTS + 1);
        }
        Err(KeyFileErrors::new(errors))
    }
}

impl Numbers {
    /// Builds a key from the numbers, if there are any, and adds it to the ring.
    fn finish(&self, kind: ServerKind, ring: &mut KeyRing) -> Result<(), (&Location, KeyFault)> {
        let other = self.a.location().or_else(|| self.x.location());
        let (n_place, n) = match &self.n {
            Number::Absent => {
                return other.map_or(Ok(()), |location| Err((location, KeyFault::MissingModulus)));
            }
            Number::Broken(_) => return Ok(()),
            Number::Present(location, n) => (location, n),
        };
        let n = Modulus::from_be_bytes(n).map_err(|error| (n_place, KeyFault::Key(error)))?;
        if other.is_none() {
            return Err((n_place, KeyFault::MissingOther));
        }
        match (&self.a, &self.x) {
            (Number::Present(location, a), x) => {
                let key = PrivateKey::new(kind, n, a).map_err(|e| (location, KeyFault::Key(e)))?;
                if let Number::Present(location, x) = x
                    && **x != key.x()
                {
                    return Err((location, KeyFault::Key(KeyError::Mismatch)));
                }
                ring.insert_private(key);
            }
            (Number::Absent, Number::Present(location, x)) => {
                let key = PublicKey::new(kind, n, x).map_err(|e| (location, KeyFault::Key(e)))?;
                ring.insert_public(key);
            }
            // A malformed number has already been reported.
            _ => {}
        }
        Ok(())
    }
}

/// Stores a value; a second one must equal the first.
fn take<T>(
    number: &mut Number<T>,
    location: Location,
    value: Result<T, KeyFault>,
    same: impl Fn(&T, &T) -> bool,
    errors: &mut Vec<KeyFileError>,
) {
    match value {
        Err(fault) => {
            report(errors, &location, fault);
            if matches!(number, Number::Absent) {
                *number = Number::Broken(location);
            }
        }
        Ok(value) => match number {
            Number::Present(first, known) if !same(known, &value) => {
                report(errors, &location, KeyFault::Conflict { line: first.line });
            }
            Number::Present(..) => {}
            Number::Absent | Number::Broken(_) => *number = Number::Present(location, value),
        },
    }
}

fn report(errors: &mut Vec<KeyFileError>, location: &Location, fault: KeyFault) {
    // One error beyond the limit is kept to show that there are more.
    if errors.len() > MAX_FAULTS {
        return;
    }
    let Location { line, column, key } = location.clone();
    errors.push(KeyFileError { line, column, key, fault });
}

/// Whether a text is base64 for a number of the right length, whatever its name in the file.
pub(super) fn is_number(text: &str) -> bool {
    decode_base64(text).is_ok()
}

fn decode_base64(text: &str) -> Result<Bytes, KeyFault> {
    let decoded = BASE64.decode(text).map(Zeroizing::new).map_err(|error| match error {
        DecodeError::InvalidByte(at, _) => {
            // A non-ASCII character is reported as a character, not as bytes; everything before it
            // is ASCII.
            match text.get(at..).and_then(|rest| rest.chars().next()) {
                Some(found) => KeyFault::Base64Character { at: at + 1, found },
                None => KeyFault::Base64End { found: text.chars().count() },
            }
        }
        _ => KeyFault::Base64End { found: text.chars().count() },
    })?;
    if decoded.len() != KEY_BYTES {
        return Err(KeyFault::Length { found: decoded.len() });
    }
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    bytes.copy_from_slice(&decoded);
    Ok(bytes)
}

/// The maximum number of errors reported: enough for any real file, and a bound for hostile ones.
pub(super) const MAX_FAULTS: usize = 100;

/// The standard alphabet. Key tools write padding, but it can be omitted without loss.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
