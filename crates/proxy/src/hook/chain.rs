//! The hooks of one conversation, in order and without I/O: lines to hooks are queued, and time and
//! answers are arguments.

use core::cell::OnceCell;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use worldwire_core::{Limits, Tree};
use worldwire_dissect::Decision;

use super::link::Link;
use super::pending::{Pending, Progress, Reach, Waiting};
use super::protocol::{Action, Addition, Flags, MessageId, Reply, synced};
use super::router::{MAX_ADDED_BYTES, Router, Step, View, miss, tell};
use super::subscription::HookSet;
use crate::coder::Coder;
use crate::handler::{Effects, Finished, Passing};
use crate::kept::Kept;

/// The maximum number of messages for which the hook that changed them is remembered, to report
/// refusals.
const MAX_AUTHORS: usize = 256;
/// The maximum number of messages from a side that are kept for a hook that may still subscribe to
/// them.
const MAX_LINGERING: usize = 4_096;

/// The messages of one conversation on their way through its hooks.
///
/// Each hook sees a message as the previous one left it. Every hook receives a side's messages in
/// the order in which they were sent, even if another hook answers them in a different order.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The messages on their way through the hooks, by sender.
    queues: [VecDeque<Pending>; 2],
    /// Messages that hooks add independently of an answer.
    loose: VecDeque<Pending>,
    router: Router,
    /// The hooks that changed messages, by ticket.
    authors: VecDeque<(u64, Arc<Link>)>,
    /// The list and the ticket of each message that hooks have not answered, by its number.
    asked: HashMap<u64, (usize, u64)>,
}

/// The index of `loose` among all lists. Those before it are the queues.
const LOOSE: usize = 2;

impl Chain {
    pub(crate) fn new(conversation: u64, coder: Coder, set: Arc<HookSet>) -> Self {
        let router = Router::new(conversation, coder, set);
        let queues = [VecDeque::new(), VecDeque::new()];
        let (loose, authors) = (VecDeque::new(), VecDeque::new());
        Self { queues, loose, router, authors, asked: HashMap::new() }
    }

    /// Switches to new subscriptions. Messages already in the chain continue from their positions.
    pub(crate) fn use_set(&mut self, now: Duration, set: Arc<HookSet>, effects: &mut Effects) {
        self.router.use_set(set);
        for pending in self.queues.iter_mut().flatten() {
            pending.is_lingering = false;
        }
        if !self.queues.iter().all(VecDeque::is_empty) {
            self.run(now, effects);
        }
    }

    /// Confirms to a hook that all its earlier lines have been handled, and that the messages it
    /// wanted by then have been sent.
    pub(crate) fn sync(&self, link: &Link, id: &str) {
        // A hook that does not read its input misses the confirmation.
        let _ = link.send(&synced(self.router.conversation, id));
    }

