//! Decides what happens to the messages of an exchange: asks its handlers and keeps the messages
//! that they hold.

use core::fmt;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use worldwire_core::Side;
use worldwire_dissect::{Answer, Decider, Decision, Ends, HoldId, Item, NoteKind};

use crate::coder::Coder;
use crate::exchange::{Counts, Known};
use crate::handler::{Addition, Effects, Finished, Handler, Hold, Next, Passing, Report};
use crate::held::{Held, HeldMessages, waiting_bytes};
use crate::hook::ConversationHooks;
use crate::kept::Kept;
use crate::problem_rate::ProblemRate;

/// Decides what happens to messages.
pub(crate) struct Desk {
    pub(crate) handlers: Vec<Box<dyn Handler>>,
    /// Hooks, which see messages after the handlers.
    pub(crate) hooks: Option<ConversationHooks>,
    /// Encodes messages for the build that this conversation has revealed.
    pub(crate) coder: Coder,
    pub(crate) ends: Option<Ends>,
    /// Whether the handlers know that the conversation is established.
    pub(crate) is_announced: bool,
    pub(crate) now: Duration,
    pub(crate) name: String,
    /// Messages to add before the item just decided on.
    pub(crate) added: VecDeque<(Side, Vec<u8>)>,
    /// The message that the desk has just decided to hold.
    pub(crate) holding: Option<Held>,
    pub(crate) held: HeldMessages,
    pub(crate) reports: VecDeque<Report>,
    /// What the proxy did with messages. `None` unless the conversation is recorded.
    pub(crate) marks: Option<Vec<Mark>>,
    pub(crate) counts: Counts,
    /// The places in the rules whose messages could not be added.
    refused: HashMap<Arc<str>, ProblemRate>,
    pub(crate) next_number: u64,
    /// Whether a hook is ending the conversation.
    pub(crate) is_ending: bool,
}

/// What a proxy did with a message, for a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The sender of the message; for an added one, the side that appears to send it.
    pub(crate) from: Side,
    /// Whether the mark concerns the packet sent rather than the one received.
    pub(crate) leaves: bool,
    /// What was done: `changed auth.AgeReply`.
    pub(crate) text: String,
}

/// The maximum number of reports kept until they are polled. Later ones are dropped.
const MAX_REPORTS: usize = 1_024;
/// The maximum number of bytes of changed and added messages that wait for held ones. Further
/// changes are refused.
const MAX_WAITING_BYTES: usize = 32 << 20;
/// The maximum number of places in the rules whose refused messages are remembered.
const MAX_REFUSED: usize = 1_024;
/// The maximum number of times that a handler sees the same message again.
pub(crate) const MAX_AGAIN: usize = 64;

impl Desk {
    pub(crate) fn new(handlers: Vec<Box<dyn Handler>>, known: Known, ends: Option<Ends>) -> Self {
        Self {
            handlers,
            hooks: None,
            coder: Coder::new(known),
            ends,
            is_announced: false,
            now: Duration::ZERO,
            name: String::new(),
            added: VecDeque::new(),
            holding: None,
            held: HeldMessages::default(),
            reports: VecDeque::new(),
            marks: None,
            counts: Counts::default(),
            refused: HashMap::new(),
            next_number: 1,
            is_ending: false,
        }
    }

    /// Ends the conversation at the next opportunity.
    pub(crate) fn end(&mut self, why: String) {
        self.is_ending = true;
        self.report(Report::Problem(why));
    }

    /// Stores the hooks' decision about a held message.
    pub(crate) fn decide_held(
        &mut self,
        ticket: u64,
        added: Vec<(Side, Vec<u8>)>,
        decision: Decision<'static>,
    ) {
        let size = waiting_bytes(&added, &decision);
        let is_full =
            size > 0 && self.held.waiting_bytes().saturating_add(size) > MAX_WAITING_BYTES;
        let Some(id) = self.held.with_ticket(ticket) else { return };
        let decided = self.held.change(id, |held| {
            held.ticket = None;
            held.finished = Some(ticket);
            if !is_full {
                held.added.extend(added);
                held.decision = decision.clone();
            }
            (held.from, held.name.clone())
        });
        let Some((from, name)) = decided else { return };
        if is_full {
            let text = format!(
                "{name} was forwarded unchanged: more than {MAX_WAITING_BYTES} bytes of changed \
                 and added messages are waiting"
            );
            return self.refuse(Some(ticket), Report::Problem(text));
        }
        self.note_decision(from, &name, &decision);
    }

