//! What nodes request from the leader, besides requests to its vault.

use std::net::{IpAddr, SocketAddr};

use worldwire_core::{Reader, Result, Sampler, Writer};
use worldwire_uru::types::Uuid;

use crate::uru::vault::ask::{Wire, unknown, wire_struct, wire_variants};
use crate::uru::vault::resume::Ticket;

/// The kinds of vault requests that clients of nodes can make.
pub(super) const OF_CLIENTS: std::ops::Range<u16> = 1..100;
/// The kinds of vault requests that ages on nodes can make.
pub(super) const OF_AGES: std::ops::Range<u16> = 100..130;
/// The kind of [`EnterAge`].
pub(in crate::uru) const ENTER_AGE: u16 = 1_000;
/// The kind of [`RenewTicket`].
pub(in crate::uru) const RENEW_TICKET: u16 = 1_020;
/// The kind of [`ResumeSession`].
pub(in crate::uru) const RESUME_SESSION: u16 = 1_021;

/// Lets a session's player into an age. The reply is [`EnteredAge`].
#[derive(Clone, Debug, PartialEq)]
pub(in crate::uru) struct EnterAge {
    /// The age's filename.
    pub(in crate::uru) filename: String,
    /// The instance.
    pub(in crate::uru) instance: Uuid,
    /// The address from which the player will connect.
    pub(in crate::uru) address: IpAddr,
    /// Whether the client needs an IPv4 address.
    pub(in crate::uru) needs_ipv4: bool,
}

wire_struct! {
    EnterAge { filename: String, instance: Uuid, address: IpAddr, needs_ipv4: bool }
}

/// Where to find an age.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::uru) struct EnteredAge {
    /// The number used to join it.
    pub(in crate::uru) number: u32,
    /// The Age node.
    pub(in crate::uru) age: u32,
    /// The IPv4 address of its server, if the client needs it.
    pub(in crate::uru) ipv4: [u8; 4],
    /// The public address of its server.
    pub(in crate::uru) host: String,
}

wire_struct! { EnteredAge { number: u32, age: u32, ipv4: [u8; 4], host: String } }

/// Lets the client of a session resume it later, through any process, with a new ticket. The reply
/// is empty.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::uru) struct RenewTicket {
    /// The ticket that the client has just presented. It must be the session's latest one.
    pub(in crate::uru) used: Option<Ticket>,
    /// The next ticket.
    pub(in crate::uru) new: Option<Ticket>,
}

wire_struct! { RenewTicket { used: Option<Ticket>, new: Option<Ticket> } }

/// Resumes the session that a client left in another process, as the requesting session. The reply
/// is a [`Resumed`](crate::uru::vault::resume::Resumed), if such a session exists.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::uru) struct ResumeSession {
    /// The ticket that the client has presented.
    pub(in crate::uru) presented: Ticket,
    /// The next ticket.
    pub(in crate::uru) new: Option<Ticket>,
}

wire_struct! { ResumeSession { presented: Ticket, new: Option<Ticket> } }

/// Something that happened to a session's client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClientReport {
    /// It has logged in.
    LoggedIn {
        /// Its address.
        ip: IpAddr,
        /// Its port.
        port: u32,
    },
    /// It has lost its connection. The session waits for it.
    Lost,
    /// It has reconnected.
    Resumed {
        /// Its address.
        ip: IpAddr,
        /// Its port.
        port: u32,
    },
    /// It has switched to another player, or to none.
    PlayerChanged,
}

wire_variants! {
    ClientReport {
        0 LoggedIn { ip: IpAddr, port: u32 },
        1 Lost,
        2 Resumed { ip: IpAddr, port: u32 },
        3 PlayerChanged,
    }
}

impl ClientReport {
    pub(in crate::uru) fn logged_in(address: SocketAddr) -> Self {
        Self::LoggedIn { ip: address.ip(), port: address.port().into() }
    }

    pub(in crate::uru) fn resumed(address: SocketAddr) -> Self {
        Self::Resumed { ip: address.ip(), port: address.port().into() }
    }
}

/// A client's address.
pub(super) fn address(ip: IpAddr, port: u32) -> SocketAddr {
    SocketAddr::new(ip, u16::try_from(port).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use crate::uru::vault::ask::{decoded, encoded};

    use super::*;

    fn survives<W: Wire>(seed: u64) {
        let value = W::sample(&mut Sampler::new(seed));
        assert_eq!(decoded::<W>(&encoded(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn requests_survive() {
        for seed in 0..200 {
            survives::<EnterAge>(seed);
            survives::<EnteredAge>(seed);
            survives::<RenewTicket>(seed);
            survives::<ResumeSession>(seed);
            survives::<ClientReport>(seed);
        }
    }
}