    /// Handles a message. Holds it if a hook wants to see it.
    pub(crate) fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) {
        let router = &mut self.router;
        if let Some(name) = router.missing() {
            return effects.end(format!("the hook {name} is required, but it is not running"));
        }
        let list = passing.item.from.index();
        let queue = &mut self.queues[list];
        // A hook may subscribe to the message when it answers an earlier one.
        let lingers = queue.len() < MAX_LINGERING
            && router.has_caught_up
            && (queue.back().is_some_and(|pending| pending.is_lingering && !pending.is_done)
                || queue.iter().rev().any(Pending::is_catching_up));
        let is_wanted = !router.candidates(passing.name).is_empty();
        if !is_wanted && !lingers {
            return;
        }
        router.coder.learn_from(passing.message());
        router.remember(passing.item);
        let is_before = |pending: &&Pending| !pending.is_done && !pending.is_lingering;
        let last = is_wanted.then(|| queue.iter().rfind(is_before)).flatten();
        // No message has passed more stages than the one before it.
        let reach = last.map_or(Reach::Anywhere, |it| Reach::UpTo(it.progress.place));
        let mut progress = Progress::default();
        progress.flags.modified = passing.is_changed;
        progress.flags.silenced = passing.is_dropped;
        let view = View { item: passing.item, name: passing.name, body: passing.body };
        let tree = || passing.tree();
        let step = router.step(&mut progress, &view, &tree, reach, passing.now, effects);
        let is_lingering = matches!(step, Step::Through);
        let waiting = match step {
            Step::Through if !lingers => return,
            Step::Through | Step::Blocked => None,
            Step::Sent(waiting) => Some(waiting),
        };
        let ticket = router.number();
        let message = Some(Kept::new(passing, &router.coder));
        let pending = Pending { ticket, message, progress, waiting, ..Pending::default() };
        queue.push_back(Pending { is_lingering, ..pending });
        note_sent(&mut self.router, &mut self.asked, (list, ticket));
        effects.wait(ticket);
    }

    /// Handles a hook's answer.
    pub(crate) fn answer(
        &mut self,
        now: Duration,
        link: &Arc<Link>,
        number: u64,
        Reply { add, action }: Reply,
        effects: &mut Effects,
    ) {
        let id = MessageId { conversation: self.router.conversation, number }.to_string();
        let Some((list, at)) = self.locate(link, number) else {
            const UNKNOWN: &str =
                "no such message is waiting for an answer: it has been answered or has timed out";
            return tell(link, Some(&id), UNKNOWN);
        };
        let room = MAX_ADDED_BYTES.saturating_sub(self.added_bytes(&add));
        let root = &mut self.lists_mut()[list][at];
        let ticket = root.ticket;
        let depth = root.find(link.number, number).map_or(0, |it| it.progress.depth) + 1;
        let added = self.router.additions(link, add, (depth, room), Some(&id));
        let root = &mut self.lists_mut()[list][at];
        let was_catching_up = root.is_catching_up();
        let Some(pending) = root.find(link.number, number) else { return };
        if action == Action::Hold {
            if let Some(waiting) = &mut pending.waiting {
                waiting.deadline = None;
            }
            // The message is still held, so the additions do not wait for it.
            self.add_loose(link, added);
            self.run_list(LOOSE, now, effects);
        } else {
            pending.waiting = None;
            pending.before.extend(added);
            if let Err(text) = pending.apply(action) {
                tell(link, Some(&id), &text);
            }
            self.remember_author(ticket, link);
            self.asked.remove(&number);
            self.run_after((list, at), was_catching_up, now, effects);
        }
    }

    /// Adds messages independently of an answer.
    pub(crate) fn add(
        &mut self,
        now: Duration,
        link: &Arc<Link>,
        add: Vec<Addition>,
        effects: &mut Effects,
    ) {
        let room = MAX_ADDED_BYTES.saturating_sub(self.added_bytes(&add));
        let added = self.router.additions(link, add, (1, room), None);
        self.add_loose(link, added);
        self.run_list(LOOSE, now, effects);
    }

    /// Continues without a hook that has ended.
    pub(crate) fn gone(&mut self, now: Duration, link: &Link, effects: &mut Effects) {
        if link.is_required {
            effects.end(format!("the hook {} is required, but it has ended", link.name));
        }
        let mut given_up = Vec::new();
        self.each_waiting(&mut |waiting, _| {
            if let Some(gone) = waiting.take_if(|it| it.link.number == link.number) {
                given_up.push(gone.number);
            }
        });
        self.give_up(&given_up);
        self.run(now, effects);
    }

    /// Continues without the hooks that have timed out.
    pub(crate) fn timeout(&mut self, now: Duration, effects: &mut Effects) {
        let conversation = self.router.conversation;
        let mut due: Option<Duration> = None;
        let mut given_up = Vec::new();
        self.each_waiting(&mut |waiting, name| {
            let Some(Waiting { link, number, deadline: Some(deadline) }) = waiting else { return };
            if *deadline > now {
                due = Some(due.map_or(*deadline, |due| due.min(*deadline)));
                return;
            }
            let why = format!("it did not answer within {:?}", link.answer_time);
            let id = MessageId { conversation, number: *number }.to_string();
            tell(link, Some(&id), "no answer in time; the message continued unchanged");
            miss(link, name, &why, now, effects);
            given_up.push(*number);
            *waiting = None;
        });
        self.give_up(&given_up);
        self.router.due = due;
        self.run(now, effects);
    }

    /// The time by which to call [`timeout`](Self::timeout).
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        self.router.due
    }

    /// Reports to a hook that its request could not be carried out.
    pub(crate) fn refused(&self, ticket: u64, why: &str) {
        if let Some((_, link)) = self.authors.iter().rfind(|(known, _)| *known == ticket) {
            tell(link, None, why);
        }
    }

    /// Sends messages on to their next hooks and finishes those that have passed all.
    fn run(&mut self, now: Duration, effects: &mut Effects) {
        for list in [LOOSE, 0, 1] {
            self.run_list(list, now, effects);
        }
    }

    fn run_list(&mut self, list: usize, now: Duration, effects: &mut Effects) {
        self.run_from((list, 0), None, now, effects);
    }

    /// Like [`run`](Self::run), after an answer. Runs only the message at this position and later
    /// ones that it may have kept waiting, because running all would be slow if thousands wait.
    fn run_after(
        &mut self,
        (list, at): (usize, usize),
        was_catching_up: bool,
        now: Duration,
        effects: &mut Effects,
    ) {
        match list {
            LOOSE => self.run_list(list, now, effects),
            _ => self.run_from((list, at), Some(was_catching_up), now, effects),
        }
    }

    /// Runs the messages of a list, starting at a position. If only the message there was answered,
    /// `answered` says whether its hook was catching up.
    fn run_from(
        &mut self,
        (list, from): (usize, usize),
        answered: Option<bool>,
        now: Duration,
        effects: &mut Effects,
    ) {
        let Self { queues: [client, server], loose, router, asked, .. } = self;
        let queue = match list {
            0 => client,
            1 => server,
            _ => loose,
        };
        let mut reach = Reach::Anywhere;
        let mut lingers = false;
        for earlier in queue.range(..from).rev().filter(|it| !it.is_done && !it.is_lingering) {
            reach = reach.behind(earlier.progress.place);
            lingers |= earlier.is_catching_up();
            // No message has passed more stages than the one before it, unless that one lingered.
            if !router.has_caught_up {
                break;
            }
        }
        let answered_at = queue.get(from).and_then(|pending| pending.progress.place);
        for pending in queue.range_mut(from..).filter(|pending| !pending.is_done) {
            if lingers && pending.is_lingering {
                continue;
            }
            let place = pending.progress.place;
            if pending.advance(router, reach, now, effects) {
                if lingers {
                    pending.is_lingering = true;
                } else {
                    effects.finish(pending.finish());
                }
                continue;
            }
            note_sent(router, asked, (list, pending.ticket));
            if list == LOOSE {
                // Independent additions are sent one by one.
                break;
            }
            reach = reach.behind(pending.progress.place);
            lingers |= pending.is_catching_up();
            // Later messages are kept waiting by this one, as before.
            let is_same = pending.progress.place == place && place <= answered_at;
            if is_same && answered.is_some_and(|was_catching_up| lingers || !was_catching_up) {
                break;
            }
        }
        while queue.front().is_some_and(|pending| pending.is_done) {
            queue.pop_front();
        }
    }

    /// Forgets messages that no longer wait for a hook.
    fn give_up(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.asked.remove(number);
        }
    }

    fn add_loose(&mut self, link: &Arc<Link>, added: VecDeque<Pending>) {
        if added.is_empty() {
            return;
        }
        let ticket = self.router.number();
        self.loose.push_back(Pending { ticket, before: added, ..Pending::default() });
        self.remember_author(ticket, link);
    }

    fn remember_author(&mut self, ticket: u64, link: &Arc<Link>) {
        if self.authors.len() >= MAX_AUTHORS {
            self.authors.pop_front();
        }
        self.authors.push_back((ticket, Arc::clone(link)));
    }

    /// The position of the message that a hook answers: the list, and the index in it.
    fn locate(&self, link: &Link, number: u64) -> Option<(usize, usize)> {
        let (list, ticket) = *self.asked.get(&number)?;
        let queue = self.queues.get(list).unwrap_or(&self.loose);
        let at = queue.binary_search_by_key(&ticket, |pending| pending.ticket).ok()?;
        queue.get(at)?.asks(link.number, number).then_some((list, at))
    }

    fn lists_mut(&mut self) -> [&mut VecDeque<Pending>; 3] {
        let [client, server] = &mut self.queues;
        [client, server, &mut self.loose]
    }

    fn each_waiting(&mut self, f: &mut dyn FnMut(&mut Option<Waiting>, &str)) {
        self.lists_mut().into_iter().flatten().for_each(|it| it.each_waiting(f));
    }

    /// The total size of waiting additions in bytes; 0, without counting, if `add` is empty.
    fn added_bytes(&self, add: &[Addition]) -> usize {
        if add.is_empty() {
            return 0;
        }
        self.queues.iter().chain([&self.loose]).flatten().map(Pending::added_bytes).sum()
    }
}