    /// Counts a message added to a side and notes it for a recording.
    pub(crate) fn note_addition(&mut self, to: Side) {
        self.counts.added += 1;
        self.mark(to.other(), true, "added", "a message");
    }

    /// Counts a decision and notes it for a recording.
    pub(crate) fn note_decision(&mut self, from: Side, name: &str, decision: &Decision<'_>) {
        self.counts.decided(decision);
        match decision {
            Decision::AsIs => {}
            Decision::Instead(_) => {
                self.mark(from, false, "changes", name);
                self.mark(from, true, "changed", name);
            }
            Decision::Drop => self.mark(from, false, "drops", name),
        }
    }

    /// Drops the messages that are still held when the conversation ends.
    pub(crate) fn drop_held(&mut self) {
        let mut dropped = 0_usize;
        for held in core::mem::take(&mut self.held).into_messages() {
            if held.decision != Decision::Drop {
                dropped += 1;
                self.note_decision(held.from, &held.name, &Decision::Drop);
            }
        }
        if dropped > 0 {
            let messages = if dropped == 1 { "held message was" } else { "held messages were" };
            let text = format!("{dropped} {messages} dropped: the conversation has ended");
            self.report(Report::Problem(text));
        }
    }

    /// Reports that something could not be carried out, including to the hook that requested it.
    pub(crate) fn refuse(&mut self, ticket: Option<u64>, report: Report) {
        if let (Some(ticket), Some(hooks), Report::Problem(why)) = (ticket, &self.hooks, &report) {
            hooks.refused(ticket, why);
        }
        self.report(report);
    }

    pub(crate) fn report(&mut self, report: Report) {
        if self.reports.len() < MAX_REPORTS {
            self.reports.push_back(report);
        }
    }

    fn mark(&mut self, from: Side, leaves: bool, action: &str, name: &str) {
        if let Some(marks) = &mut self.marks {
            let text = format!("the proxy {action} {name}");
            marks.push(Mark { from, leaves, text });
        }
    }

    /// The bytes of a message to add. `None` if it cannot be encoded, which is reported.
    pub(crate) fn encode(&mut self, to: Side, addition: Addition) -> Option<Vec<u8>> {
        let (name, fields, rule) = match addition {
            Addition::Body(body) => return Some(body),
            Addition::Named(name, fields, rule) => (name, fields, rule),
        };
        match self.coder.encode(to.other(), &name, fields, None) {
            Ok(body) => Some(body),
            Err(error) => {
                self.report_not_added(rule.as_ref(), &error);
                None
            }
        }
    }

    /// Reports that a message was not added: for a place in the rules, at most once a minute.
    pub(crate) fn report_not_added(&mut self, rule: Option<&Arc<str>>, error: &dyn fmt::Display) {
        let Some(rule) = rule else { return self.report(not_added(error)) };
        if self.refused.len() >= MAX_REFUSED && !self.refused.contains_key(rule) {
            self.refused.clear();
        }
        let rate = self.refused.entry(Arc::clone(rule)).or_default();
        if let Some(more) = rate.admit(self.now) {
            let text = format!("{rule}: the message was not added: {error}{more}");
            self.report(Report::Problem(text));
        }
    }

