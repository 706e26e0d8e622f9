//! TERA: codec, definitions, and recognising and reading conversations.

mod codecs;
mod definitions;
mod editor;
mod names;
mod session;

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Diagnostic, Result};
use worldwire_tera::connection::{Connection, RelayConfig};
use worldwire_tera::crypt::keys::KeyFile;
use worldwire_tera::file::library::Library;

use crate::family::{Family, Start, by_modules, key_file};
use crate::knowledge::Definitions;
use crate::session::{RelaySession, Session, Watched};
use crate::vocabulary::{MessageNames, ValueKind, ValueNames, Vocabulary};
pub use definitions::TeraDefinitions;
use definitions::{is_of_library, library};
use session::Reading;

/// TERA. Keys are a [`KeyFile`]; definitions are [`TeraDefinitions`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tera;

impl Family for Tera {
    by_modules!("tera");

    fn session(&self, start: &Start<'_>) -> Box<dyn Session> {
        let build = Reading::new(start.definitions.part());
        let sessions = start.keys.part::<KeyFile>().sessions();
        Box::new(Watched::new(Connection::observer_knowing(None, sessions), build))
    }

    fn relay(
        &self,
        start: &Start<'_>,
        _: &mut dyn FnMut(&mut [u8]),
        now: Duration,
    ) -> Result<Box<dyn RelaySession>> {
        let build = Reading::new(start.definitions.part());
        let config = Arc::new(RelayConfig::default());
        Ok(Box::new(Watched::new(Connection::relay(config, now), build).injecting()))
    }

    key_file!(KeyFile);

    fn built_in(&self, definitions: &mut Definitions) {
        definitions.set(TeraDefinitions::default());
    }

    fn may_define(&self, name: &str) -> bool {
        is_of_library(name)
    }

    fn define(
        &self,
        files: &[(&str, &[u8])],
        definitions: &mut Definitions,
    ) -> Option<Vec<Diagnostic>> {
        let own = files.iter().filter(|(name, _)| is_of_library(name));
        let own: Vec<_> = own.map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        if own.is_empty() {
            return None;
        }
        Some(definitions.edit(|library: &mut TeraDefinitions| library.add(own)))
    }
}

impl Vocabulary for Tera {
    fn messages<'d>(&self, definitions: &'d Definitions) -> Vec<MessageNames<'d>> {
        names::messages(library(definitions))
    }

    fn values<'d>(&self, definitions: &'d Definitions) -> Vec<ValueNames<'d>> {
        names::values(library(definitions))
    }

    fn kinds<'d>(&self, definitions: &'d Definitions) -> Vec<(&'d str, ValueKind)> {
        names::kinds(library(definitions))
    }

    fn advice_on(&self, name: &str, definitions: &Definitions) -> Option<&'static str> {
        let name = name.rsplit('.').next()?;
        let (side, rest) = name.split_once('_')?;
        let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        let is_ours = matches!(side, "C" | "S") && !rest.is_empty() && rest.bytes().all(fits);
        let known = library(definitions);
        let Library { definitions, opcodes, .. } = known.library();
        if !is_ours || !opcodes.is_empty() || definitions.names().next().is_some() {
            return None;
        }
        if known.names().contains(&name) { None } else { self.advice() }
    }

    fn advice(&self) -> Option<&'static str> {
        Some("supply definitions (.def) and the opcode map with --data")
    }
}