impl Pending {
    /// Sends it to its next hook, unless it is waiting for one. Returns true once it has passed
    /// all.
    fn advance(
        &mut self,
        router: &mut Router,
        reach: Reach,
        now: Duration,
        effects: &mut Effects,
    ) -> bool {
        if self.waiting.is_some() {
            return false;
        }
        while let Some(first) = self.before.front_mut() {
            if !first.advance(router, Reach::Anywhere, now, effects) {
                return false;
            }
            let Some(first) = self.before.pop_front() else { break };
            self.added.extend(first.added);
            if let Some(message) = first.message
                && !first.progress.flags.silenced
            {
                self.added.push((message.from.other(), message.body));
            }
        }
        let Some(message) = &self.message else { return true };
        if self.progress.is_through {
            return true;
        }
        let progress = &mut self.progress;
        let step = message.with_item(|item| {
            let cell = OnceCell::new();
            let view = View { item, name: &message.name, body: &message.body };
            let tree = || cell.get_or_init(|| item.tree(Tree::new(), &Limits::DEFAULT));
            router.step(progress, &view, &tree, reach, now, effects)
        });
        match step {
            Step::Through => true,
            Step::Blocked => false,
            Step::Sent(waiting) => {
                self.waiting = Some(waiting);
                false
            }
        }
    }

    /// What the exchange must do with a message that has passed all hooks.
    fn finish(&mut self) -> Finished {
        self.is_done = true;
        let Flags { modified, silenced, .. } = self.progress.flags;
        let decision = self.message.take().map(|message| match (silenced, modified) {
            (true, _) => Decision::Drop,
            (false, true) => Decision::instead(message.body),
            (false, false) => Decision::AsIs,
        });
        Finished { ticket: self.ticket, added: core::mem::take(&mut self.added), decision }
    }
}

/// Notes which message was sent to hooks since the last call.
fn note_sent(router: &mut Router, asked: &mut HashMap<u64, (usize, u64)>, message: (usize, u64)) {
    asked.extend(router.take_sent().map(|number| (number, message)));
}
