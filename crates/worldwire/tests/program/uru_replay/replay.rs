//! A new shard, to which the captured clients send their messages.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use tempfile::TempDir;
use tokio::task::JoinHandle;
use worldwire_client::uru::{Auth, Shard};
use worldwire_core::{Field as _, Side};
use worldwire_net::Stop;
use worldwire_server::uru::Shard as Server;
use worldwire_uru::crypt::key::PrimeKind;
use worldwire_uru::crypt::login::login_fields;
use worldwire_uru::frame::{Message, Service};
use worldwire_uru::message::auth::client::ClientMessage as Ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::message::file::client::ClientMessage as AskFile;
use worldwire_uru::message::gatekeeper::client::ClientMessage as AskGatekeeper;
use worldwire_uru::message::{AccountFlags, NodeRef};
use worldwire_uru::types::{NetError, TransId};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::capture::{Recorded, Said};
use super::client::Client;
use super::ids::{Ids, Tree};

/// Everyone's password on our shard; those of the capture are unknown.
const PASSWORD: &str = "fresh";
/// The owner of players that were on the real shard before the captures began.
const STRANGER: &str = "stranger";
/// The timeout for a reply, and the time to wait for anything that is not a reply.
const PATIENCE: Duration = Duration::from_secs(10);
const SETTLING: Duration = Duration::from_millis(60);
/// Marks our own pings among those of the capture.
const BARRIER: u32 = 0xbaaa_aaad;

/// Our shard's messages on each connection, in order.
pub(crate) type Ours = BTreeMap<u64, Vec<Heard>>;

/// A message of our shard.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) message: Message<'static>,
    /// The last message from any client before this one.
    pub(crate) behind: Message<'static>,
}

pub(crate) struct Replay {
    _folder: TempDir,
    shard: Shard,
    stop: Stop,
    serving: JoinHandle<Result<(), worldwire_server::ServeError>>,
    ids: Ids,
}

/// A captured connection that is still being replayed.
struct Open {
    client: Client,
    challenge: u32,
    account: Option<String>,
}

impl Replay {
    /// Starts a new shard with the accounts that are used in the captures.
    pub(crate) async fn start(captures: &[Recorded]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::open_with(folder.path(), PrimeKind::Plain, |config| {
            config.listen = "127.0.0.1:0".parse().unwrap();
            config.status = String::new();
        });
        let server = server.await.unwrap();
        let accounts: BTreeSet<String> = captures
            .iter()
            .flat_map(|capture| &capture.said)
            .filter_map(|said| match &said.message {
                Message::AuthClient(Ask::AcctLoginRequest(asked)) => {
                    Some(asked.account_name.to_text())
                }
                _ => None,
            })
            .chain([STRANGER.to_owned()])
            .collect();
        for account in accounts {
            server.vault().add_account(&account, PASSWORD, AccountFlags(0)).await.unwrap();
        }
        let shard = Shard::parse(&server.server_ini()).unwrap();
        let stop = Stop::new();
        let serving = tokio::spawn(server.serve(stop.signal()));
        let (auth, _) = Auth::connect(&shard).await.unwrap();
        auth.log_in(STRANGER, PASSWORD).await.unwrap();
        for name in strangers(captures) {
            auth.create_player(&name, "female").await.unwrap();
        }
        Self { _folder: folder, shard, stop, serving, ids: Ids::default() }
    }

    pub(crate) async fn stop(self) {
        self.stop.stop();
        self.serving.await.unwrap().unwrap();
    }

