//! Sees the live messages in the relay.

use std::sync::{Arc, Mutex, PoisonError};

use worldwire_core::Side;
use worldwire_core::json::Json;
use worldwire_dissect::filter::{Filter, Subject};

use super::actor::Heard;
use super::recording::label;
use crate::handler::{Effects, Handler, Next, Passing};

/// What was seen in the relay.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    /// A message from the peer.
    Peer(Heard),
    /// Rules changed or dropped an outgoing message.
    Changed { name: String, is_dropped: bool },
}

/// The messages seen since the last look.
#[derive(Clone, Debug, Default)]
pub(super) struct Sight(Arc<Mutex<Vec<Seen>>>);

/// Notes live messages, as rules have left them. Those that rules drop do not count.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) own: Side,
    pub(super) ignored: Option<Arc<Filter>>,
    /// Whether the peer's messages are taken from here.
    pub(super) hears: bool,
    pub(super) sight: Sight,
}

impl Sight {
    pub(super) fn take(&self) -> Vec<Seen> {
        core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, seen: Seen) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }
}

impl Handler for Watcher {
    fn message(&mut self, passing: &Passing<'_>, _: &mut Effects) -> Next {
        let Passing { is_changed, is_dropped, .. } = *passing;
        let name = passing.name.to_owned();
        if passing.item.from == self.own {
            if is_changed || is_dropped {
                self.sight.add(Seen::Changed { name, is_dropped });
            }
        } else if self.hears && !is_dropped {
            let is_ignored = self.ignored.as_ref().is_some_and(|ignored| {
                ignored.matches(&Subject::of(passing.item, &name, passing.tree()))
            });
            let fields = passing.fields().unwrap_or(Json::Null);
            let name = label(passing.item, &name);
            self.sight.add(Seen::Peer(Heard { name, fields, is_ignored }));
        }
        Next::Done
    }
}
