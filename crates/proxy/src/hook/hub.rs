//! All hooks, all their subscriptions, and all conversations.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Notify, mpsc};
use worldwire_dissect::filter::Resolver;
use worldwire_dissect::{Definitions, Family};

use super::HookEvent;
use super::definitions::Catalogue;
use super::link::Link;
use super::protocol::{
    Addition, Hello, MAX_SUBSCRIPTIONS, Query, Reply, Wanted, closed, error, opened, welcome,
};
use super::subscription::{HookSet, Subscription};
use crate::log_text::push_safe;

/// The maximum number of hooks at the same time.
const MAX_HOOKS: usize = 64;

/// Connects hooks with conversations.
#[derive(Debug)]
pub(crate) struct Hub {
    settings: HubSettings,
    definitions: Arc<Definitions>,
    catalogue: OnceLock<Catalogue>,
    state: Mutex<HubState>,
    /// Increases when subscriptions change.
    version: AtomicU64,
    /// Notified when a hook has connected.
    came: Notify,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct HubSettings {
    pub(crate) is_required: bool,
    pub(crate) answer_time: Duration,
}

#[derive(Debug)]
struct HubState {
    /// The sources of hooks: commands, then sockets.
    sources: Vec<String>,
    /// The sources that have ended without a hook.
    failed: BTreeSet<usize>,
    hooks: Vec<Hook>,
    conversations: BTreeMap<u64, Conversation>,
    set: Arc<HookSet>,
    next_number: u64,
}

#[derive(Debug)]
struct Hook {
    source: usize,
    link: Arc<Link>,
    subscriptions: Vec<Arc<Subscription>>,
}

#[derive(Debug)]
struct Conversation {
    events: mpsc::Sender<HookEvent>,
    opened: String,
}

/// An event for a conversation.
#[derive(Debug)]
pub(crate) enum Event {
    /// A hook answered the message with this number.
    Answer(Arc<Link>, u64, Reply),
    /// A hook adds messages.
    Add(Arc<Link>, Vec<Addition>),
    /// A hook asks for a confirmation, with this id.
    Sync(Arc<Link>, String),
    /// A hook has ended.
    Gone(Arc<Link>),
}

impl Hub {
    pub(crate) fn new(
        sources: impl Iterator<Item = String>,
        settings: HubSettings,
        definitions: Arc<Definitions>,
    ) -> Self {
        let state = HubState {
            sources: sources.collect(),
            failed: BTreeSet::new(),
            hooks: Vec::new(),
            conversations: BTreeMap::new(),
            set: Arc::default(),
            next_number: 1,
        };
        let hub = Self {
            settings,
            definitions,
            catalogue: OnceLock::new(),
            state: Mutex::new(state),
            version: AtomicU64::new(0),
            came: Notify::new(),
        };
        hub.arrange(&mut hub.state());
        hub
    }

    /// The name of a source of hooks.
    pub(crate) fn source(&self, source: usize) -> String {
        self.state().sources.get(source).cloned().unwrap_or_default()
    }

    /// The name of the hook from a source, for the log. Until the hook has stated a name, it is the
    /// name of the source.
    pub(crate) fn label(&self, source: usize) -> String {
        let state = self.state();
        let hook = state.hooks.iter().find(|hook| hook.source == source);
        let name = hook.map(|hook| hook.link.name.clone());
        name.unwrap_or_else(|| state.sources.get(source).cloned().unwrap_or_default())
    }

    /// Waits until each of the first `count` sources has a hook, or has ended without one.
    pub(crate) async fn has_first(&self, count: usize) {
        loop {
            let came = self.came.notified();
            {
                let state = self.state();
                let is_settled = |source| state.has(source) || state.failed.contains(&source);
                if (0..count).all(is_settled) {
                    return;
                }
            }
            came.await;
        }
    }

    /// Whether conversations need every hook.
    pub(crate) fn is_required(&self) -> bool {
        self.settings.is_required
    }

    /// Notes that a source has ended, so that nobody waits for its hook.
    pub(crate) fn note_end(&self, source: usize) {
        self.state().failed.insert(source);
        self.came.notify_waiters();
    }

    /// Whether every source has a hook.
    pub(crate) fn is_complete(&self) -> bool {
        let state = self.state();
        (0..state.sources.len()).all(|source| state.has(source))
    }

    /// Admits a hook that has sent its hello. The error is a text for it.
    pub(crate) fn enter(&self, source: usize, hello: Hello) -> Result<Arc<Link>, String> {
        let Hello { name, json_safe, form, catch_up, subscriptions } = hello;
        let resolver = Resolver::new(&self.definitions);
        let read = read(subscriptions, &resolver)?;
        let mut state = self.state();
        if state.hooks.len() >= MAX_HOOKS {
            return Err(format!("there are already {MAX_HOOKS} hooks"));
        }
        let number = state.next_number;
        state.next_number += 1;
        let name = name.unwrap_or_else(|| state.sources.get(source).cloned().unwrap_or_default());
        let HubSettings { is_required, answer_time } = self.settings;
        let mut safe = String::new();
        push_safe(&mut safe, &name);
        let form = (form, catch_up);
        let link = Arc::new(Link::new((number, safe), is_required, answer_time, json_safe, form));
        let families: Vec<_> = self.definitions.families().iter().map(Family::name).collect();
        // The new link has room for all of these lines.
        let _ = link.send(&welcome(&families));
        for conversation in state.conversations.values() {
            let _ = link.send(&conversation.opened);
        }
        warn_of_doubts(&link, &read, &resolver);
        state.hooks.push(Hook { source, link: Arc::clone(&link), subscriptions: read });
        self.arrange(&mut state);
        self.came.notify_waiters();
        Ok(link)
    }

