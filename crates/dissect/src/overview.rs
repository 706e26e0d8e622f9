//! Conversations as a whole, and all of them together.

use std::fmt;
use std::net::SocketAddr;

use crate::counts::Counts;
use crate::family::Family;
use crate::item::Time;

/// What can be said of a conversation as a whole.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Overview {
    /// Its number.
    pub stream: u64,
    /// The client: the end that opened it, unless what was said shows otherwise.
    pub client: SocketAddr,
    /// The other end.
    pub server: SocketAddr,
    /// Whether it is UDP; otherwise it is TCP.
    pub datagrams: bool,
    /// Whether its first packets are missing.
    pub midstream: bool,
    /// Whose it is, if that is known.
    pub family: Option<&'static dyn Family>,
    /// When it began.
    pub first: Time,
    /// When its last packet came.
    pub last: Time,
    /// Bytes of payload from client and server.
    pub bytes: [u64; 2],
    /// Messages by dotted name, from client and server.
    pub messages: Counts,
    /// The same of messages that carry others, by their name and what is inside:
    /// `game.PropagateBuffer plNetMsgGameMessage pfKIMsg`.
    pub inside: Counts,
    /// What could not be read.
    pub problems: u64,
    /// Holes in the capture.
    pub gaps: u64,
    /// The keys that it was read with, as a part of a key file that opens it without the secrets of
    /// servers and accounts; for those who [ask](crate::Options::secrets), once it is over.
    pub secrets: Option<String>,
}

impl Overview {
    /// What was said shows that the end that opened it is the server. Messages know their sides.
    pub(crate) fn swap(&mut self) {
        core::mem::swap(&mut self.client, &mut self.server);
        self.bytes.reverse();
    }
}

/// What was read in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// All conversations.
    pub conversations: u64,
    /// Those that were recognised.
    pub recognised: u64,
    /// Messages.
    pub messages: u64,
    /// What could not be read.
    pub problems: u64,
    /// Holes in the capture.
    pub gaps: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let Self { conversations, recognised, messages, problems, gaps } = *self;
        write!(f, "{conversations} conversation{}", plural(conversations))?;
        if recognised != conversations {
            write!(f, " ({recognised} recognised)")?;
        }
        write!(f, ", {messages} message{}", plural(messages))?;
        if gaps > 0 {
            write!(f, ", {gaps} gap{}", plural(gaps))?;
        }
        if problems > 0 {
            write!(f, ", {problems} problem{}", plural(problems))?;
        }
        Ok(())
    }
}
