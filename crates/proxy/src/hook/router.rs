//! Sends the messages of one conversation to its hooks, one hook at a time.

use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use worldwire_core::Tree;
use worldwire_core::json::Json;
use worldwire_dissect::Item;
use worldwire_dissect::filter::{Filter, Subject};

use super::frames::MessageFrame;
use super::link::{Link, Unsent};
use super::pending::{Pending, Progress, Reach, Waiting};
use super::protocol::{Addition, Content, Form, MessageId, error, message_head};
use super::subscription::{Candidate, HookSet};
use crate::coder::Coder;
use crate::handler::Effects;
use crate::kept::{Kept, Moment, write_line};

/// The maximum length of a chain in which hooks add messages in response to each other's. Hooks do
/// not see messages added beyond this length.
pub(crate) const MAX_DEPTH: u32 = 8;
/// The maximum number of bytes of added messages that wait for hooks in a conversation.
pub(crate) const MAX_ADDED_BYTES: usize = 16 << 20;
/// The maximum number of message names whose stages are cached.
const MAX_NAMES: usize = 4_096;

/// Sends messages to hooks.
#[derive(Debug)]
pub(super) struct Router {
    /// The number of the conversation.
    pub(super) conversation: u64,
    /// Encodes added messages.
    pub(super) coder: Coder,
    set: Arc<HookSet>,
    /// The stages that may concern a message, by its name.
    candidates: HashMap<String, Arc<[Candidate]>>,
    moment: Moment,
    next_number: u64,
    /// A lower bound on the deadlines.
    pub(super) due: Option<Duration>,
    /// Whether a hook with `catch_up` has been sent a message.
    pub(super) has_caught_up: bool,
    /// The numbers of the messages sent to hooks since they were last noted.
    sent: Vec<u64>,
    line: String,
    frame: Vec<u8>,
}

/// The outcome of looking for a message's next hook.
pub(super) enum Step {
    /// It was sent to a hook.
    Sent(Waiting),
    /// It must wait, so as not to overtake earlier messages.
    Blocked,
    /// It has passed all hooks.
    Through,
}

/// A message on its way to hooks.
pub(super) struct View<'v> {
    /// The message.
    pub(super) item: &'v Item<'v>,
    /// Its name.
    pub(super) name: &'v str,
    /// Its body, as the previous hook left it.
    pub(super) body: &'v [u8],
}

impl Router {
    pub(super) fn new(conversation: u64, coder: Coder, set: Arc<HookSet>) -> Self {
        Self {
            conversation,
            coder,
            set,
            candidates: HashMap::new(),
            moment: Moment::default(),
            next_number: 1,
            due: None,
            has_caught_up: false,
            sent: Vec::new(),
            line: String::new(),
            frame: Vec::new(),
        }
    }

    /// Switches to new subscriptions.
    pub(super) fn use_set(&mut self, set: Arc<HookSet>) {
        self.set = set;
        self.candidates.clear();
    }

    /// The name of a required hook that is not running.
    pub(super) fn missing(&self) -> Option<&str> {
        self.set.missing.as_deref()
    }

