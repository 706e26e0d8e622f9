//! Hooks: programs in any language that see and change messages.
//!
//! A hook exchanges lines of JSON with the proxy, over the standard streams of a process that the
//! proxy starts, or over a socket. `docs/hooks.md` describes the lines; `docs/hooks.schema.json` is
//! their schema.
//!
//! * `protocol`: the lines; `frames`: their binary form;
//! * `subscription`: the messages that hooks want to see, and the order of hooks;
//! * `chain`: the messages of a conversation on their way through the hooks, without I/O;
//!   `pending`: such a message; `router`: sends it to its next hook;
//! * `link`: the lines that wait for one hook;
//! * `hub`: all hooks and all conversations;
//! * `serve`, `process`, `socket`: the streams to hooks.

mod chain;
mod definitions;
mod frames;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod hub;
mod link;
mod pending;
mod process;
mod protocol;
mod router;
mod serve;
mod socket;
mod subscription;

use core::fmt;
use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use worldwire_core::Side;
use worldwire_dissect::{Definitions, Ends};
use worldwire_net::Signal;

use crate::coder::Coder;
use crate::exchange::Known;
use crate::handler::{Effects, Passing};
use chain::Chain;
use hub::{Event, Hub, HubSettings};

/// Which hooks to use.
#[derive(Clone, Debug)]
pub struct HookOptions {
    /// Commands to run.
    pub commands: Vec<HookCommand>,
    /// Sockets on which to listen for hooks that the proxy does not start.
    pub sockets: Vec<HookSocket>,
    /// Closes conversations instead of continuing without a hook: if one of the commands is not
    /// running, if no hook is connected to one of the sockets, or if a hook does not answer.
    pub is_required: bool,
    /// How long a hook may take to answer. Default 1 s.
    pub answer_time: Duration,
    /// The delay before a command that has ended is restarted. It doubles each time, up to a
    /// minute. Default 1 s.
    pub restart_after: Duration,
}

/// A command that the proxy runs as a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand {
    /// The command with its arguments, as a shell understands it.
    pub command: String,
    /// Its name in the log, until the hook states one.
    pub name: String,
    /// The number of times in a row that it can end within a minute of its start before it is no
    /// longer restarted. By default, it is always restarted.
    pub max_failures: Option<u32>,
}

impl From<String> for HookCommand {
    fn from(command: String) -> Self {
        Self { name: command.clone(), command, max_failures: None }
    }
}

/// A socket on which to listen for hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookSocket {
    /// A Unix socket, which only its owner can access.
    Unix(PathBuf),
    /// A TCP port. Anyone who can connect to it can read and change messages.
    Tcp(SocketAddr),
}

/// The hooks of a proxy.
#[derive(Clone, Debug)]
pub struct Hooks {
    hub: Arc<Hub>,
    addresses: Vec<SocketAddr>,
    /// Closed when all commands have ended.
    running: watch::Receiver<()>,
}

/// An event from a hook about a conversation, for [`Exchange::hook`](crate::Exchange::hook).
pub struct HookEvent(Event);

/// How long to wait at startup until all commands have sent their hello.
const START_TIME: Duration = Duration::from_secs(10);
/// The maximum number of events waiting for a conversation. Beyond that, hooks must wait.
const MAX_EVENTS: usize = 1_024;

impl Default for HookOptions {
    fn default() -> Self {
        Self {
            commands: Vec::new(),
            sockets: Vec::new(),
            is_required: false,
            answer_time: Duration::from_secs(1),
            restart_after: Duration::from_secs(1),
        }
    }
}

