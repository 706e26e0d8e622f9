//! The shared part of all families' targets: roles, and conversations as seeds.

use std::time::Duration;

use super::{Command, Operation, list};
use crate::Side;

/// The role of the connection under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A client.
    Client,
    /// A server.
    Server,
    /// An observer of both.
    Observer,
    /// A relay between both.
    Relay,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Client, Self::Server, Self::Observer, Self::Relay];
}

/// Creates the targets `PREFIX_client`, `PREFIX_server`, `PREFIX_observer` and `PREFIX_relay` from
/// a function that drives a role with an input, and one that returns a role's seeds.
#[macro_export]
#[doc(hidden)]
macro_rules! role_targets {
    ($prefix:literal, $drive:expr, $seeds:expr) => {
        &[
            $crate::role_targets!(@ $prefix, "_client", Client, $drive, $seeds),
            $crate::role_targets!(@ $prefix, "_server", Server, $drive, $seeds),
            $crate::role_targets!(@ $prefix, "_observer", Observer, $drive, $seeds),
            $crate::role_targets!(@ $prefix, "_relay", Relay, $drive, $seeds),
        ]
    };
    (@ $prefix:literal, $name:literal, $role:ident, $drive:expr, $seeds:expr) => {
        $crate::testing::Target {
            name: concat!($prefix, $name),
            run: |data| _ = $drive($crate::testing::operations::Role::$role, data),
            seeds: || $seeds($crate::testing::operations::Role::$role),
        }
    };
}

/// A conversation in plaintext that reaches deep states, with every command that the role accepts:
/// setup, eight rounds of messages and, for an observer, a gap in the client's stream with the
/// messages after it. The first byte is `choice`.
#[must_use]
pub fn conversation(
    role: Role,
    choice: u8,
    setup: &[(Side, &[u8])],
    messages: impl Fn(u8) -> Vec<(Side, Vec<u8>)>,
    after_gap: &[Vec<u8>],
) -> Vec<u8> {
    let mut seed = vec![choice];
    let mut put = |operations: &[Operation<'_>]| seed.extend(list(operations));
    put(&[Operation::Now(Command::Send(b"early"))]);
    setup.iter().for_each(|(side, bytes)| put(&[Operation::Bytes(*side, bytes)]));
    put(&[Operation::Lazy(choice.is_multiple_of(3))]);
    for round in 0..8 {
        put(&[
            Operation::OnPiece(Command::Send(b"answer")),
            Operation::OnPiece(match round % 4 {
                0 => Command::AsIs,
                1 => Command::Drop,
                2 => Command::Instead(b"other"),
                _ => Command::Inject(Side::Client, b"more"),
            }),
            Operation::OnPiece(Command::Hold),
            Operation::Now(Command::Release(&[round, round % 3, 2])),
        ]);
        messages(round).iter().for_each(|(side, bytes)| put(&[Operation::Bytes(*side, bytes)]));
        put(&[
            Operation::Poll(3),
            Operation::Transmit(Side::Client, 1),
            Operation::Now(Command::Inject(Side::Server, b"here")),
        ]);
    }
    put(&[Operation::Lazy(false), Operation::Timeout]);
    if role == Role::Observer {
        put(&[Operation::Gap(Side::Client, 1024)]);
        after_gap.iter().for_each(|bytes| put(&[Operation::Bytes(Side::Client, bytes)]));
    }
    put(&[
        Operation::End(Side::Server),
        Operation::Wait(Duration::from_secs(50)),
        Operation::Datagram(Side::Client, b"udp"),
    ]);
    seed
}
