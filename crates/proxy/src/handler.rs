//! Handlers, which decide what a proxy does with messages, and the effects they can request.

use core::cell::OnceCell;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use worldwire_core::json::{Json, Parser, Style, write_children, write_node};
use worldwire_core::{Limits, Side, Tree, Value};
use worldwire_dissect::{Decision, Ends, Item, Message};

/// Handles the messages of one conversation, in order.
///
/// A proxy passes each message to its handlers in turn. Each sees it as earlier handlers left it.
pub trait Handler: fmt::Debug + Send {
    /// Handles one message.
    fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) -> Next;

    /// Called when the conversation has been established, right before its first message.
    fn established(&mut self, ends: Option<&Ends>, effects: &mut Effects) {
        let _ = (ends, effects);
    }

    /// Called when time has reached the last [deadline](Self::poll_timeout).
    fn timeout(&mut self, now: Duration, effects: &mut Effects) {
        let _ = (now, effects);
    }

    /// The time by which to call [`timeout`](Self::timeout).
    fn poll_timeout(&self) -> Option<Duration> {
        None
    }
}

/// Whether a handler is done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The handler is done.
    Done,
    /// The handler has changed the message and must see it again.
    Again,
}

/// A message on its way through a proxy, as a handler sees it.
pub struct Passing<'p> {
    /// The message as it arrived.
    pub item: &'p Item<'p>,
    /// Its name: `game.JoinAgeRequest`.
    pub name: &'p str,
    /// The time on the proxy's clock.
    pub now: Duration,
    /// Its bytes without a frame, as earlier handlers left them.
    pub body: &'p [u8],
    /// Whether an earlier handler changed it.
    pub is_changed: bool,
    /// Whether an earlier handler dropped it. A later handler can still
    /// [keep](Effects::keep) it.
    pub is_dropped: bool,
    message: &'p dyn Message,
    tree: OnceCell<Tree<'p>>,
}

impl<'p> Passing<'p> {
    pub(crate) fn new(
        (item, message): (&'p Item<'p>, &'p dyn Message),
        name: &'p str,
        now: Duration,
        changed: Option<&'p [u8]>,
        is_dropped: bool,
    ) -> Self {
        let body = changed.unwrap_or_else(|| message.body());
        let is_changed = changed.is_some();
        Self { item, name, now, body, is_changed, is_dropped, message, tree: OnceCell::new() }
    }

    /// Its tree, which is built when a handler first asks for it.
    pub fn tree(&self) -> &Tree<'p> {
        self.tree.get_or_init(|| match self.is_changed {
            true => self.message.tree_of(self.body, Tree::new(), &Limits::DEFAULT),
            false => self.item.tree(Tree::new(), &Limits::DEFAULT),
        })
    }

    /// Its fields, as `dissect --json` writes them. `None` if it cannot be decoded.
    #[must_use]
    pub fn fields(&self) -> Option<Json> {
        FieldsReader::default().read(self.tree()).ok()
    }

    /// The message itself, for its family's own data.
    #[must_use]
    pub fn message(&self) -> &'p dyn Message {
        self.message
    }
}

impl fmt::Debug for Passing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passing").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads the fields of messages as JSON. Its memory is reused for the next message.
#[derive(Debug, Default)]
pub(crate) struct FieldsReader {
    parser: Parser,
    text: String,
}

impl FieldsReader {
    /// The value of `fields` in a message's JSON line.
    ///
    /// # Errors
    /// Why the message has none, as text.
    pub(crate) fn read(&mut self, tree: &Tree<'_>) -> Result<Json, String> {
        if let Some(error) = tree.error() {
            return Err(format!("the message cannot be decoded: {error}"));
        }
        self.text.clear();
        let style = Style::default();
        match tree.find("fields") {
            Some(fields) => write_node(fields, style, &mut self.text),
            None => write_children(Value::Record, tree.roots(), style, &mut self.text),
        }
        let json = self.parser.parse(&self.text);
        json.map_err(|error| format!("the fields cannot be read as JSON: {error}"))
    }
}

