//! Compares the real server's messages with ours.

use std::collections::{BTreeMap, HashMap, HashSet};

use worldwire_core::Side;
use worldwire_uru::frame::Message;
use worldwire_uru::message::auth::client::ClientMessage as Ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;

use super::capture::Recorded;
use super::replay::{Heard, Ours, transaction};

/// The capabilities follow the register reply here, but precede it on dirtsand. Their compatible
/// form contains bytes that OpenUru clients mistake for a message, and these clients expect the
/// register reply first.
const CAPS: &str = "ServerCaps after ClientRegisterReply";
/// Dirtsand keeps no session for a client that loses its connection, so it sends no token.
const TOKEN: &str = "ServerAddr after ServerCaps";
/// Dirtsand replies to removals with the message number of a different reply; clients accept this.
const REMOVAL: &str = "VaultRemoveNodeReply where dirtsand sends VaultAddNodeReply";
/// Our shard announces a change before it replies to the request; dirtsand sends both concurrently,
/// in any order. Clients accept either.
const ORDER: &str = "notifications before the reply";
/// The game server saved the state of an age. Game connections are not replayed.
const GAME: &str = "VaultNodeChanged that no auth client caused";
/// Our shard marks a player offline as soon as the client deselects it; dirtsand waits for the
/// connection to end. Players in the same neighbourhood are notified.
const OFFLINE: &str = "VaultNodeChanged of a player whose client chose none";

/// If this much time has passed since a client's last message, the real server's message must have
/// a different cause.
const CAUSE: i64 = 100_000_000;

/// The result of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) connections: usize,
    pub(crate) replies: usize,
    pub(crate) notifications: usize,
    /// The number of occurrences of each difference.
    pub(crate) differences: BTreeMap<&'static str, usize>,
    /// The node numbers in the real server's notifications, and ours.
    nodes: HashMap<u32, u32>,
}

impl Sums {
    fn differs(&mut self, what: &'static str) {
        *self.differences.entry(what).or_default() += 1;
    }

    /// Whether two notifications report the same about the same nodes. The numbers differ, but
    /// always in the same way.
    fn agree(&mut self, real: &Message<'_>, ours: &Message<'_>) -> bool {
        let (real, ours) = (told(real), told(ours));
        let (Some(real), Some(ours)) = (real, ours) else { return false };
        if real.0 != ours.0 || real.1.len() != ours.1.len() {
            return false;
        }
        real.1.iter().zip(&ours.1).all(|(real, ours)| {
            let is_free = !self.nodes.values().any(|known| known == ours);
            match self.nodes.get(real) {
                Some(known) => known == ours,
                None if is_free => self.nodes.insert(*real, *ours).is_none(),
                None => false,
            }
        })
    }
}

/// The kind of a notification, and the nodes that it concerns.
fn told(message: &Message<'_>) -> Option<(&'static str, Vec<u32>)> {
    let Message::AuthServer(message) = message else { return None };
    Some(match message {
        Reply::VaultNodeChanged(it) => ("changed", vec![it.node_id]),
        Reply::VaultNodeAdded(it) => ("added", vec![it.parent_id, it.child_id, it.owner_id]),
        Reply::VaultNodeRemoved(it) => ("removed", vec![it.parent_id, it.child_id]),
        _ => return None,
    })
}

/// The node that is reported as changed.
fn changed(message: &Message<'_>) -> Option<u32> {
    match message {
        Message::AuthServer(Reply::VaultNodeChanged(it)) => Some(it.node_id),
        _ => None,
    }
}

fn is_caps(message: &Message<'_>) -> bool {
    matches!(message, Message::AuthServer(Reply::ServerCaps(_)))
}

fn is_token(message: &Message<'_>) -> bool {
    matches!(message, Message::AuthServer(Reply::ServerAddr(_)))
}

fn is_registered(message: &Message<'_>) -> bool {
    matches!(message, Message::AuthServer(Reply::ClientRegisterReply(_)))
}

/// Compares the received messages, connection by connection. Returns the unjustified differences.
pub(crate) fn compare(
    name: &str,
    recorded: &Recorded,
    ours: &Ours,
    sums: &mut Sums,
) -> Vec<String> {
    let mut real: BTreeMap<u64, Vec<&Message<'static>>> = BTreeMap::new();
    for said in recorded.said.iter().filter(|said| said.from == Side::Server) {
        real.entry(said.stream).or_default().push(&said.message);
    }
    let game_nodes = game_nodes(recorded);
    let mut problems = Vec::new();
    for (stream, real) in &real {
        let none = Vec::new();
        let ours = ours.get(stream).unwrap_or(&none);
        sums.connections += 1;
        let mut found = replies(real, ours, sums);
        found.extend(notifications(real, ours, &game_nodes, sums));
        problems.extend(found.into_iter().map(|problem| format!("{name} #{stream}: {problem}")));
    }
    problems
}

