//! Summaries of one conversation, and of all of them.

use std::fmt;
use std::net::SocketAddr;

use crate::counts::Counts;
use crate::family::Family;
use crate::item::Time;

/// A summary of one conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Overview {
    /// Its number, counted from 0.
    pub stream: u64,
    /// The client: the end that opened the connection, unless its content shows otherwise.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// Whether it is UDP; otherwise it is TCP.
    pub datagrams: bool,
    /// Whether its first packets are missing.
    pub midstream: bool,
    /// Its family, once recognised.
    pub family: Option<&'static dyn Family>,
    /// The time of the first packet.
    pub first: Time,
    /// The time of the last packet.
    pub last: Time,
    /// Payload bytes from client and server.
    pub bytes: [u64; 2],
    /// Messages by dotted name and sender.
    pub messages: Counts,
    /// Messages that contain others, by name and content: `game.PropagateBuffer plNetMsgGameMessage
    /// pfKIMsg`.
    pub inside: Counts,
    /// The number of reported problems, undecodable messages included.
    pub problems: u64,
    /// The number of gaps in the capture: missing bytes of streams, missing datagrams.
    pub gaps: u64,
    /// The keys it was read with, as part of a key file. They decrypt it without the secrets of its
    /// server or account. Only set after the end, and only if [requested](crate::Options::secrets).
    pub secrets: Option<String>,
}

impl Overview {
    /// Swaps client and server, because the content shows that the server opened the connection.
    /// Message counts need no swap.
    pub(crate) fn swap(&mut self) {
        core::mem::swap(&mut self.client, &mut self.server);
        self.bytes.reverse();
    }
}

/// A summary of all conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of conversations.
    pub conversations: u64,
    /// The number of recognised conversations.
    pub recognised: u64,
    /// The number of messages.
    pub messages: u64,
    /// The number of problems, undecodable messages included.
    pub problems: u64,
    /// The number of gaps.
    pub gaps: u64,
}

impl Summary {
    /// Adds a conversation.
    pub(crate) fn with(self, overview: &Overview) -> Self {
        Self {
            conversations: self.conversations + 1,
            recognised: self.recognised + u64::from(overview.family.is_some()),
            messages: self.messages + overview.messages.total(),
            problems: self.problems + overview.problems,
            gaps: self.gaps + overview.gaps,
        }
    }
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