impl Hooks {
    /// Starts all commands and opens all sockets. Waits until each command has sent its hello or
    /// ended, for at most ten seconds. The signal ends the wait and all hooks.
    ///
    /// # Errors
    /// Those of binding a socket. A command that cannot be run is logged and retried.
    pub async fn start(
        options: HookOptions,
        definitions: Arc<Definitions>,
        signal: Signal,
    ) -> io::Result<Self> {
        let HookOptions { commands, sockets, is_required, answer_time, restart_after } = options;
        let mut listeners = Vec::new();
        for socket in &sockets {
            listeners.push(socket::Listener::bind(socket).await?);
        }
        let settings = HubSettings { is_required, answer_time };
        let names = commands.iter().map(|command| command.name.clone());
        let names = names.chain(sockets.iter().map(HookSocket::to_string));
        let hub = Arc::new(Hub::new(names, settings, definitions));
        let addresses = listeners.iter().filter_map(socket::Listener::address).collect();
        let (running, is_running) = watch::channel(());
        let running = Arc::new(running);
        let mut source = 0;
        for command in commands {
            let (hub, signal, running) = (Arc::clone(&hub), signal.clone(), Arc::clone(&running));
            tokio::spawn(async move {
                process::run(hub, source, command, restart_after, signal).await;
                drop(running);
            });
            source += 1;
        }
        drop(running);
        let started = source;
        for listener in listeners {
            tokio::spawn(socket::run(Arc::clone(&hub), source, listener, signal.clone()));
            source += 1;
        }
        let mut stopped = signal;
        tokio::select! {
            _ = tokio::time::timeout(START_TIME, hub.has_first(started)) => {}
            () = stopped.stopping() => {}
        }
        Ok(Self { hub, addresses, running: is_running })
    }

    /// The addresses of the TCP sockets, in the order of the options.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// After the signal, waits for the commands to end, because they may have something to save.
    /// Those that do not end within seconds are killed.
    pub async fn ended(&mut self) {
        // Nothing is ever sent here, so this waits until all commands have ended.
        let _ = self.running.changed().await;
    }

    /// Whether every command is running and a hook is connected to every socket.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.hub.is_complete()
    }

    /// Opens a conversation to hooks. Pass the first result to
    /// [`Exchange::with_hooks`](crate::Exchange::with_hooks), and the events to
    /// [`Exchange::hook`](crate::Exchange::hook).
    #[must_use]
    pub fn join(
        &self,
        conversation: u64,
        known: Known,
        ends: Option<&Ends>,
    ) -> (ConversationHooks, mpsc::Receiver<HookEvent>) {
        let (sender, receiver) = mpsc::channel(MAX_EVENTS);
        let ends = ends.map(|ends| Side::BOTH.map(|side| ends.of(side).to_string()));
        let (set, version) = self.hub.open(conversation, known.family, ends, sender);
        let chain = Chain::new(conversation, Coder::new(known), set);
        let hub = Arc::clone(&self.hub);
        (ConversationHooks { hub, conversation, version, chain }, receiver)
    }
}

/// The hooks of one conversation, from [`Hooks::join`]. Dropping it closes the conversation to them.
#[derive(Debug)]
pub struct ConversationHooks {
    hub: Arc<Hub>,
    conversation: u64,
    /// The version of the subscriptions in use.
    version: u64,
    chain: Chain,
}

impl ConversationHooks {
    fn refresh(&mut self, now: Duration, effects: &mut Effects) {
        if let Some((set, version)) = self.hub.newer_than(self.version) {
            self.version = version;
            self.chain.use_set(now, set, effects);
        }
    }

    /// Handles a message after all handlers.
    pub(crate) fn message(&mut self, passing: &Passing<'_>, effects: &mut Effects) {
        self.refresh(passing.now, effects);
        self.chain.message(passing, effects);
    }

    /// Called when time has reached the last [deadline](Self::poll_timeout).
    pub(crate) fn timeout(&mut self, now: Duration, effects: &mut Effects) {
        self.chain.timeout(now, effects);
    }

    /// When to call [`timeout`](Self::timeout) at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        self.chain.poll_timeout()
    }

    /// Handles an event from a hook.
    pub(crate) fn event(
        &mut self,
        now: Duration,
        HookEvent(event): HookEvent,
        effects: &mut Effects,
    ) {
        self.refresh(now, effects);
        match event {
            Event::Answer(link, number, reply) => {
                self.chain.answer(now, &link, number, reply, effects);
            }
            Event::Add(link, messages) => self.chain.add(now, &link, messages, effects),
            Event::Sync(link, id) => self.chain.sync(&link, &id),
            Event::Gone(link) => self.chain.gone(now, &link, effects),
        }
    }

    /// Tells a hook that a part of its decision under this ticket could not be carried out.
    pub(crate) fn refused(&self, ticket: u64, why: &str) {
        self.chain.refused(ticket, why);
    }
}

impl Drop for ConversationHooks {
    fn drop(&mut self) {
        self.hub.close(self.conversation);
    }
}

impl fmt::Debug for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HookEvent").finish_non_exhaustive()
    }
}

impl fmt::Display for HookSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