/// The real server's nodes that its game server changed: no auth client had sent anything shortly
/// before, or a game connection ended. Players' nodes are not among them.
fn game_nodes(recorded: &Recorded) -> HashSet<u32> {
    let is_of_auth = |stream: &u64| recorded.said.iter().any(|said| said.stream == *stream);
    let (auth_ends, game_ends): (Vec<_>, Vec<_>) =
        recorded.ends.iter().partition(|(stream, _)| is_of_auth(stream));
    let asked = recorded.said.iter().filter(|said| said.from == Side::Client);
    let causes: Vec<_> =
        asked.map(|said| said.time).chain(auth_ends.iter().map(|(_, end)| **end)).collect();
    let is_soon_after = |time: i64, cause: i64| cause <= time && time - cause < CAUSE;
    let mut nodes = HashSet::new();
    for said in &recorded.said {
        let Some(node) = changed(&said.message) else { continue };
        let has_cause = causes.iter().any(|cause| is_soon_after(said.time, *cause));
        let left = game_ends.iter().any(|(_, end)| is_soon_after(said.time, **end));
        if left || !has_cause {
            nodes.insert(node);
        }
    }
    let mut choosing = HashSet::new();
    for said in &recorded.said {
        match &said.message {
            Message::AuthClient(Ask::AcctSetPlayerRequest(asked)) if asked.player_id != 0 => {
                choosing.insert(said.stream);
            }
            message => {
                // A client that selects a player is first notified that this player is online.
                if let Some(node) = changed(message)
                    && choosing.remove(&said.stream)
                {
                    nodes.remove(&node);
                }
            }
        }
    }
    nodes
}

/// Replies must be the same and in the same order.
fn replies(real: &[&Message<'static>], ours: &[Heard], sums: &mut Sums) -> Vec<String> {
    let is_reply = |message: &&Message<'static>| {
        told(message).is_none() && !is_caps(message) && !is_token(message)
    };
    let real = real.to_vec();
    let ours: Vec<_> = ours.iter().map(|heard| &heard.message).collect();
    let count = |all: &[&Message<'static>], what: fn(&Message<'_>) -> bool| {
        all.iter().filter(|one| what(one)).count()
    };
    let mut problems = Vec::new();
    let (wanted, found) = (count(&real, is_caps), count(&ours, is_caps));
    if wanted != found {
        problems.push(format!("wanted {wanted} ServerCaps, found {found}"));
    }
    let (wanted, found) = (count(&ours, is_registered), count(&ours, is_token));
    if wanted != found {
        problems.push(format!("wanted {wanted} ServerAddr, found {found}"));
    }
    if count(&real, is_token) != found {
        sums.differs(TOKEN);
    }
    let first = |all: &[&Message<'static>]| all.first().is_some_and(|one| is_caps(one));
    if first(&real) && !first(&ours) {
        sums.differs(CAPS);
    }
    let real: Vec<_> = real.into_iter().filter(is_reply).collect();
    let ours: Vec<_> = ours.into_iter().filter(is_reply).collect();
    for index in 0..real.len().max(ours.len()) {
        let shown = |message: Option<&&Message<'static>>| match message {
            None => "nothing".to_owned(),
            Some(message) => {
                let id = transaction(message);
                format!("{} of {id:?} with {:?}", message.name(), result(message))
            }
        };
        let (real, ours) = (real.get(index), ours.get(index));
        sums.replies += 1;
        if shown(real) == shown(ours) {
            continue;
        }
        match (real, ours) {
            (
                Some(Message::AuthServer(Reply::VaultAddNodeReply(real))),
                Some(Message::AuthServer(Reply::VaultRemoveNodeReply(ours))),
            ) if (real.trans_id, real.result) == (ours.trans_id, ours.result) => {
                sums.differs(REMOVAL);
            }
            _ => problems.push(format!("wanted {}, found {}", shown(real), shown(ours))),
        }
    }
    problems
}

/// The result of a reply: the field after the transaction, for those that have one.
fn result(message: &Message<'_>) -> Option<i32> {
    let names = ["PingReply", "ClientRegisterReply", "AcctPlayerInfo"];
    let is_gatekeeper = matches!(message, Message::GatekeeperServer(_));
    if is_gatekeeper || names.contains(&message.name()) {
        return None;
    }
    let bytes = message.to_bytes().unwrap();
    let at = if matches!(message, Message::FileServer(_)) { 12 } else { 6 };
    let field = bytes.get(at..at + 4)?;
    Some(i32::from_le_bytes(field.try_into().unwrap()))
}

/// Notifications must be the same and in the same order, except for justified differences.
fn notifications(
    real: &[&Message<'static>],
    ours: &[Heard],
    game_nodes: &HashSet<u32>,
    sums: &mut Sums,
) -> Vec<String> {
    let mut problems = Vec::new();
    let is_told = |message: &Message<'static>| told(message).is_some();
    let mut real_left = real.iter().filter(|message| is_told(message)).peekable();
    let mut ours_left = ours.iter().filter(|heard| is_told(&heard.message)).peekable();
    loop {
        match (real_left.peek(), ours_left.peek()) {
            (None, None) => break,
            (Some(real), _) if changed(real).is_some_and(|id| game_nodes.contains(&id)) => {
                sums.differs(GAME);
                real_left.next();
            }
            (Some(real), Some(ours)) if sums.agree(real, &ours.message) => {
                sums.notifications += 1;
                real_left.next();
                ours_left.next();
            }
            (_, Some(ours)) if is_leaving(&ours.behind) => {
                sums.differs(OFFLINE);
                ours_left.next();
            }
            (real, ours) => {
                let real = real.map(|message| told(message));
                let ours = ours.map(|heard| (told(&heard.message), heard.behind.name()));
                problems.push(format!("wanted {real:?}, found {ours:?}"));
                real_left.next();
                ours_left.next();
            }
        }
    }
    // Replies and notifications are compared separately.
    let places =
        |all: Vec<&Message<'static>>| -> Vec<bool> { all.into_iter().map(is_told).collect() };
    let real_places = places(real.to_vec());
    if real_places != places(ours.iter().map(|heard| &heard.message).collect())
        && real_places.contains(&true)
    {
        sums.differs(ORDER);
    }
    problems
}

fn is_leaving(said: &Message<'_>) -> bool {
    matches!(said, Message::AuthClient(Ask::AcctSetPlayerRequest(asked)) if asked.player_id == 0)
}
