//! KI: codecs, definitions, and recognising and reading conversations.

mod codecs;
mod definitions;
#[cfg(feature = "file")]
mod files;
mod info;
mod message;
mod names;
#[cfg(all(test, feature = "keys"))]
#[path = "no_secrets.rs"]
#[expect(dead_code, reason = "only its tests run")]
mod no_secrets;
mod objects;
mod offer_date;
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
use worldwire_ki::schema::classes::Class;

use crate::family::{Family, Start, by_modules, key_file};
use crate::knowledge::Definitions;
use crate::session::{RelaySession, Session, Watched};
use crate::vocabulary::{MessageNames, ValueKind, ValueNames, Vocabulary};
use definitions::protocols;
pub use objects::KiObjects;
use objects::objects;
use secrets::KeyFile;
use session::Reading;

/// Wizard101 and Pirate101.
///
/// Keys are a `KeyFile`; definitions are [`Protocols`] and [`KiObjects`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ki;

impl Family for Ki {
    by_modules!("ki");

    fn speaks_datagrams(&self) -> bool {
        true
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
        now: Duration,
    ) -> Result<Box<dyn RelaySession>> {
        let config = Arc::new(RelayConfig::new(start.keys.part::<KeyFile>().observer()));
        let connection = Connection::relay(config, now);
        Ok(Box::new(Watched::new(connection, Reading::new(start)).injecting()))
    }

    key_file!(KeyFile);

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

    fn kinds<'d>(&self, definitions: &'d Definitions) -> Vec<(&'d str, ValueKind)> {
        names::kinds(definitions)
    }

    fn derived(&self, class: &str, definitions: &Definitions) -> Option<Vec<i64>> {
        let classes = objects(definitions).classes()?.derived(class);
        let tags: Vec<i64> = classes.map(|class| class.hash.into()).collect();
        (!tags.is_empty()).then_some(tags)
    }

    fn object_classes<'d>(&self, definitions: &'d Definitions) -> Vec<&'d str> {
        let classes = objects(definitions).classes().into_iter().flat_map(|it| it.all());
        let names = |class: &'d Class| [&class.name].into_iter().chain(&class.bases);
        classes.flat_map(names).map(|name| &**name).collect()
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
        Some("supply this revision's message XML with --data")
    }
}