/// The effects that a handler requests.
#[derive(Debug, Default)]
pub struct Effects {
    pub(crate) change: Option<Vec<u8>>,
    pub(crate) is_dropped: Option<bool>,
    pub(crate) hold: Option<Hold>,
    /// The ticket of the message, if hooks finish it later.
    pub(crate) ticket: Option<u64>,
    pub(crate) finished: Vec<Finished>,
    /// The reason why the conversation must end.
    pub(crate) end: Option<String>,
    pub(crate) added: Vec<(Side, Addition)>,
    pub(crate) reports: Vec<Report>,
}

/// The decision about a message that waited for hooks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finished {
    /// The message.
    pub(crate) ticket: u64,
    /// Messages to add before it, in order.
    pub(crate) added: Vec<(Side, Vec<u8>)>,
    /// What to do with it. `None` if there is no message, only additions.
    pub(crate) decision: Option<Decision<'static>>,
}

/// A message to add.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Addition {
    /// Its bytes.
    Body(Vec<u8>),
    /// Its name and fields, and the place in the rules that adds it.
    Named(String, Json, Option<Arc<str>>),
}

impl Addition {
    /// The place in the rules that adds it.
    pub(crate) fn rule(&self) -> Option<Arc<str>> {
        match self {
            Self::Named(.., rule) => rule.clone(),
            Self::Body(_) => None,
        }
    }
}

/// How long a message is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Until this time.
    Until(Duration),
    /// Until an operator releases or drops it.
    Open,
}

/// A line for the proxy's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A handler wrote it.
    Log(String),
    /// Something is wrong.
    Problem(String),
    /// A message is held at a breakpoint.
    Held {
        /// Its number within the conversation.
        id: u64,
        /// Its name.
        name: String,
        /// Its sender.
        from: Side,
    },
}

impl Effects {
    /// Forwards these bytes instead of the message: a whole message of the family, as
    /// [`Item::encode`] returns it.
    pub fn change(&mut self, body: Vec<u8>) {
        self.change = Some(body);
    }

    /// Drops the message.
    pub fn discard(&mut self) {
        self.is_dropped = Some(true);
    }

    /// Forwards the message even though an earlier handler dropped it.
    pub fn keep(&mut self) {
        self.is_dropped = Some(false);
    }

    /// Holds the message, and everything that its side sends later, until this time.
    pub fn delay_until(&mut self, at: Duration) {
        let at = match self.hold {
            Some(Hold::Open) => return,
            Some(Hold::Until(other)) => at.max(other),
            None => at,
        };
        self.hold = Some(Hold::Until(at));
    }

    /// Holds the message at a breakpoint, until an operator releases or drops it.
    pub fn pause(&mut self) {
        self.hold = Some(Hold::Open);
    }

    /// Holds the message until its hooks have answered, and it is [finished](Self::finish). Tickets
    /// are unique within the conversation.
    pub(crate) fn wait(&mut self, ticket: u64) {
        self.ticket = Some(ticket);
    }

    /// Finishes a message that [waited](Self::wait).
    pub(crate) fn finish(&mut self, finished: Finished) {
        self.finished.push(finished);
    }

    /// Ends the conversation. Nothing more is forwarded.
    pub(crate) fn end(&mut self, why: String) {
        self.end.get_or_insert(why);
    }

    /// Sends an additional message to a side, before the message being handled. The body is
    /// a whole message of the family, as [`Item::encode`] returns it.
    pub fn add(&mut self, to: Side, body: Vec<u8>) {
        self.added.push((to, Addition::Body(body)));
    }

    /// Sends an additional message to a side, given by its name and fields as in a line of
    /// `dissect --json`.
    pub fn add_named(&mut self, to: Side, name: &str, fields: Json) {
        self.added.push((to, Addition::Named(name.to_owned(), fields, None)));
    }

    /// Like [`add_named`](Self::add_named), for a place in the rules. The problems of each place
    /// are reported at most once a minute.
    pub(crate) fn add_from_rule(&mut self, to: Side, name: &str, fields: Json, rule: &Arc<str>) {
        let rule = Some(Arc::clone(rule));
        self.added.push((to, Addition::Named(name.to_owned(), fields, rule)));
    }

    /// Writes a line to the log.
    pub fn log(&mut self, text: String) {
        self.reports.push(Report::Log(text));
    }

    /// Reports that something is wrong.
    pub fn problem(&mut self, text: String) {
        self.reports.push(Report::Problem(text));
    }
}
