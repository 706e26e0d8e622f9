//! `worldwire uru keys`.

use core::convert::Infallible;
use core::slice;

use rand_core::{TryCryptoRng, TryRng};
use worldwire_uru::crypt::key::{PrimeKind, PrivateKey, ServerKind};
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};
use worldwire_uru::file::secure::SecureKey;

use crate::cli::{KeyFormat, UruKeys};
use crate::command::system;
use crate::input;
use crate::output::{Failure, say, write_all, write_secret};

pub(crate) fn run(command: &UruKeys) -> Result<(), Failure> {
    match command {
        UruKeys::Generate { format, target } => {
            let mut random = SystemRandom::new()?;
            let mut ring = KeyRing::new();
            for kind in [ServerKind::Gatekeeper, ServerKind::Auth, ServerKind::Game] {
                ring.insert_private(PrivateKey::generate(kind, PrimeKind::Safe, &mut random));
            }
            ring.set_droid(SecureKey::generate(&mut random));
            write_secret(target, ring.format(spelling(*format)).as_bytes())
        }
        UruKeys::Convert { file, to, target } => {
            let keys = input::keys(slice::from_ref(file))?;
            let spelling = spelling(*to);
            let text = keys.part::<KeyRing>().format(spelling);
            // A file of nothing but comments contains no keys.
            let empty = text.lines().all(|line| line.trim().is_empty() || line.starts_with('#'));
            if empty {
                return Err(Failure::Run(format!(
                    "{}: contains no keys that this format can store",
                    file.display()
                )));
            }
            match to {
                KeyFormat::TomlPublic => write_all(target, text.as_bytes()),
                _ => write_secret(target, text.as_bytes()),
            }
        }
    }
}

fn spelling(format: KeyFormat) -> KeyFileFormat {
    match format {
        KeyFormat::Toml => KeyFileFormat::Toml,
        KeyFormat::TomlPublic => KeyFileFormat::TomlPublic,
        KeyFormat::Dirtsand => KeyFileFormat::Dirtsand,
        KeyFormat::Moulars => KeyFileFormat::Moulars,
        KeyFormat::Nagus => KeyFileFormat::Nagus,
        KeyFormat::ServerIni => KeyFileFormat::ServerIni,
        KeyFormat::OpenUru => KeyFileFormat::OpenUru,
    }
}

/// The operating system's random numbers, which key generation cannot do without.
struct SystemRandom;

impl SystemRandom {
    /// Checks that random numbers are available.
    fn new() -> Result<Self, Failure> {
        system::random(&mut [0; 8]).map(|()| Self)
    }
}

impl TryRng for SystemRandom {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        if let Err(error) = getrandom::fill(bytes) {
            // It worked a moment ago; never generate a weak key.
            say(format_args!("worldwire: cannot get random numbers: {error}"));
            std::process::exit(2);
        }
        Ok(())
    }
}

impl TryCryptoRng for SystemRandom {}