    /// Adds subscriptions of a hook. A subscription whose id is known is replaced.
    pub(crate) fn subscribe(&self, link: &Link, wanted: Vec<Wanted>) -> Result<(), String> {
        let resolver = Resolver::new(&self.definitions);
        let read = read(wanted, &resolver)?;
        warn_of_doubts(link, &read, &resolver);
        let mut state = self.state();
        let Some(hook) = state.hook(link) else { return Ok(()) };
        let mut subscriptions = hook.subscriptions.clone();
        subscriptions.retain(|known| read.iter().all(|new| new.id != known.id));
        subscriptions.extend(read);
        if subscriptions.len() > MAX_SUBSCRIPTIONS {
            return Err(format!("more than {MAX_SUBSCRIPTIONS} subscriptions"));
        }
        hook.subscriptions = subscriptions;
        self.arrange(&mut state);
        Ok(())
    }

    /// Removes subscriptions of a hook.
    pub(crate) fn unsubscribe(&self, link: &Link, ids: &[String]) -> Result<(), String> {
        let mut state = self.state();
        let Some(hook) = state.hook(link) else { return Ok(()) };
        let is_known = |id: &&String| hook.subscriptions.iter().any(|known| known.id == **id);
        let unknown = ids.iter().find(|id| !is_known(id));
        hook.subscriptions.retain(|known| !ids.contains(&known.id));
        self.arrange(&mut state);
        match unknown {
            Some(id) => Err(format!("there is no subscription \"{id}\"")),
            None => Ok(()),
        }
    }

    /// Passes an event from a hook to a conversation. Waits while the conversation's queue is full.
    pub(crate) async fn pass(&self, conversation: u64, event: Event) -> Result<(), String> {
        let events = self.state().conversations.get(&conversation).map(|it| it.events.clone());
        let closed = || format!("conversation {conversation} is not open");
        events.ok_or_else(closed)?.send(HookEvent(event)).await.map_err(|_| closed())
    }

    /// Forgets a hook that has ended. Its messages continue.
    pub(crate) async fn leave(&self, link: &Arc<Link>) {
        link.close();
        let conversations: Vec<_> = {
            let mut state = self.state();
            state.hooks.retain(|hook| hook.link.number != link.number);
            self.arrange(&mut state);
            state.conversations.values().map(|it| it.events.clone()).collect()
        };
        for events in conversations {
            let _ = events.send(HookEvent(Event::Gone(Arc::clone(link)))).await;
        }
    }

    /// Answers a query about definitions.
    pub(crate) fn look_up(&self, query: &Query) -> Result<String, String> {
        self.catalogue.get_or_init(|| Catalogue::new(&self.definitions)).answer(query)
    }

    /// Registers a new conversation. Returns all subscriptions and their version.
    pub(crate) fn open(
        &self,
        conversation: u64,
        family: &str,
        ends: Option<[String; 2]>,
        events: mpsc::Sender<HookEvent>,
    ) -> (Arc<HookSet>, u64) {
        let opened = opened(conversation, family, ends);
        let mut state = self.state();
        state.tell_all(&opened);
        state.conversations.insert(conversation, Conversation { events, opened });
        (Arc::clone(&state.set), self.version.load(Ordering::Acquire))
    }

    /// Removes a conversation that has ended.
    pub(crate) fn close(&self, conversation: u64) {
        let mut state = self.state();
        if state.conversations.remove(&conversation).is_some() {
            state.tell_all(&closed(conversation));
        }
    }

    /// All subscriptions and their version, if they have changed.
    pub(crate) fn newer_than(&self, version: u64) -> Option<(Arc<HookSet>, u64)> {
        if self.version.load(Ordering::Acquire) == version {
            return None;
        }
        let state = self.state();
        Some((Arc::clone(&state.set), self.version.load(Ordering::Acquire)))
    }

    /// Sorts all subscriptions into stages after a change.
    fn arrange(&self, state: &mut HubState) {
        let is_missing = |source: &usize| !state.has(*source);
        let missing = (0..state.sources.len()).find(is_missing);
        let missing = missing.filter(|_| self.settings.is_required);
        let missing = missing.and_then(|source| state.sources.get(source).cloned());
        let hooks = state.hooks.iter().map(|hook| (&hook.link, &*hook.subscriptions));
        state.set = Arc::new(HookSet::new(hooks, missing));
        self.version.fetch_add(1, Ordering::Release);
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HubState {
    fn has(&self, source: usize) -> bool {
        self.hooks.iter().any(|hook| hook.source == source)
    }

    fn hook(&mut self, link: &Link) -> Option<&mut Hook> {
        self.hooks.iter_mut().find(|hook| hook.link.number == link.number)
    }

    fn tell_all(&self, line: &str) {
        for hook in &self.hooks {
            // A hook that does not read its input misses the line.
            let _ = hook.link.send(line);
        }
    }
}

fn read(wanted: Vec<Wanted>, resolver: &Resolver<'_>) -> Result<Vec<Arc<Subscription>>, String> {
    let mut read: Vec<Arc<Subscription>> = Vec::new();
    for wanted in wanted {
        let subscription = Subscription::new(wanted, resolver)?;
        read.retain(|known| known.id != subscription.id);
        read.push(Arc::new(subscription));
    }
    Ok(read)
}

fn warn_of_doubts(link: &Link, subscriptions: &[Arc<Subscription>], resolver: &Resolver<'_>) {
    for subscription in subscriptions {
        if let Some(doubts) = subscription.doubts(resolver) {
            let _ = link.send(&error(None, &doubts));
        }
    }
}
