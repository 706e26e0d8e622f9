//! KI: codecs, definitions, and recognising and reading conversations.

mod codecs;
mod definitions;
#[cfg(feature = "file")]
mod files;
mod message;
mod names;
#[cfg(all(test, feature = "keys"))]
#[path = "no_secrets.rs"]
#[expect(dead_code, reason = "only its tests run")]
mod no_secrets;
mod objects;
mod opener;
#[cfg(feature = "keys")]
mod secrets;
#[cfg(not(feature = "keys"))]
#[path = "no_secrets.rs"]
mod secrets;
mod session;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use worldwire_core::{Diagnostic, Result};
use worldwire_ki::connection::{Connection, RelayConfig};
use worldwire_ki::schema::Protocols;

use crate::codec::Codec;
use crate::family::{Family, Opening, Start, Verdict};
use crate::keys_error::KeyFault;
use crate::knowledge::{Definitions, Keys};
use crate::line::{Blob, Line};
use crate::session::{RelaySession, Session, Watched};
use crate::vocabulary::{MessageNames, ValueNames, Vocabulary};
use definitions::protocols;
pub use objects::KiObjects;
use secrets::KeyFile;
use session::Reading;

/// Wizard101 and Pirate101.
///
/// Keys are a `KeyFile`; definitions are [`Protocols`] and [`KiObjects`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ki;

impl Family for Ki {
    fn name(&self) -> &'static str {
        "ki"
    }

    fn vocabulary(&self) -> &dyn Vocabulary {
        self
    }

    fn speaks_datagrams(&self) -> bool {
        true
    }

    fn recognize(&self, opening: &Opening<'_>) -> Verdict {
        session::recognize(opening)
    }

    fn session(&self, start: &Start<'_>) -> Box<dyn Session> {
        let streams = start.keys.part::<KeyFile>().observer();
        let connection = match start.midstream {
            true => Connection::observer_from_the_middle(streams),
            false => Connection::observer(streams),
        };
        Box::new(Watched::new(connection, Reading::new(start)))
    }

    fn relay(
        &self,
        start: &Start<'_>,
        _: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Box<dyn RelaySession>> {
        let config = Arc::new(RelayConfig::new(start.keys.part::<KeyFile>().observer()));
        let connection = Connection::relay(config, Duration::ZERO);
        Ok(Box::new(Watched::new(connection, Reading::new(start)).injecting()))
    }

    fn blob(&self, line: &Line<'_>) -> Result<Option<Blob>> {
        codecs::blob(line)
    }

    fn codecs(&self) -> &'static [Codec] {
        codecs::CODECS
    }

    fn read_keys(&self, text: &str, keys: &mut Keys) -> Result<bool, Vec<KeyFault>> {
        let file = KeyFile::parse("keys", text)
            .map_err(|errors| errors.iter().map(KeyFault::from).collect::<Vec<_>>())?;
        let found = !file.is_empty();
        keys.edit(|known: &mut KeyFile| known.merge(file));
        Ok(found)
    }

    fn built_in(&self, definitions: &mut Definitions) {
        let protocols = Protocols::built_in();
        definitions.set(KiObjects::new(&protocols));
        definitions.set(protocols);
    }

    fn may_define(&self, name: &str) -> bool {
        definitions::may_define(name)
    }

    fn define(
        &self,
        files: &[(&str, &[u8])],
        definitions: &mut Definitions,
    ) -> Option<Vec<Diagnostic>> {
        definitions::define(files, definitions)
    }
}

impl Vocabulary for Ki {
    fn messages<'d>(&self, definitions: &'d Definitions) -> Vec<MessageNames<'d>> {
        names::messages(definitions)
    }

    fn values<'d>(&self, definitions: &'d Definitions) -> Vec<ValueNames<'d>> {
        names::values(definitions)
    }

    fn advice_on(&self, name: &str, definitions: &Definitions) -> Option<&'static str> {
        static BUILT_IN: LazyLock<Protocols> = LazyLock::new(Protocols::built_in);
        let is_ours = name.rsplit('.').next().is_some_and(|name| name.starts_with("MSG_"));
        let known = protocols(definitions);
        if !is_ours || known.message_named(name).is_some() {
            return None;
        }
        fn names(protocols: &Protocols) -> impl Iterator<Item = &str> {
            protocols.iter().flat_map(|one| one.messages().iter().map(|message| &*message.tag))
        }
        names(known).eq(names(&BUILT_IN)).then(|| self.advice()).flatten()
    }

    fn advice(&self) -> Option<&'static str> {
        Some("give message XML of this revision with --data")
    }
}
