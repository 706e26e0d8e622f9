//! A message on its way through the hooks of a conversation.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use worldwire_core::Side;

use super::link::Link;
use super::protocol::{Action, Flags};
use super::subscription::StagePlace;
use crate::kept::Kept;

/// A message that waits for hooks, with the messages to add before it.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Identifies it to the exchange. Messages that hooks add have none.
    pub(crate) ticket: u64,
    /// `None` if there are only additions.
    pub(crate) message: Option<Kept>,
    pub(crate) progress: Progress,
    pub(crate) waiting: Option<Waiting>,
    /// Additions that have not passed all hooks yet, in order.
    pub(crate) before: VecDeque<Self>,
    /// Additions that have passed all hooks.
    pub(crate) added: Vec<(Side, Vec<u8>)>,
    pub(crate) is_done: bool,
    /// Whether no hook wanted it last time. It stays because a hook that has not answered an earlier
    /// message may still subscribe to it.
    pub(crate) is_lingering: bool,
}

/// How far a message has progressed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// The last stage to which it was sent.
    pub(crate) place: Option<StagePlace>,
    pub(crate) flags: Flags<bool>,
    /// The hook that added it. That hook does not see the message.
    pub(crate) author: Option<u64>,
    /// The length of the chain of additions that led to it; see
    /// [`MAX_DEPTH`](super::router::MAX_DEPTH).
    pub(crate) depth: u32,
    /// Whether it is hidden from all hooks.
    pub(crate) is_through: bool,
}

/// A message that a hook must answer.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) link: Arc<Link>,
    pub(crate) number: u64,
    /// When the message continues unchanged; `None` if the hook holds it.
    pub(crate) deadline: Option<Duration>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.link.answered();
    }
}

/// The last stage that a message may reach without overtaking earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Any stage.
    Anywhere,
    /// This stage; `None` is before the first.
    UpTo(Option<StagePlace>),
}

impl Reach {
    pub(crate) fn allows(self, place: StagePlace) -> bool {
        match self {
            Self::Anywhere => true,
            Self::UpTo(last) => last.is_some_and(|last| place <= last),
        }
    }

    /// The reach of the messages after one that has reached this place.
    pub(crate) fn behind(self, place: Option<StagePlace>) -> Self {
        match self {
            Self::Anywhere => Self::UpTo(place),
            Self::UpTo(last) => Self::UpTo(last.min(place)),
        }
    }
}

impl Pending {
    /// A message that a hook adds.
    pub(crate) fn addition(message: Kept, author: &Link, depth: u32, is_through: bool) -> Self {
        let flags = Flags { fake: true, ..Flags::default() };
        let author = Some(author.number);
        let progress = Progress { place: None, flags, author, depth, is_through };
        Self { message: Some(message), progress, ..Self::default() }
    }

    /// Whether new subscriptions of the hook for which it waits apply to later messages.
    pub(crate) fn is_catching_up(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.link.catch_up)
    }

    /// Whether a hook must answer a message with this number in it.
    pub(crate) fn asks(&self, hook: u64, number: u64) -> bool {
        self.is_waiting(hook, number) || self.before.iter().any(|it| it.asks(hook, number))
    }

    /// The message with this number that a hook must answer.
    pub(crate) fn find(&mut self, hook: u64, number: u64) -> Option<&mut Self> {
        if self.is_waiting(hook, number) {
            return Some(self);
        }
        self.before.iter_mut().find_map(|it| it.find(hook, number))
    }

    fn is_waiting(&self, hook: u64, number: u64) -> bool {
        let is_it = |it: &Waiting| it.number == number && it.link.number == hook;
        self.waiting.as_ref().is_some_and(is_it)
    }

    /// Calls `f` with everything in it that waits for a hook.
    pub(crate) fn each_waiting(&mut self, f: &mut dyn FnMut(&mut Option<Waiting>, &str)) {
        if self.waiting.is_some() {
            let name = self.message.as_ref().map_or("", |message| &message.name);
            f(&mut self.waiting, name);
        }
        self.before.iter_mut().for_each(|it| it.each_waiting(f));
    }

    /// The size of its additions in bytes.
    pub(crate) fn added_bytes(&self) -> usize {
        let own: usize = self.added.iter().map(|(_, body)| body.len()).sum();
        let body = |it: &Self| it.message.as_ref().map_or(0, |message| message.body.len());
        own + self.before.iter().map(|it| body(it) + it.added_bytes()).sum::<usize>()
    }

    /// Changes it as a hook requests. The error is a text for the hook.
    pub(crate) fn apply(&mut self, action: Action) -> Result<(), String> {
        let Some(message) = &mut self.message else { return Ok(()) };
        let flags = &mut self.progress.flags;
        match action {
            Action::Pass | Action::Hold => return Ok(()),
            Action::Forward => {}
            Action::Drop => {
                flags.silenced = true;
                return Ok(());
            }
            Action::Fields(fields) => {
                let replaced = message.replace_fields(fields);
                replaced
                    .map_err(|error| format!("{} continues unchanged: {error}", message.name))?;
                flags.modified = true;
            }
            Action::Bytes(bytes) => {
                message.body = bytes;
                flags.modified = true;
            }
        }
        flags.silenced = false;
        Ok(())
    }
}
