//! `worldwire uru keys`.

use core::slice;

use worldwire_server::uru::keys;
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};

use crate::cli::{KeyFormat, UruKeys};
use crate::command::system;
use crate::input;
use crate::output::{Failure, shown, write_all, write_secret};

pub(crate) fn run(command: &UruKeys) -> Result<(), Failure> {
    match command {
        UruKeys::Generate { format, target } => {
            // Reports missing random numbers, without which no key may be generated.
            system::random(&mut [0; 8])?;
            let ring = keys::generate(PrimeKind::Safe);
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
                    shown(file)
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