    /// Sends the messages of a capture's clients, one after another; waits for our shard's replies.
    pub(crate) async fn replay(&mut self, recorded: &Recorded) -> Ours {
        let capture = &*recorded.said;
        let nodes = nodes_of(capture);
        let mut open: BTreeMap<u64, Open> = BTreeMap::new();
        let mut ours = Ours::new();
        let mut behind = capture[0].message.clone();
        for (index, said) in capture.iter().enumerate() {
            let stream = said.stream;
            let before = open.len();
            open.retain(|stream, _| recorded.ends.get(stream).is_none_or(|end| *end > said.time));
            if open.len() < before {
                settle(&mut open, &mut ours, &behind).await;
            }
            if said.from == Side::Client {
                let connection = match open.entry(stream) {
                    Entry::Occupied(open) => open.into_mut(),
                    Entry::Vacant(place) => {
                        let service = said.message.service();
                        let client = Client::connect(&self.shard, service).await;
                        place.insert(Open { client, challenge: 0, account: None })
                    }
                };
                let real = replies(capture, index);
                let mut message = self.ids.translate(&said.message);
                if let Message::AuthClient(Ask::AcctLoginRequest(asked)) = &mut message {
                    let name = asked.account_name.to_text();
                    let refused = real.iter().any(|reply| is_refused_login(reply));
                    let password = if refused { "wrong" } else { PASSWORD };
                    let fields =
                        login_fields(&name, password, asked.client_challenge, connection.challenge);
                    asked.client_challenge = fields.client_challenge;
                    asked.challenge_hash = fields.challenge_hash;
                    connection.account = Some(name);
                }
                behind = message.clone();
                connection.client.say(message);
                let heard = answers(&mut connection.client, &said.message).await;
                for message in &heard {
                    if let Message::AuthServer(Reply::ClientRegisterReply(reply)) = message {
                        connection.challenge = reply.server_challenge;
                    }
                }
                let account = connection.account.clone();
                let about: Vec<_> = heard
                    .iter()
                    .filter(|one| transaction(one) == transaction(&said.message))
                    .collect();
                for (real, ours) in real.iter().zip(about) {
                    self.ids.learn(real, ours);
                    if let (
                        Message::AuthServer(Reply::VaultNodeRefsFetched(real)),
                        Message::AuthServer(Reply::VaultNodeRefsFetched(ours)),
                        Message::AuthClient(Ask::VaultFetchNodeRefs(asked)),
                        Some(account),
                    ) = (real, ours, &said.message, &account)
                    {
                        let our_nodes = self.nodes_below(account, &ours.refs).await;
                        let real = Tree { refs: &real.refs, nodes: &nodes };
                        let ours = Tree { refs: &ours.refs, nodes: &our_nodes };
                        self.ids.learn_tree(asked.node_id, &real, &ours);
                    }
                }
                let heard = heard.into_iter();
                let heard = heard.map(|message| Heard { message, behind: behind.clone() });
                ours.entry(stream).or_default().extend(heard);
                settle(&mut open, &mut ours, &behind).await;
            }
        }
        ours
    }

    /// Our nodes that are reachable by references, as another client of the account sees them.
    async fn nodes_below(
        &self,
        account: &str,
        refs: &[NodeRef],
    ) -> HashMap<u32, VaultNode<'static>> {
        let (auth, _) = Auth::connect(&self.shard).await.unwrap();
        auth.log_in(account, PASSWORD).await.unwrap();
        let mut nodes = HashMap::new();
        for id in refs.iter().map(|one| one.child_id) {
            nodes.insert(id, auth.fetch_node(id).await.unwrap());
        }
        nodes
    }
}

/// Takes messages that were not requested.
async fn settle(open: &mut BTreeMap<u64, Open>, ours: &mut Ours, behind: &Message<'static>) {
    for (stream, connection) in open {
        while let Some(message) = connection.client.hear(SETTLING).await {
            ours.entry(*stream).or_default().push(Heard { message, behind: behind.clone() });
        }
    }
}

/// Players that the real server showed but that nobody created in the captures.
fn strangers(captures: &[Recorded]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for node in captures.iter().flat_map(|capture| nodes_of(&capture.said).into_values()) {
        if node.node_type == Some(NodeType::PlayerInfo) {
            names.extend(node.istring64_1.map(|name| name.to_text()));
        }
    }
    for said in captures.iter().flat_map(|capture| &capture.said) {
        if let Message::AuthClient(Ask::PlayerCreateRequest(asked)) = &said.message {
            names.remove(&asked.player_name.to_text());
        }
    }
    names
}