    /// Asks all handlers and hooks about one message.
    fn ask(&mut self, item: &Item<'_>) -> Answer {
        let Some(message) = item.message() else { return Decision::AsIs.into() };
        let mut name = core::mem::take(&mut self.name);
        name.clear();
        message.push_name(&mut name);
        let mut effects = Effects::default();
        if !core::mem::replace(&mut self.is_announced, true) {
            for handler in &mut self.handlers {
                handler.established(self.ends.as_ref(), &mut effects);
            }
        }
        let mut changed: Option<Vec<u8>> = None;
        let (mut index, mut again) = (0, 0);
        let mut is_dropped = false;
        loop {
            let known = changed.take();
            let passing =
                Passing::new((item, message), &name, self.now, known.as_deref(), is_dropped);
            let mut is_over = true;
            while let Some(handler) = self.handlers.get_mut(index) {
                let next = handler.message(&passing, &mut effects);
                is_dropped = effects.is_dropped.take().unwrap_or(is_dropped);
                if next == Next::Again && again < MAX_AGAIN {
                    again += 1;
                } else {
                    (index, again) = (index + 1, 0);
                }
                if effects.change.is_some() || is_dropped != passing.is_dropped {
                    is_over = false;
                    break;
                }
            }
            if is_over && let Some(hooks) = &mut self.hooks {
                hooks.message(&passing, &mut effects);
            }
            drop(passing);
            changed = effects.change.take().or(known);
            if is_over {
                break;
            }
        }
        self.counts.messages += 1;
        self.coder.learn_from(message);
        let mut added = VecDeque::new();
        for (to, addition) in effects.added {
            if let Some(body) = self.encode(to, addition) {
                added.push_back((to, body));
            }
        }
        for Finished { ticket, added: more, decision } in effects.finished {
            match decision {
                Some(decision) => self.decide_held(ticket, more, decision),
                None => added.extend(more),
            }
        }
        effects.reports.into_iter().for_each(|report| self.report(report));
        if let Some(why) = effects.end {
            self.end(why);
            self.name = name;
            return Decision::Drop.into();
        }
        let decision = match changed {
            _ if is_dropped => Decision::Drop,
            Some(body) => Decision::instead(body),
            None => Decision::AsIs,
        };
        let (hold, ticket) = (effects.hold, effects.ticket);
        let kept = (hold == Some(Hold::Open)).then(|| {
            let body = match &decision {
                Decision::Instead(body) => Some(&**body),
                _ => None,
            };
            let passing = Passing::new((item, message), &name, self.now, body, is_dropped);
            Kept::new(&passing, &self.coder)
        });
        self.counts.held += u64::from(hold.is_some());
        if ticket.is_none() {
            self.note_decision(item.from, &name, &decision);
        }
        if hold.is_some() || ticket.is_some() {
            self.mark(item.from, false, "holds", &name);
        }
        // Additions must not overtake earlier messages.
        let is_behind =
            added.iter().any(|(to, _)| *to == item.from.other()) && self.held.has_from(item.from);
        let answer = match hold.is_some() || ticket.is_some() || is_behind {
            false => decision.into(),
            true => {
                let (number, from) = (self.next_number, item.from);
                let before = if is_behind { core::mem::take(&mut added) } else { VecDeque::new() };
                let held = Held {
                    number,
                    name: name.clone(),
                    from,
                    hold,
                    ticket,
                    added: before,
                    finished: None,
                    decision,
                    kept,
                    since: self.now,
                };
                self.holding = Some(held);
                Answer::Hold
            }
        };
        self.added = added;
        self.name = name;
        answer
    }
}

impl Decider for Desk {
    fn decide(&mut self, item: &Item<'_>) -> Answer {
        if let Some(note) = item.note() {
            match note.kind {
                NoteKind::Problem | NoteKind::Warning => {
                    self.report(Report::Problem(note.text.clone()));
                }
                _ => {}
            }
            return Decision::AsIs.into();
        }
        match item.message() {
            // A required hook must not miss anything.
            Some(message) if message.is_message() && self.is_ending => Decision::Drop.into(),
            Some(message) if message.is_message() => self.ask(item),
            _ => Decision::AsIs.into(),
        }
    }

    fn held(&mut self, id: HoldId) {
        let Some(held) = self.holding.take() else { return };
        self.next_number += 1;
        if held.is_open() {
            let Held { number, from, .. } = held;
            self.report(Report::Held { id: number, name: held.name.clone(), from });
        }
        self.held.insert(id, held);
    }

    fn added(&mut self) -> Option<(Side, Vec<u8>)> {
        self.added.pop_front()
    }

    fn was_added(&mut self, to: Side) {
        self.counts.added += 1;
        let name = core::mem::take(&mut self.name);
        self.mark(to.other(), true, "added a message before", &name);
        self.name = name;
    }
}

impl Counts {
    fn decided(&mut self, decision: &Decision<'_>) {
        match decision {
            Decision::AsIs => {}
            Decision::Instead(_) => self.changed += 1,
            Decision::Drop => self.dropped += 1,
        }
    }
}

pub(crate) fn not_added(error: &dyn fmt::Display) -> Report {
    Report::Problem(format!("a message was not added: {error}"))
}
