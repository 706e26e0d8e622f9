//! Clients that send requests continuously and reconnect whenever they lose their session.

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use worldwire_client::uru::{Auth, ClientError, Notification, Notifications, Shard, VaultMirror};
use worldwire_core::Sampler;
use worldwire_uru::types::{Ipv4, NetError, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::checker::View;
use crate::history::{Action, History, Outcome};

type Result<T> = std::result::Result<T, ClientError>;

/// How long a client waits for an answer before it tries another server.
pub(crate) const PATIENCE: Duration = Duration::from_millis(2_500);
/// How long a server may take to accept a connection.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// How long a client pauses between two requests, and before it tries to reconnect.
const PAUSE: Duration = Duration::from_millis(10);
pub(crate) const RETRY: Duration = Duration::from_millis(50);
/// On average, one in this many requests creates a node.
const CREATE_ONE_IN: u64 = 80;
/// The prefix of the titles of nodes that all clients change.
pub(crate) const REGISTER: &str = "register";

/// A client.
pub(crate) struct Worker {
    index: usize,
    /// The servers that the client uses, and the index of the one that it tries next.
    addresses: Vec<Ipv4Addr>,
    next: usize,
    port: u16,
    history: Arc<History>,
    sampler: Sampler,
    player: u32,
    /// The token of the client's session, from the server that the client was last connected to.
    token: Option<Uuid>,
    /// The part of the vault that the client sees. `None` if it may have missed a change.
    mirror: Option<VaultMirror>,
    /// Notifications that the client has not processed yet.
    backlog: VecDeque<Notification>,
    /// The client's own nodes, and the last number that it sent to each.
    nodes: Vec<(u32, u64)>,
    made: usize,
    /// The number of times that its session continued without a login.
    pub(crate) resumed: usize,
}

/// The connection of a client that is logged in.
pub(crate) struct Session {
    auth: Auth,
    notifications: Notifications,
}

/// The name of a client's account and player, which is also its password.
pub(crate) fn name(index: usize) -> String {
    format!("Worker{index}")
}

impl Worker {
    pub(crate) fn new(
        index: usize,
        addresses: Vec<Ipv4Addr>,
        port: u16,
        history: &Arc<History>,
        seed: u64,
    ) -> Self {
        Self {
            index,
            addresses,
            next: 0,
            port,
            history: Arc::clone(history),
            sampler: Sampler::new(seed ^ index as u64),
            player: 0,
            token: None,
            mirror: None,
            backlog: VecDeque::new(),
            nodes: Vec::new(),
            made: 0,
            resumed: 0,
        }
    }

    pub(crate) fn player(&self) -> u32 {
        self.player
    }

    /// Creates nodes that all clients see and change, in their neighbourhood.
    pub(crate) async fn make_registers(&self, session: &Session, count: usize) -> Vec<u32> {
        let mirror = self.mirror.as_ref().unwrap();
        let is_neighbourhood = |node: &VaultNode<'_>| {
            let file = node.string64_2.as_ref().map(|name| name.to_text());
            node.node_type == Some(NodeType::AgeInfo) && file.as_deref() == Some("Neighborhood")
        };
        let place = mirror.nodes().find(|(_, node)| is_neighbourhood(node)).unwrap().0;
        let mut registers = Vec::new();
        for number in 0..count {
            let node = session.auth.create_node(&note(&format!("{REGISTER}{number}"))).await;
            registers.push(node.unwrap());
            session.auth.add_node(place, registers[number], self.player).await.unwrap();
        }
        registers
    }

    /// Sends requests until told to stop. Returns the session, if there is one.
    pub(crate) async fn run(
        mut self,
        registers: Arc<Vec<u32>>,
        mut stop: watch::Receiver<bool>,
    ) -> (Self, Option<Session>) {
        loop {
            let Some(mut session) = self.enter().await else {
                if *stop.borrow() {
                    return (self, None);
                }
                sleep(RETRY).await;
                continue;
            };
            loop {
                if *stop.borrow() {
                    return (self, Some(session));
                }
                // A refusal does not end the session.
                match self.step(&mut session, &registers).await {
                    Ok(()) | Err(ClientError::Refused { .. }) => {}
                    Err(_) => break,
                }
                let _ = timeout(PAUSE, stop.wait_for(|stops| *stops)).await;
            }
            self.receive(&mut session);
        }
    }

    /// Logs in at one server, or resumes the session there. The next attempt uses the next server.
    pub(crate) async fn enter(&mut self) -> Option<Session> {
        let began = self.history.now();
        let address = self.addresses[self.next % self.addresses.len()];
        let mut shard = Shard::new(&address.to_string());
        (shard.port, shard.patience) = (self.port, PATIENCE);
        let resumed = match self.token {
            Some(token) => self.resume(&shard, address, token).await,
            None => None,
        };
        let session = match resumed {
            Some(session) => Some(session),
            None => self.log_in(&shard).await.ok(),
        };
        let outcome = if session.is_some() { Outcome::Done(0) } else { Outcome::Unknown };
        self.history.record(self.index, Action::Enter, began, outcome);
        if let Some(mut session) = session
            && self.catch_up(&mut session).await.is_ok()
        {
            return Some(session);
        }
        self.next += 1;
        None
    }

    /// Resumes the session with its token. `None` if the session is over or the server cannot be
    /// reached.
    async fn resume(&mut self, shard: &Shard, address: Ipv4Addr, token: Uuid) -> Option<Session> {
        let connecting = Auth::reconnect(shard, Ipv4(address), token);
        let (auth, notifications) = timeout(CONNECT_WITHIN, connecting).await.ok()?.ok()?;
        // The token can be used only once.
        self.token = None;
        auth.register().await.ok()?;
        // The server refuses this request on a connection without a session.
        auth.fetch_node(self.player).await.ok()?;
        self.resumed += 1;
        Some(Session { auth, notifications })
    }

    async fn log_in(&mut self, shard: &Shard) -> Result<Session> {
        let timed_out = |_| ClientError::Timeout { request: "Connect" };
        let connecting = timeout(CONNECT_WITHIN, Auth::connect(shard));
        let (auth, notifications) = connecting.await.map_err(timed_out)??;
        let name = name(self.index);
        let login = auth.log_in(&name, &name).await?;
        self.player = match login.players.first() {
            Some(player) => player.id,
            None => auth.create_player(&name, "female").await?.id,
        };
        auth.set_player(self.player).await?;
        // The client has missed notices.
        self.mirror = None;
        self.token = None;
        self.backlog.clear();
        Ok(Session { auth, notifications })
    }

    /// Fetches the vault if necessary, and processes the notifications.
    async fn catch_up(&mut self, session: &mut Session) -> Result<()> {
        if self.mirror.is_none() {
            self.mirror = Some(VaultMirror::fetch(&session.auth, self.player).await?);
        }
        self.look(session).await
    }

    /// Takes the notifications that have arrived.
    fn receive(&mut self, session: &mut Session) {
        while let Some(told) = session.notifications.try_next() {
            match told {
                Notification::ServerAddr { token, .. } => self.token = Some(token),
                told => self.backlog.push_back(told),
            }
        }
    }

    /// Updates the client's view of the vault.
    async fn look(&mut self, session: &mut Session) -> Result<()> {
        self.receive(session);
        while let Some(told) = self.backlog.pop_front() {
            let Some(mirror) = &mut self.mirror else { continue };
            if let Err(error) = mirror.apply(&session.auth, &told).await {
                match told {
                    // Fetching the node later has the same effect.
                    Notification::NodeChanged { .. } => self.backlog.push_front(told),
                    _ => self.mirror = None,
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Makes one request and records it.
    async fn step(&mut self, session: &mut Session, registers: &[u32]) -> Result<()> {
        let kind = self.sampler.below(10);
        if self.nodes.is_empty() || self.sampler.below(CREATE_ONE_IN) == 0 {
            self.create(session).await?;
        } else if kind < 5 {
            let chosen = self.sampler.below(self.nodes.len() as u64);
            let (node, last) = &mut self.nodes[usize::try_from(chosen).unwrap()];
            let node = *node;
            if kind < 3 {
                *last += 1;
                let number = *last;
                let request = save(&session.auth, node, number);
                self.record(Action::Save { node, number }, request).await?;
            } else {
                self.record(Action::Fetch { node }, fetch(&session.auth, node)).await?;
            }
        } else {
            let chosen = self.sampler.below(registers.len() as u64);
            let register = registers[usize::try_from(chosen).unwrap()];
            if kind < 7 {
                // No other client sends this number.
                self.made += 1;
                let number = (self.made * 1_000 + self.index + 1) as u64;
                let request = save(&session.auth, register, number);
                self.record(Action::Write { register, number }, request).await?;
            } else {
                self.record(Action::Read { register }, fetch(&session.auth, register)).await?;
            }
        }
        self.look(session).await
    }

    async fn create(&mut self, session: &Session) -> Result<()> {
        self.made += 1;
        let title = format!("c{}n{}", self.index, self.made);
        let new = note(&title);
        let request = async { session.auth.create_node(&new).await.map(u64::from) };
        let node = self.record(Action::Create { title }, request).await?;
        let node = u32::try_from(node).unwrap();
        let parent = self.player;
        let request = async { session.auth.add_node(parent, node, parent).await.map(|()| 0) };
        self.record(Action::Place { parent, child: node }, request).await?;
        self.nodes.push((node, 0));
        Ok(())
    }

    async fn record(
        &self,
        action: Action,
        request: impl Future<Output = Result<u64>>,
    ) -> Result<u64> {
        let began = self.history.now();
        let result = request.await;
        let outcome = match &result {
            Ok(number) => Outcome::Done(*number),
            Err(ClientError::Refused { error: NetError::VaultNodeNotFound, .. }) => {
                Outcome::NotFound
            }
            Err(_) => Outcome::Unknown,
        };
        self.history.record(self.index, action, began, outcome);
        result
    }

    /// Waits for all notices that are due. Returns the client's view, and the tree as stored in the
    /// vault.
    pub(crate) async fn views(&mut self, session: &mut Session) -> Result<(View, View)> {
        // Notices are sent before the answer to a later request.
        session.auth.fetch_node(self.player).await?;
        self.catch_up(session).await?;
        let tree = VaultMirror::fetch(&session.auth, self.player).await?;
        Ok((self.mirror.as_ref().unwrap().into(), (&tree).into()))
    }

    /// The players that are online according to the vault.
    pub(crate) async fn online(&self, session: &Session) -> Result<BTreeSet<u32>> {
        let is_online = VaultNode {
            node_type: Some(NodeType::PlayerInfo),
            int32_1: Some(1),
            ..VaultNode::default()
        };
        let mut players = BTreeSet::new();
        for info in session.auth.find_nodes(&is_online).await? {
            players.extend(session.auth.fetch_node(info).await?.uint32_1);
        }
        Ok(players)
    }
}

fn note(title: &str) -> VaultNode<'static> {
    VaultNode {
        node_type: Some(NodeType::TextNote),
        string64_1: Some(title.into()),
        ..VaultNode::default()
    }
}

async fn save(auth: &Auth, node: u32, number: u64) -> Result<u64> {
    let text =
        VaultNode { text_1: Some(number.to_string().as_str().into()), ..VaultNode::default() };
    auth.save_node(node, Uuid([1; 16]), &text).await.map(|()| 0)
}

/// The number in a node.
async fn fetch(auth: &Auth, node: u32) -> Result<u64> {
    let node = auth.fetch_node(node).await?;
    Ok(node.text_1.map_or(0, |text| text.to_text().parse().unwrap()))
}
