//! Uru: codecs, definitions, and recognising and reading conversations.

mod codecs;
mod definitions;
mod game;
mod game_manager;
mod info;
mod names;
mod players;
mod session;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use worldwire_core::{Diagnostic, FieldInfo, Names, Result};
use worldwire_uru::connection::{
    CapturedExchange, Connection, RelayConfig, RelayKeys, RelayRandom,
};
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::types::NetError;

use crate::family::{BEGINNING, Family, Opening, Prepared, Start, by_modules};
use crate::keys_error::KeyFault;
use crate::knowledge::{Definitions, Keys};
use crate::session::{RelaySession, Session, Watched};
use crate::vocabulary::{ClassRow, MessageNames, ValueKind, ValueNames, Vocabulary};
pub use definitions::UruDefinitions;
use definitions::{is_descriptors, states};
use session::Reading;

/// Myst Online: Uru Live. Definitions are [`UruDefinitions`].
///
/// Keys are a [`KeyRing`]. A relay uses the same private keys on both sides, unless the keys
/// include [`RelayKeys`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uru;

/// The default port of a shard.
const PORT: u16 = 14617;

impl Family for Uru {
    by_modules!("uru");

    fn missed(&self, opening: &Opening<'_>) -> Option<String> {
        let [_, server] = opening.ends?;
        (opening.midstream && !opening.datagrams && server.port() == PORT).then(|| {
            "the beginning is missing, and an encrypted connection can only be decrypted from its \
             first byte"
                .to_owned()
        })
    }

    fn prepare(&self, keys: &Keys, beginnings: &[&[u8]]) -> Vec<Option<Prepared>> {
        const { assert!(CapturedExchange::BEGINNING <= BEGINNING) };
        let Some(keys) = keys.get_ref::<KeyRing>() else { return Vec::new() };
        let computed = CapturedExchange::compute(keys, beginnings).into_iter();
        computed.map(|exchange| Some(Arc::new(exchange?) as Prepared)).collect()
    }

    fn session(&self, start: &Start<'_>) -> Box<dyn Session> {
        let keys = start.keys.part::<KeyRing>();
        let exchange = start.prepared.and_then(|exchange| Arc::clone(exchange).downcast().ok());
        let connection = match (start.midstream, exchange) {
            (true, _) => Connection::observer_from_the_middle(keys),
            (false, None) => Connection::observer(keys),
            (false, Some(exchange)) => Connection::observer_expecting(keys, exchange),
        };
        Box::new(Watched::new(connection, Reading::new(start)))
    }

    fn relay(
        &self,
        start: &Start<'_>,
        random: &mut dyn FnMut(&mut [u8]),
        now: Duration,
    ) -> Result<Box<dyn RelaySession>> {
        let keys = start.keys.get_ref::<RelayKeys>().cloned().unwrap_or_else(|| {
            RelayKeys::Shared(start.keys.get_ref::<KeyRing>().cloned().unwrap_or_default())
        });
        let mut fresh = RelayRandom { secret: [0; 64], seed: [0; 7] };
        random(&mut fresh.secret);
        random(&mut fresh.seed);
        let config = Arc::new(RelayConfig::new(keys));
        let relay = Connection::relay(config, fresh, now);
        Ok(Box::new(Watched::new(relay, Reading::new(start)).injecting()))
    }

    fn built_in(&self, definitions: &mut Definitions) {
        definitions.set(UruDefinitions::default());
    }

    fn may_define(&self, name: &str) -> bool {
        is_descriptors(name)
    }

    fn define(
        &self,
        files: &[(&str, &[u8])],
        definitions: &mut Definitions,
    ) -> Option<Vec<Diagnostic>> {
        let own: Vec<_> = files.iter().copied().filter(|(name, _)| is_descriptors(name)).collect();
        if own.is_empty() {
            return None;
        }
        Some(definitions.edit(|uru: &mut UruDefinitions| uru.add(own)))
    }

    fn read_keys(&self, text: &str, keys: &mut Keys) -> Result<bool, Vec<KeyFault>> {
        let ring = KeyRing::parse(text)
            .map_err(|errors| errors.errors().iter().map(KeyFault::from).collect::<Vec<_>>())?;
        let found = !ring.is_empty();
        if let Some(known) = keys.get_ref::<KeyRing>()
            && let Some(key) = known.conflict(&ring)
        {
            return Err(vec![KeyFault::Conflict(key)]);
        }
        keys.edit(|known: &mut KeyRing| known.merge(ring));
        Ok(found)
    }
}

impl Vocabulary for Uru {
    fn classes(&self, codec: &str) -> Vec<ClassRow> {
        names::classes(codec)
    }

    fn messages<'d>(&self, definitions: &'d Definitions) -> Vec<MessageNames<'d>> {
        names::messages(states(definitions))
    }

    fn values<'d>(&self, _: &'d Definitions) -> Vec<ValueNames<'d>> {
        names::values()
    }

    fn inside(&self) -> Vec<&'static str> {
        names::inside()
    }

    fn kinds<'d>(&self, _: &'d Definitions) -> Vec<(&'d str, ValueKind)> {
        names::kinds()
    }

    fn holders<'d>(&self, definitions: &'d Definitions) -> Vec<(&'d str, &'static str)> {
        names::holders(states(definitions))
    }

    fn holder_fields(&self) -> &'static [&'static str] {
        names::SIMPLE_VARIABLE
    }

    fn value_text(&self, type_name: &str, value: i64) -> Option<&'static str> {
        let result = i32::try_from(value).ok().filter(|_| type_name == "NetError");
        result.and_then(|result| NetError(result).text())
    }

    fn records(&self) -> Vec<(&'static str, Vec<FieldInfo>)> {
        names::records()
    }

    fn layout(&self, codec: &str) -> Vec<FieldInfo> {
        if codec == "uru.vault-node" { names::vault_node() } else { Vec::new() }
    }

    fn named_types(&self) -> &'static [(&'static str, &'static Names)] {
        names::NAMED
    }
}
