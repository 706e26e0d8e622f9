//! Gathers the numbers of a key file, and makes keys of them at the end.

use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, Engine as _};
use base64::{DecodeError, alphabet};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::crypt::exchange::SessionKey;
use crate::crypt::key::{KEY_BYTES, KeyError, Modulus, PrivateKey, PublicKey, ServerKind};
use crate::file::secure::SecureKey;
use crate::frame::Service;

use super::error::{KeyFault, KeyFileError, KeyFileErrors};
use super::{KeyRing, Seed, slot};

/// What a number is for.
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
    /// The part that a letter means, in any spelling and case.
    pub(super) fn from_letter(letter: &str) -> Option<Self> {
        Some(match letter {
            "n" | "N" => Self::N,
            "a" | "A" | "k" | "K" => Self::A,
            "x" | "X" => Self::X,
            _ => return None,
        })
    }
}

/// Where in the file something is.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) key: String,
}

/// The numbers of a file so far, and what is wrong with it.
#[derive(Default)]
pub(super) struct Collector {
    servers: [Numbers; ServerKind::ALL.len()],
    droid: Number<SecureKey>,
    sessions: Vec<(Service, Seed, SessionKey)>,
    errors: Vec<KeyFileError>,
}

type Bytes = Zeroizing<[u8; KEY_BYTES]>;

/// The three numbers of one kind of server.
#[derive(Default)]
struct Numbers {
    n: Number<Bytes>,
    a: Number<Bytes>,
    x: Number<Bytes>,
}

/// One number. A broken one is remembered, lest it be reported as missing too.
#[derive(Default)]
enum Number<T> {
    #[default]
    Absent,
    Broken(Location),
    Present(Location, T),
}

impl<T> Number<T> {
    fn place(&self) -> Option<&Location> {
        match self {
            Self::Absent => None,
            Self::Broken(place) | Self::Present(place, _) => Some(place),
        }
    }
}

impl Collector {
    /// Takes a number in base64.
    pub(super) fn base64(&mut self, kind: ServerKind, part: KeyPart, place: Location, text: &str) {
        let number = decode_base64(text);
        self.number(kind, part, place, number);
    }

    /// Takes a number, most significant byte first, or why it cannot be read.
    pub(super) fn number(
        &mut self,
        kind: ServerKind,
        part: KeyPart,
        place: Location,
        number: Result<Bytes, KeyFault>,
    ) {
        let numbers = &mut self.servers[slot(kind)];
        let number_slot = match part {
            KeyPart::N => &mut numbers.n,
            KeyPart::A => &mut numbers.a,
            KeyPart::X => &mut numbers.x,
        };
        let same = |a: &Bytes, b: &Bytes| a.as_slice().ct_eq(b.as_slice()).into();
        take(number_slot, place, number, same, &mut self.errors);
    }

    /// Takes the droid key in hex.
    pub(super) fn droid(&mut self, place: Location, text: &str) {
        let key = text.parse().map_err(KeyFault::Droid);
        take(&mut self.droid, place, key, |a, b| a == b, &mut self.errors);
    }

    /// Takes the key of a single connection.
    pub(super) fn session(&mut self, service: Service, seed: Seed, key: SessionKey) {
        self.sessions.push((service, seed, key));
    }

    /// Notes that something is wrong.
    pub(super) fn fault(&mut self, place: Location, fault: KeyFault) {
        report(&mut self.errors, &place, fault);
    }

    /// Whether there are so many faults that more of them are not worth looking for.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() > MAX_FAULTS
    }

    /// Makes keys of the numbers.
    pub(super) fn finish(self) -> Result<KeyRing, KeyFileErrors> {
        let Self { servers, droid, sessions, mut errors } = self;
        let mut ring = KeyRing::new();
        for (kind, numbers) in ServerKind::ALL.into_iter().zip(&servers) {
            if let Err((place, fault)) = numbers.finish(kind, &mut ring) {
                report(&mut errors, place, fault);
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
    /// Puts the key that the numbers make into the ring, if they make one.
    fn finish(&self, kind: ServerKind, ring: &mut KeyRing) -> Result<(), (&Location, KeyFault)> {
        let other = self.a.place().or_else(|| self.x.place());
        let (n_place, n) = match &self.n {
            Number::Absent => {
                return other.map_or(Ok(()), |place| Err((place, KeyFault::MissingModulus)));
            }
            Number::Broken(_) => return Ok(()),
            Number::Present(place, n) => (place, n),
        };
        let n = Modulus::from_be_bytes(n).map_err(|error| (n_place, KeyFault::Key(error)))?;
        if other.is_none() {
            return Err((n_place, KeyFault::MissingOther));
        }
        match (&self.a, &self.x) {
            (Number::Present(place, a), x) => {
                let key = PrivateKey::new(kind, n, a).map_err(|e| (place, KeyFault::Key(e)))?;
                if let Number::Present(place, x) = x
                    && **x != key.x()
                {
                    return Err((place, KeyFault::Key(KeyError::Mismatch)));
                }
                ring.insert_private(key);
            }
            (Number::Absent, Number::Present(place, x)) => {
                let key = PublicKey::new(kind, n, x).map_err(|e| (place, KeyFault::Key(e)))?;
                ring.insert_public(key);
            }
            // What is broken is reported already.
            _ => {}
        }
        Ok(())
    }
}

/// Puts a value into its place, which should be empty or hold the same value.
fn take<T>(
    number: &mut Number<T>,
    place: Location,
    value: Result<T, KeyFault>,
    same: impl Fn(&T, &T) -> bool,
    errors: &mut Vec<KeyFileError>,
) {
    match value {
        Err(fault) => {
            report(errors, &place, fault);
            if matches!(number, Number::Absent) {
                *number = Number::Broken(place);
            }
        }
        Ok(value) => match number {
            Number::Present(first, known) if !same(known, &value) => {
                report(errors, &place, KeyFault::Conflict { line: first.line });
            }
            Number::Present(..) => {}
            Number::Absent | Number::Broken(_) => *number = Number::Present(place, value),
        },
    }
}

fn report(errors: &mut Vec<KeyFileError>, place: &Location, fault: KeyFault) {
    // One more than is listed tells that there are more.
    if errors.len() > MAX_FAULTS {
        return;
    }
    let Location { line, column, key } = place.clone();
    errors.push(KeyFileError { line, column, key, fault });
}

/// Whether a text is a number of the right length in base64, whatever it is called.
pub(super) fn is_number(text: &str) -> bool {
    decode_base64(text).is_ok()
}

fn decode_base64(text: &str) -> Result<Bytes, KeyFault> {
    let decoded = BASE64.decode(text).map(Zeroizing::new).map_err(|error| match error {
        DecodeError::InvalidByte(at, _) => {
            // A character that is not ASCII is reported whole; what is before it is ASCII.
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

/// Faults that are listed. Enough for any file somebody wrote, and a bound for the others.
pub(super) const MAX_FAULTS: usize = 100;

/// The usual alphabet; key tools pad, but nothing is lost without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
