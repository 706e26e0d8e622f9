//! A relay of logins, driven by lists of operations.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use worldwire_core::Side;
use worldwire_core::connection::{Bounds, Inject as _, Sender as _};
use worldwire_core::testing::operations::{
    Command, Family, Operation, Statistics, list, run, sampler,
};
use worldwire_core::testing::{Target, encoded};

use super::login_machines::{random, server_keys, talk_at_auth, talk_at_margin};
use crate::crypt::{KnownSession, SessionKey};
use crate::frame::{Channel, MarginText, TcpFrame};
use crate::login::{
    LoginConnection, LoginKeys, LoginMessage, LoginRelayConfig, LoginSender, OwnLoginKeys,
};

/// The target in this file. The first byte selects the channel of changed and added messages, and
/// the relay's keys. Bytes after the [`MARK`] are a message to encrypt.
pub(super) const TARGETS: &[Target] =
    &[Target { name: "mxo_login_relay", run: |data| _ = drive(data), seeds }];

/// Small limits, so that lists of operations reach them.
const BOUNDS: Bounds = Bounds { queued_bytes: 32 << 10, queued_messages: 64 };
/// Precedes a message to encrypt. It cannot be a length, because no message has the length 0.
const MARK: &[u8] = b"\0encrypt ";
/// The longest message that one operation can hold after the mark.
const MAX_BODY_BYTES: usize = 191;
static KEY: LazyLock<SessionKey> = LazyLock::new(|| SessionKey::new(&[0x4b; 16]));

/// The keys of the relay: the server's own, or keys that replace them, with and without the
/// server's public key.
static KEYS: LazyLock<[Arc<LoginKeys>; 3]> = LazyLock::new(|| {
    let (key, public_key) = server_keys();
    let own = |server| {
        let (key, public_key) = (key.clone(), public_key.clone());
        Arc::new(LoginKeys::Own(Box::new(OwnLoginKeys { key, public_key, server })))
    };
    [Arc::new(LoginKeys::Server(Box::new(key.clone()))), own(Some(public_key.clone())), own(None)]
});

struct Run {
    channel: Channel,
}

impl Family for Run {
    type Connection = LoginConnection;

    fn bounds(&self) -> Bounds {
        BOUNDS
    }

    fn message(&mut self, from: Side, data: &[u8]) -> Vec<u8> {
        let message = LoginMessage::sample(&mut sampler(data), self.channel, from);
        encoded(|writer| message.encode(writer)).unwrap_or_default()
    }

    fn send(&mut self, sender: &mut LoginSender, data: &[u8]) {
        let message = LoginMessage::Other { opcode: 0x77, data: data.into() };
        assert!(sender.send(&message).is_err(), "a relay sends nothing of its own");
    }

    fn inject(&mut self, sender: &mut LoginSender, to: Side, data: &[u8]) {
        let message = self.message(to.other(), data);
        let _ = sender.inject(to, &message);
    }

    fn wire(&mut self, _: Side, bytes: &mut Vec<u8>) {
        // An encrypted message without any bytes passes through a relay, although no other piece is
        // empty.
        if let Some(body) = bytes.strip_prefix(MARK).filter(|body| !body.is_empty()) {
            *bytes = sealed(body);
        }
    }
}

fn drive(data: &[u8]) -> Statistics {
    let (choice, data) = data.split_first().unwrap_or((&0, data));
    let channel = if choice & 1 == 0 { Channel::Auth } else { Channel::Margin };
    let known = KnownSession { id: None, key: KEY.clone() };
    let config = LoginRelayConfig { bounds: BOUNDS, ..LoginRelayConfig::new([known].into()) };
    let mut relay = LoginConnection::relay(&config, &[6; 16], Duration::ZERO);
    let keys = usize::from((choice >> 1) & 3).checked_sub(1);
    if let Some(keys) = keys.and_then(|at| KEYS.get(at)) {
        relay = relay.with_keys(Arc::clone(keys), random(7));
    }
    run(relay, data, &mut Run { channel })
}

/// The frame of an encrypted message.
fn sealed(body: &[u8]) -> Vec<u8> {
    let frame = MarginText { time: 7, body: body.into() }.seal(&KEY, &[9; 16]);
    frame.and_then(|frame| encoded(|writer| frame.encode(writer))).unwrap_or_default()
}

/// The messages of both sides, in the form used in operations. On the margin channel, all but the
/// first are encrypted.
fn messages(channel: Channel) -> [Vec<Vec<u8>>; 2] {
    let bodies = match channel {
        Channel::Auth => talk_at_auth().0,
        Channel::Margin => talk_at_margin(),
    };
    bodies.map(|bodies| {
        let messages = bodies.into_iter().enumerate().map(|(index, body)| {
            match channel == Channel::Margin && index > 0 {
                true if body.len() <= MAX_BODY_BYTES => [MARK, &*body].concat(),
                true => sealed(&body),
                false => encoded(|writer| TcpFrame::of(&body).encode(writer)).unwrap_or_default(),
            }
        });
        messages.collect()
    })
}

fn seeds() -> Vec<Vec<u8>> {
    let talks = [operations(&messages(Channel::Auth)), operations(&messages(Channel::Margin))];
    (0..8).map(|choice: u8| [&[choice], &*talks[usize::from(choice & 1)]].concat()).collect()
}

/// A login in which messages are dropped, changed, added and held.
fn operations([client, server]: &[Vec<Vec<u8>>; 2]) -> Vec<u8> {
    let mut operations = vec![
        Operation::Now(Command::Inject(Side::Client, b"early")),
        Operation::Now(Command::Send(b"own")),
    ];
    for (index, message) in client.iter().enumerate() {
        // An encrypted message is one operation; anything else arrives in pieces.
        let middle = if message.starts_with(MARK) { 0 } else { message.len() / 2 };
        let (head, tail) = message.split_at(middle);
        operations.push(Operation::Bytes(Side::Client, head));
        operations.push(Operation::Bytes(Side::Client, tail));
        operations.extend(match index {
            2 => vec![Operation::OnPiece(Command::Instead(b"another"))],
            3 => vec![Operation::OnPiece(Command::Hold)],
            4 => vec![
                Operation::Now(Command::Inject(Side::Server, b"one more")),
                Operation::Now(Command::Release(&[0, 0])),
                Operation::OnPiece(Command::Drop),
            ],
            _ => Vec::new(),
        });
        operations.extend(server.get(index).map(|bytes| Operation::Bytes(Side::Server, bytes)));
    }
    operations.push(Operation::OnPiece(Command::Hold));
    let rest = server.iter().skip(client.len());
    operations.extend(rest.map(|bytes| Operation::Bytes(Side::Server, bytes)));
    operations.extend([
        Operation::Now(Command::Release(&[0, 1])),
        Operation::Bytes(Side::Client, &[0x90, 7, 1]),
        // A relay that is waiting for the account continues to read.
        Operation::End(Side::Client),
        Operation::Timeout,
    ]);
    list(&operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_get_far() {
        let messages: Vec<u64> = seeds().iter().map(|seed| drive(seed).messages).collect();
        assert_eq!(messages, [6, 40, 6, 40, 6, 40, 6, 40]);
    }
}
