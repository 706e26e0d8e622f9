//! MxO: codecs, object tables, and recognising and reading conversations.

mod codecs;
mod definitions;
mod info;
mod layouts;
mod login;
mod message;
mod names;
mod objects;
mod session;
mod unread;
mod views;

use std::time::Duration;

use worldwire_core::{Diagnostic, FieldInfo, Result};
use worldwire_mxo::connection::{Connection, RelayConfig};
use worldwire_mxo::crypt::KeyFile;

use crate::family::{Family, Opening, Start, by_modules, key_file};
use crate::knowledge::Definitions;
use crate::session::{RelaySession, Session, Watched};
use crate::vocabulary::{MessageNames, ValueNames, Vocabulary};
pub use definitions::MxoObjects;
use login::LoginReading;
use session::Reading;
pub use views::MxoViews;

/// The name of this family.
const FAMILY: &str = "mxo";

/// The Matrix Online.
///
/// Keys are a [`KeyFile`], and for relays `worldwire_mxo::login::LoginKeys`; definitions are
/// [`MxoObjects`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mxo;

impl Family for Mxo {
    by_modules!("mxo");

    fn speaks_datagrams(&self) -> bool {
        true
    }

    fn begins_late(&self, opening: &Opening<'_>) -> bool {
        session::begins_late(opening)
    }

    fn session(&self, start: &Start<'_>) -> Box<dyn Session> {
        if !start.datagrams {
            return Box::new(Watched::new(login::connection(start), LoginReading::default()));
        }
        let sessions = start.keys.part::<KeyFile>().sessions().clone();
        Box::new(Watched::new(Connection::observer(sessions), Reading::new(start)))
    }

    fn relay(
        &self,
        start: &Start<'_>,
        random: &mut dyn FnMut(&mut [u8]),
        now: Duration,
    ) -> Result<Box<dyn RelaySession>> {
        if !start.datagrams {
            let connection = login::relay(start, random, now);
            return Ok(Box::new(Watched::new(connection, LoginReading::default()).injecting()));
        }
        let config = RelayConfig::new(start.keys.part::<KeyFile>().sessions().clone());
        let connection = Connection::relay(&config, now);
        Ok(Box::new(Watched::new(connection, Reading::new(start).learning()).injecting()))
    }

    key_file!(KeyFile);

    fn built_in(&self, definitions: &mut Definitions) {
        definitions.set(MxoObjects::built_in());
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

impl Vocabulary for Mxo {
    fn layout(&self, codec: &str) -> Vec<FieldInfo> {
        layouts::layout(codec)
    }

    fn messages<'d>(&self, definitions: &'d Definitions) -> Vec<MessageNames<'d>> {
        names::messages(definitions)
    }

    fn values<'d>(&self, definitions: &'d Definitions) -> Vec<ValueNames<'d>> {
        names::values(definitions)
    }

    fn path_to(&self, field: &str, definitions: &Definitions) -> Option<String> {
        names::path_to(field, definitions)
    }
}