/// Waits for the replies: our own ping is answered after them.
async fn answers(client: &mut Client, asked: &Message<'_>) -> Vec<Message<'static>> {
    use worldwire_uru::message::{auth, file, gatekeeper};
    let (trans_id, ping_time_ms, payload) = (TransId(BARRIER), BARRIER, Default::default());
    client.say(match client.service {
        Service::Gatekeeper => {
            let ping = gatekeeper::client::PingRequest { trans_id, ping_time_ms, payload };
            AskGatekeeper::from(ping).into()
        }
        Service::File => AskFile::from(file::client::PingRequest { ping_time_ms }).into(),
        _ => Ask::from(auth::client::PingRequest { ping_time_ms, trans_id, payload }).into(),
    });
    let mut heard = Vec::new();
    loop {
        let Some(message) = client.hear(PATIENCE).await else {
            panic!("{}: not even an answer to the ping after it", asked.name())
        };
        if is_barrier(&message) {
            return heard;
        }
        heard.push(message);
    }
}

fn is_barrier(message: &Message<'_>) -> bool {
    use worldwire_uru::message::file::server::ServerMessage as File;
    use worldwire_uru::message::gatekeeper::server::ServerMessage as Gatekeeper;
    match message {
        Message::AuthServer(Reply::PingReply(pong)) => pong.ping_time_ms == BARRIER,
        Message::GatekeeperServer(Gatekeeper::PingReply(pong)) => pong.ping_time_ms == BARRIER,
        Message::FileServer(File::PingReply(pong)) => pong.ping_time_ms == BARRIER,
        _ => false,
    }
}

fn is_refused_login(reply: &Message<'_>) -> bool {
    matches!(reply, Message::AuthServer(Reply::AcctLoginReply(reply))
        if reply.result == NetError::AuthenticationFailed)
}

/// The transaction of a message: its first field, except for pings and unrequested messages.
pub(crate) fn transaction(message: &Message<'_>) -> Option<u32> {
    let names = ["PingRequest", "PingReply", "ClientRegisterRequest", "ClientRegisterReply"];
    let unasked = [
        "ServerAddr",
        "ServerCaps",
        "VaultNodeChanged",
        "VaultNodeAdded",
        "VaultNodeRemoved",
        "VaultNodeDeleted",
        "KickedOff",
        "VaultSendNode",
        "SetAgePublic",
    ];
    if names.contains(&message.name()) || unasked.contains(&message.name()) {
        return None;
    }
    let bytes = message.to_bytes().unwrap();
    let at = if message.service() == Service::File { 8 } else { 2 };
    let field = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(field.try_into().unwrap()))
}

/// The real server's replies to a message of a capture.
fn replies(capture: &[Said], index: usize) -> Vec<&Message<'static>> {
    let asked = &capture[index];
    let id = transaction(&asked.message);
    let behind = capture[index + 1..].iter();
    behind
        .filter(|said| said.from == Side::Server && said.stream == asked.stream)
        .map(|said| &said.message)
        .filter(|message| id.is_some() && transaction(message) == id)
        .collect()
}

/// All nodes that the real server showed, by its numbers.
fn nodes_of(capture: &[Said]) -> HashMap<u32, VaultNode<'static>> {
    let fetched = capture.iter().filter_map(|said| match &said.message {
        Message::AuthServer(Reply::VaultNodeFetched(reply)) if !reply.result.is_error() => {
            let node = reply.node.decode::<VaultNode<'_>>().unwrap().into_owned();
            Some((node.node_id?, node))
        }
        _ => None,
    });
    // The first form of a node is the one with which the tree was created.
    let mut nodes = HashMap::new();
    for (id, node) in fetched {
        nodes.entry(id).or_insert(node);
    }
    nodes
}
