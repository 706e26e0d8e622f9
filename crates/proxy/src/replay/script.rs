//! A recorded conversation as a list of steps.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use worldwire_core::json::Json;
use worldwire_core::{Limits, Side, Tree};
use worldwire_dissect::{Family, Overview};
use worldwire_tera::packet::Packets;

use super::recording::{Content, RecordedItem, RecordedMessage};
use super::{ki, mxo};
use crate::handler::FieldsReader;
use crate::kept::Kept;

/// A recorded conversation. Either side can be replayed.
#[derive(Debug)]
pub struct Script {
    pub(super) family: &'static dyn Family,
    /// The number of the conversation in its capture.
    stream: u64,
    /// The server's port.
    port: u16,
    /// Whether the conversation was recorded over UDP.
    pub(super) is_datagrams: bool,
    /// The steps of connection setup.
    pub(super) setup: Vec<SetupStep>,
    pub(super) steps: Vec<Step>,
    /// TERA: the messages of its build.
    pub(super) build: Option<Arc<Packets>>,
}

/// A recorded step of connection setup.
#[derive(Clone, Debug)]
pub(super) struct SetupStep {
    pub(super) from: Side,
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    /// The number of messages before it.
    pub(super) before: usize,
}

/// A recorded message.
#[derive(Clone)]
pub(super) struct Step {
    /// Its number within the conversation, counted from 1.
    pub(super) number: u64,
    /// When it was recorded, since the first packet of the capture.
    pub(super) since: Duration,
    pub(super) packet: Option<u64>,
    pub(super) from: Side,
    pub(super) name: String,
    pub(super) body: Vec<u8>,
    /// Whether the user wants the replay to ignore it, if the peer sent it.
    pub(super) is_ignored: bool,
    /// Encodes the message with other fields. `None` for a part of a message.
    pub(super) kept: Option<Kept>,
}

impl Script {
    /// `None` if there are no messages.
    pub(super) fn new(
        family: &'static dyn Family,
        overview: &Overview,
        items: Vec<RecordedItem>,
    ) -> Option<Self> {
        let mut script = Self {
            family,
            stream: overview.stream,
            port: overview.server.port(),
            is_datagrams: overview.datagrams,
            setup: Vec::new(),
            steps: Vec::new(),
            build: None,
        };
        let mut parts = (family.name() == "mxo").then(mxo::Parts::default);
        let mut repeats = (family.name() == "ki").then(ki::Repeats::default);
        for item in items {
            let RecordedItem { since, packet, from, content, .. } = item;
            match content {
                Content::Setup(name, bytes) => {
                    if let Some(repeats) = &mut repeats {
                        repeats.setup(&name);
                    }
                    let before = script.steps.len();
                    script.setup.push(SetupStep { from, name, bytes, before });
                }
                Content::Fault(_) => {}
                Content::Message(message) => {
                    let RecordedMessage { kept, label: name, is_ignored, build } = *message;
                    script.build = build.or(script.build);
                    if repeats.as_mut().is_some_and(|it| it.is_repeated(from, &kept.body)) {
                        continue;
                    }
                    let step = Step {
                        number: 0,
                        since,
                        packet,
                        from,
                        name,
                        body: kept.body.clone(),
                        is_ignored,
                        kept: Some(kept),
                    };
                    match &mut parts {
                        Some(parts) => script.steps.extend(parts.split(step)),
                        None => script.steps.push(step),
                    }
                }
            }
        }
        for (step, number) in script.steps.iter_mut().zip(1..) {
            step.number = number;
        }
        (!script.steps.is_empty()).then_some(script)
    }

    /// The name of its family.
    #[must_use]
    pub fn family(&self) -> &'static str {
        self.family.name()
    }

    /// The number of the conversation in its capture.
    #[must_use]
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// The port of the recorded server.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it uses UDP; otherwise it uses TCP.
    #[must_use]
    pub fn is_datagrams(&self) -> bool {
        self.is_datagrams
    }

    /// The bytes of the first setup step whose name starts with this.
    pub(super) fn setup(&self, from: Side, name: &str) -> Option<&[u8]> {
        let mut of_side = self.setup.iter().filter(|step| step.from == from);
        of_side.find(|step| step.name.starts_with(name)).map(|step| &*step.bytes)
    }
}

impl Step {
    /// Its fields as `dissect --json` writes them; null if it cannot be decoded.
    pub(super) fn fields(&self) -> Json {
        let Some(kept) = &self.kept else { return mxo::fields(&self.body) };
        kept.with_item(|item| {
            let tree = item.tree(Tree::new(), &Limits::DEFAULT);
            FieldsReader::default().read(&tree).unwrap_or(Json::Null)
        })
    }

    /// Its bytes with other fields.
    pub(super) fn encode(&self, fields: Json) -> worldwire_core::Result<Vec<u8>> {
        let Some(kept) = &self.kept else { return Ok(self.body.clone()) };
        let mut kept = kept.clone();
        kept.replace_fields(fields)?;
        Ok(kept.body)
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, from, name, .. } = self;
        write!(f, "{number} {name} from the {from}")
    }
}
