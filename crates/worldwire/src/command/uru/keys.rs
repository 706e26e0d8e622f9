//! `worldwire uru keys`.

use core::slice;
use std::path::Path;

use worldwire_server::uru::keys;
use worldwire_uru::crypt::key::{PrimeKind, ServerKind};
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};

use crate::cli::{Common, KeyFormat, UruKeys};
use crate::command::system;
use crate::input;
use crate::output::{Failure, complain, write_all, write_secret};

pub(crate) fn run(command: &UruKeys) -> Result<(), Failure> {
    match command {
        UruKeys::Generate { format, target } => {
            // Reports that the system provides no random numbers, without which no key may be
            // generated.
            system::random(&mut [0; 8])?;
            let ring = keys::generate(PrimeKind::Safe);
            write_secret(target, ring.format(spelling(*format)).as_bytes())
        }
        UruKeys::Convert { file, to, target } => {
            let keys = input::keys(slice::from_ref(file), &Common::default())?;
            let ring = keys.part::<KeyRing>();
            if is_for_servers(*to) {
                check_secrets(file, &ring)?;
            }
            let text = ring.format(spelling(*to));
            // A file with nothing but comments contains no keys.
            let empty = text.lines().all(|line| line.trim().is_empty() || line.starts_with('#'));
            if empty {
                return Err(Failure::Run(format!(
                    "{}: contains no keys that this format can store",
                    input::title(file)
                )));
            }
            match to {
                KeyFormat::TomlPublic => write_all(target, text.as_bytes()),
                _ => write_secret(target, text.as_bytes()),
            }
        }
    }
}

/// Whether a format is for servers, which need the secrets.
fn is_for_servers(format: KeyFormat) -> bool {
    match format {
        KeyFormat::Toml | KeyFormat::Dirtsand | KeyFormat::Moulars | KeyFormat::Nagus => true,
        KeyFormat::TomlPublic | KeyFormat::ServerIni | KeyFormat::OpenUru => false,
    }
}

/// Refuses keys if none has a secret, and reports those whose own secret is missing.
fn check_secrets(file: &Path, ring: &KeyRing) -> Result<(), Failure> {
    let is_public =
        |kind: &ServerKind| ring.public(*kind).is_some() && ring.private(*kind).is_none();
    let public: Vec<_> = ServerKind::ALL.into_iter().filter(is_public).collect();
    let title = input::title(file);
    let has_secrets = *ring.format(KeyFileFormat::Toml) != *ring.format(KeyFileFormat::TomlPublic);
    if !public.is_empty() && !has_secrets {
        let problem = "contains only public keys, like every client's server.ini. Shards and captures \
                       need the secrets, which only the shard's own key file has; to convert public \
                       keys for `worldwire client`, use --to toml-public";
        return Err(Failure::Run(format!("{title}: {problem}")));
    }
    for kind in public {
        complain(&title, &format!("{kind}: there is only a public key; the secret is missing"));
    }
    Ok(())
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