    /// The numbers of the messages sent to hooks since the last call.
    pub(super) fn take_sent(&mut self) -> impl Iterator<Item = u64> + '_ {
        self.sent.drain(..)
    }

    /// The stages that concern messages of this name.
    pub(super) fn candidates(&mut self, name: &str) -> Arc<[Candidate]> {
        if let Some(known) = self.candidates.get(name) {
            return Arc::clone(known);
        }
        if self.candidates.len() >= MAX_NAMES {
            self.candidates.clear();
        }
        let found: Arc<[Candidate]> = self.set.candidates(self.coder.family(), name).into();
        self.candidates.insert(name.to_owned(), Arc::clone(&found));
        found
    }

    /// Sends a message to the next hook that wants to see it. `tree` is called only if necessary.
    pub(super) fn step<'v>(
        &mut self,
        progress: &mut Progress,
        view: &View<'v>,
        tree: &dyn Fn() -> &'v Tree<'v>,
        reach: Reach,
        now: Duration,
        effects: &mut Effects,
    ) -> Step {
        let candidates = self.candidates(view.name);
        let set = Arc::clone(&self.set);
        let subject = |filter: &Filter| filter.matches(&Subject::of(view.item, view.name, tree()));
        for candidate in candidates.iter() {
            let Some(stage) = set.stage(candidate) else { continue };
            let link = &stage.link;
            let is_past = progress.place.is_some_and(|place| stage.place <= place);
            if is_past || progress.author == Some(link.number) {
                continue;
            }
            let what = (view.item.from, progress.flags);
            let matching = stage.matching(candidate, what, &subject);
            if matching.is_empty() {
                continue;
            }
            if !reach.allows(stage.place) {
                return Step::Blocked;
            }
            progress.place = Some(stage.place);
            let number = self.number();
            let id = MessageId { conversation: self.conversation, number };
            let ids = matching.iter().map(|it| it.id.as_str());
            let bytes = matching.iter().any(|it| it.bytes).then_some(view.body);
            let wants_fields = matching.iter().any(|it| it.fields);
            self.frame.clear();
            let is_frame = link.form == Form::Binary
                && !wants_fields
                && bytes.is_some_and(|bytes| {
                    let (flags, name) = (progress.flags, view.name);
                    let (from, range) = (view.item.from, &view.item.range);
                    MessageFrame { id, from, flags, range, name, bytes }.write(&mut self.frame)
                });
            let asked = if is_frame {
                link.ask_frame(&self.frame)
            } else {
                self.line.clear();
                message_head(id, ids, progress.flags, bytes, &mut self.line);
                let none = Tree::new();
                let shown = if wants_fields { tree() } else { &none };
                write_line(view.item, view.name, shown, link.json_safe, &mut self.line);
                link.ask(&self.line)
            };
            match asked {
                Ok(()) => {
                    let deadline = now.saturating_add(link.answer_time);
                    self.due = Some(self.due.map_or(deadline, |due| due.min(deadline)));
                    self.has_caught_up |= link.catch_up;
                    self.sent.push(number);
                    let link = Arc::clone(link);
                    return Step::Sent(Waiting { link, number, deadline: Some(deadline) });
                }
                // It has ended, which is logged elsewhere.
                Err(Unsent::Closed) if !link.is_required => {}
                Err(why) => miss(link, view.name, &why.to_string(), now, effects),
            }
        }
        Step::Through
    }

    /// Encodes messages that a hook adds. Sends it an error for each that cannot be encoded.
    pub(super) fn additions(
        &self,
        link: &Link,
        add: Vec<Addition>,
        (depth, room): (u32, usize),
        id: Option<&str>,
    ) -> VecDeque<Pending> {
        let mut room = room;
        let mut added = VecDeque::new();
        for (index, addition) in add.into_iter().enumerate() {
            let refuse = |why: &str| tell(link, id, &format!("add[{index}] was not added: {why}"));
            let Addition { to, name, content } = addition;
            let body = match content {
                Content::Bytes(body) => Ok(body),
                Content::Fields(fields, version) => {
                    let version = version.map(|it| ("version".to_owned(), Json::from(it)));
                    let name = name.as_deref().unwrap_or_default();
                    self.coder.encode(to.other(), name, fields, version)
                }
            };
            let body = match body {
                Ok(body) => body,
                Err(error) => {
                    refuse(&error.to_string());
                    continue;
                }
            };
            let Some(rest) = room.checked_sub(body.len()) else {
                refuse(&format!("more than {MAX_ADDED_BYTES} bytes of added messages are waiting"));
                continue;
            };
            room = rest;
            let is_through = !self.set.takes_fakes || depth > MAX_DEPTH || name.is_none();
            let name = (to.other(), name.unwrap_or_default());
            let kept = Kept::added(name, body, self.moment.clone(), &self.coder);
            added.push_back(Pending::addition(kept, link, depth, is_through));
        }
        added
    }

    /// Remembers when and between whom a message was sent, for messages that hooks add.
    pub(super) fn remember(&mut self, item: &Item<'_>) {
        self.moment.stamp = item.stamp;
        if self.moment.ends.is_none() {
            self.moment.ends = item.ends.cloned();
        }
    }

    pub(super) fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }
}

/// Sends a hook an error.
pub(super) fn tell(link: &Link, id: Option<&str>, text: &str) {
    // A hook that does not read its input misses the error, too.
    let _ = link.send(&error(id, text));
}

/// Continues without a hook, or ends the conversation if the hook is required.
pub(super) fn miss(link: &Link, name: &str, why: &str, now: Duration, effects: &mut Effects) {
    let hook = &link.name;
    if link.is_required {
        return effects.end(format!("the hook {hook} is required, but {why}"));
    }
    match link.warn(now) {
        None => {}
        Some(1) => effects.problem(format!("{name} continued without the hook {hook}: {why}")),
        Some(count) => effects.problem(format!(
            "{name} continued without the hook {hook}: {why}; {count} messages since the last \
             warning"
        )),
    }
}
