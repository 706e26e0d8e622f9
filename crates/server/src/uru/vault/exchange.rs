//! A whole vault as JSON lines, to be kept, looked through or taken elsewhere.
//!
//! | line | what it is |
//! | --- | --- |
//! | `{"vault":1,"next_node":N,"next_score":N}` | the first line |
//! | `{"account":{"id":..,"name":..,"flags":..,"created":..}}` | an account, without its password |
//! | `{"password":{"account":..,"digest":..}}` | from or to other servers: P0 of an e-mail name, else P1, as 40 digits |
//! | `{"node":{..}}` | a node, as `worldwire decode uru.vault-node` shows it |
//! | `{"ref":{"parent":..,"child":..,"owner":..}}` | a reference |
//! | `{"player":{"id":..,"account":..,"name":..,"shape":..,"explorer":..,"created":..}}` | a player |
//! | `{"score":{"id":..,"owner":..,"name":..,"kind":..,"value":..,"created":..}}` | a score |
//! | `{"end":{"accounts":N,"nodes":N,"refs":N,"players":N,"scores":N}}` | the last line: how many there are |
//!
//! What is read must be written again as the same lines. An export has no passwords in it unless it is
//! to go to another server, so it is no secret by itself: an account that an import makes has none,
//! until an operator sets one.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use worldwire_core::json::{Json, Style, parse, write_children};
use worldwire_core::{Field, Reader, Record as _, Tree, Value};
use worldwire_uru::crypt::login::NAME_UNITS;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::content::{Content, Entry, decode, encode};
use super::graph::Graph;
use super::inspect::{Finding, problems};
use super::state::{Outcome, Session, State};
use crate::uru::accounts::Account;
use crate::uru::players::{Player, folded_player};
use crate::uru::scores::{MAX_KIND, Score};

/// A whole vault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump {
    pub(crate) head: Head,
    end: End,
    pub(crate) accounts: BTreeMap<Uuid, AccountLine>,
    pub(crate) passwords: BTreeMap<Uuid, Password>,
    pub(crate) nodes: BTreeMap<u32, Content>,
    pub(crate) refs: BTreeMap<(u32, u32), u32>,
    pub(crate) players: BTreeMap<u32, PlayerLine>,
    pub(crate) scores: BTreeMap<u32, ScoreLine>,
}

/// What is wrong with a line, or with all of them together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// A line.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// All lines together.
    #[error("{0}")]
    Whole(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    vault: u32,
    pub(crate) next_node: u32,
    pub(crate) next_score: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    accounts: usize,
    nodes: usize,
    refs: usize,
    players: usize,
    scores: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountLine {
    id: String,
    pub(crate) name: String,
    pub(crate) flags: u32,
    pub(crate) created: u32,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PasswordLine {
    account: String,
    digest: String,
}

/// A digest that is as good as a password.
#[derive(Clone, PartialEq)]
pub(crate) struct Password(pub(crate) [u8; 20]);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl Password {
    fn parse(hex: &str) -> Result<Self, String> {
        let wanted = || "digest: wanted 40 hexadecimal digits".to_owned();
        digest(hex).map(Self).ok_or_else(wanted)
    }

    fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RefLine {
    parent: u32,
    child: u32,
    owner: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlayerLine {
    id: u32,
    pub(crate) account: String,
    pub(crate) name: String,
    pub(crate) shape: String,
    pub(crate) explorer: u32,
    pub(crate) created: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScoreLine {
    id: u32,
    pub(crate) owner: u32,
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) value: i32,
    pub(crate) created: u32,
}

/// What the next numbers may be, so that there is room for more.
const MAX_NEXT: u32 = u32::MAX - 1_000_000;

impl Dump {
    /// The version of the format.
    const VERSION: u32 = 1;

    /// How many nodes it has.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The lines, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let head = std::iter::once(line(&self.head));
        let accounts = self.accounts.values().map(|one| named("account", &line(one)));
        let passwords = self.passwords.iter().map(|(id, password)| {
            let (account, digest) = (id.to_string(), password.hex());
            named("password", &line(&PasswordLine { account, digest }))
        });
        let nodes = self.nodes.values().map(|content| named("node", &node_json(content)));
        let refs = self.refs.iter().map(|(&(parent, child), &owner)| {
            named("ref", &line(&RefLine { parent, child, owner }))
        });
        let players = self.players.values().map(|one| named("player", &line(one)));
        let scores = self.scores.values().map(|one| named("score", &line(one)));
        let end = std::iter::once(named("end", &line(&self.counts())));
        let lines = head.chain(accounts).chain(passwords).chain(nodes);
        lines.chain(refs).chain(players).chain(scores).chain(end)
    }

    fn counts(&self) -> End {
        End {
            accounts: self.accounts.len(),
            nodes: self.nodes.len(),
            refs: self.refs.len(),
            players: self.players.len(),
            scores: self.scores.len(),
        }
    }

    /// Reads the lines and checks that they make a vault: all of them, nothing twice, nothing
    /// missing, and no problem that a check of the vault would find. Empty lines count as none.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn read<'l>(lines: impl IntoIterator<Item = &'l str>) -> Result<Self, DumpError> {
        let mut dump = Self::default();
        let mut end = None;
        for (at, text) in lines.into_iter().enumerate() {
            let wrong = |problem: String| DumpError::Line { line: at + 1, problem };
            if text.trim().is_empty() {
                continue;
            }
            if end.is_some() {
                return Err(wrong("wanted nothing behind the line \"end\"".to_owned()));
            }
            end = dump.read_line(text, at == 0).map_err(wrong)?;
        }
        if dump.head.vault == 0 {
            let problem = "wanted a first line with \"vault\", found none";
            return Err(DumpError::Whole(problem.to_owned()));
        }
        dump.end = end.ok_or_else(|| {
            let hint =
                "the export was cut off, or an older version made it: export the vault again";
            DumpError::Whole(format!("wanted a last line with \"end\", found none; {hint}"))
        })?;
        let found = dump.counts();
        if dump.end != found {
            let (wanted, found) = (line(&dump.end), line(&found));
            return Err(DumpError::Whole(format!("wanted {wanted}, found {found}")));
        }
        dump.check().map_err(DumpError::Whole)?;
        Ok(dump)
    }

    fn read_line(&mut self, text: &str, first: bool) -> Result<Option<End>, String> {
        let json = parse(text).map_err(|error| error.to_string())?;
        if first {
            self.head = from_json(&json)?;
            if self.head.vault != Self::VERSION {
                return Err(format!("wanted version 1, found {}", self.head.vault));
            }
            return Ok(None);
        }
        let wanted = || "wanted one of account, password, node, ref, player, score, end".to_owned();
        let Json::Object(object) = json else { return Err(wanted()) };
        let mut members = object.iter();
        let (Some((name, json)), None) = (members.next(), members.next()) else {
            return Err(wanted());
        };
        let twice = |old: bool, what: String| {
            if old { Err(format!("{what} is there twice")) } else { Ok(()) }
        };
        match name {
            "end" => return from_json(json).map(Some),
            "account" => {
                let one: AccountLine = from_json(json)?;
                if one.name.encode_utf16().count() > NAME_UNITS {
                    let wanted = format!("wanted a name of at most {NAME_UNITS} characters");
                    return Err(format!("account {}: {wanted}", one.id));
                }
                let id = uuid_of(&one.id)?;
                let what = format!("account {id}");
                twice(self.accounts.insert(id, one).is_some(), what)
            }
            "password" => {
                let PasswordLine { account, digest } = from_json(json)?;
                let (id, password) = (uuid_of(&account)?, Password::parse(&digest)?);
                let old = self.passwords.insert(id, password).is_some();
                twice(old, format!("the password of account {id}"))
            }
            "node" => {
                let (id, content) = node_of(json)?;
                twice(self.nodes.insert(id, content).is_some(), format!("node {id}"))
            }
            "ref" => {
                let RefLine { parent, child, owner } = from_json(json)?;
                let old = self.refs.insert((parent, child), owner).is_some();
                twice(old, format!("the reference from {parent} to {child}"))
            }
            "player" => {
                let one: PlayerLine = from_json(json)?;
                let id = one.id;
                twice(self.players.insert(id, one).is_some(), format!("player {id}"))
            }
            "score" => {
                let one: ScoreLine = from_json(json)?;
                let id = one.id;
                if one.kind > MAX_KIND {
                    let wanted = format!("wanted a kind of 0 to {MAX_KIND}");
                    return Err(format!("score {id}: {wanted}, found {}", one.kind));
                }
                twice(self.scores.insert(id, one).is_some(), format!("score {id}"))
            }
            _ => Err(wanted()),
        }?;
        Ok(None)
    }

    /// # Errors
    /// What is wrong.
    fn check(&self) -> Result<(), String> {
        if self.head.next_node > MAX_NEXT || self.head.next_score > MAX_NEXT {
            return Err(format!("wanted next_node and next_score of at most {MAX_NEXT}"));
        }
        // The next ones follow the highest.
        let highest =
            [("node", self.nodes.keys().next_back()), ("score", self.scores.keys().next_back())];
        for (what, id) in highest {
            if let Some(id) = id.filter(|id| **id >= MAX_NEXT) {
                return Err(format!("{what} {id}: wanted a number below {MAX_NEXT}"));
            }
        }
        let mut graph = Graph::default();
        let mut systems = 0;
        for (id, content) in &self.nodes {
            let Ok(node) = decode(content) else { return Err(format!("node {id} is damaged")) };
            systems += usize::from(node.node_type == Some(NodeType::System));
            graph.set(*id, Some(Entry::of(&node, &graph.keys)));
        }
        if systems != 1 {
            return Err(format!("wanted one System node, found {systems}"));
        }
        for (&(parent, child), &owner) in &self.refs {
            for end in [parent, child] {
                if !graph.contains(end) {
                    return Err(format!("{parent} refers to {child}, and there is no node {end}"));
                }
            }
            graph.link(parent, child, owner);
        }
        if let Some(node) = graph.cycle() {
            return Err(format!("node {node} is below itself"));
        }
        if let Some(id) = self.passwords.keys().find(|id| !self.accounts.contains_key(id)) {
            return Err(format!("there is a password of account {id}, which is missing"));
        }
        let mut names = HashSet::new();
        for (id, player) in &self.players {
            if graph.kind(*id) != Some(NodeType::Player) {
                return Err(format!("player {id} has no Player node"));
            }
            if !self.accounts.contains_key(&uuid_of(&player.account)?) {
                return Err(format!(
                    "player {id} is of account {}, which is missing",
                    player.account
                ));
            }
            if !names.insert(folded_player(&player.name)) {
                return Err(format!("there are two players {:?}", player.name));
            }
        }
        let mut scores = BTreeSet::new();
        for (id, score) in &self.scores {
            if !scores.insert((score.owner, &score.name)) {
                return Err(format!("score {id} is there twice"));
            }
        }
        let mut players = self.players.keys().map(|id| (*id, true));
        match problems(&graph, &mut players).first() {
            Some(Finding { id, text, .. }) => Err(format!("node {id} {text}")),
            None => Ok(()),
        }
    }
}

impl State {
    /// The whole vault; if so, with the digests of passwords, which are as good as passwords.
    pub(crate) fn dump(&mut self, with_passwords: bool) -> Outcome<Dump> {
        let ids = self.graph.ids();
        self.need(&ids)?;
        let (next_node, next_score) = self.next_numbers();
        let mut dump = Dump {
            head: Head { vault: Dump::VERSION, next_node, next_score },
            refs: self.graph.refs().map(|(above, below, owner)| ((above, below), owner)).collect(),
            ..Dump::default()
        };
        for id in ids {
            dump.nodes.insert(id, self.content(id)?);
        }
        for id in self.accounts.ids() {
            let Some(account) = self.accounts.get(id) else { continue };
            if let Some(digest) = self.known_digest(id).filter(|_| with_passwords) {
                dump.passwords.insert(id, Password(digest));
            }
            let Account { name, flags, created, .. } = account.clone();
            let line = AccountLine { id: id.to_string(), name, flags: flags.0, created };
            dump.accounts.insert(id, line);
        }
        for (id, player) in self.players.iter() {
            let Player { account, name, shape, explorer, created } = player.clone();
            let account = account.to_string();
            let line = PlayerLine { id, account, name, shape, explorer, created };
            dump.players.insert(id, line);
        }
        for id in self.scores.ids() {
            let Some(score) = self.scores.get(id) else { continue };
            let Score { owner, name, kind, value, created } = score.clone();
            dump.scores.insert(id, ScoreLine { id, owner, name, kind, value, created });
        }
        dump.end = dump.counts();
        Ok(dump)
    }

    /// Replaces the whole vault. Accounts that are there stay as they are. Players that are there
    /// go only if `replace` says so, and never while somebody is logged in or an age runs, which
    /// would write what it has into the new vault.
    pub(crate) fn restore(&mut self, dump: &Dump, replace: bool) -> Outcome<()> {
        let is_busy = |session: &Session| !session.account.is_zero() || session.age != 0;
        let busy = self.sessions.values().any(is_busy);
        if busy || !replace && self.players.iter().next().is_some() {
            return Err(NetError::LoggedInElsewhere.into());
        }
        let old: Vec<_> = self.graph.refs().collect();
        for (parent, child, _) in old {
            self.unlink(parent, child);
        }
        for id in self.graph.ids() {
            self.drop_node(id);
        }
        let old: Vec<_> = self.players.iter().map(|(id, _)| id).collect();
        old.into_iter().for_each(|id| self.put_player(id, None));
        self.scores.ids().into_iter().for_each(|id| self.put_score(id, None));

        for (id, line) in &dump.accounts {
            match self.accounts.named(&line.name) {
                Some((known, _)) if known == *id => {}
                Some(_) => return Err(NetError::AccountAlreadyExists.into()),
                None if self.accounts.get(*id).is_some() => {}
                None => {
                    let (name, flags) = (line.name.clone(), AccountFlags(line.flags));
                    let secret = Vec::new();
                    let account = Account { name, flags, created: line.created, secret };
                    self.put_account(*id, Some(account));
                    if let Some(Password(digest)) = dump.passwords.get(id) {
                        self.set_digest(*id, *digest);
                    }
                }
            }
        }
        let mut next_node = dump.head.next_node;
        for (id, content) in &dump.nodes {
            self.put_node(*id, &decode(content)?)?;
            next_node = next_node.max(id.saturating_add(1));
        }
        for (&(parent, child), &owner) in &dump.refs {
            self.link(parent, child, owner);
        }
        for (id, line) in &dump.players {
            let account = uuid_of(&line.account).map_err(|_| NetError::InvalidParameter)?;
            let PlayerLine { name, shape, explorer, created, .. } = line.clone();
            self.put_player(*id, Some(Player { account, name, shape, explorer, created }));
        }
        let mut next_score = dump.head.next_score;
        for (id, line) in &dump.scores {
            let ScoreLine { owner, name, kind, value, created, .. } = line.clone();
            self.put_score(*id, Some(Score { owner, name, kind, value, created }));
            next_score = next_score.max(id.saturating_add(1));
        }
        self.set_next_numbers(next_node, next_score);
        let system = VaultNode { node_type: Some(NodeType::System), ..VaultNode::default() };
        let system = self.graph.find(&system, 1).first().copied();
        self.put_system(system.ok_or(NetError::InvalidParameter)?);
        self.clear_online()
    }
}

/// A digest of 40 hexadecimal digits.
pub(crate) fn digest(hex: &str) -> Option<[u8; 20]> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let mut digest = [0; 20];
    if pairs.len() != digest.len() || !rest.is_empty() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(pairs) {
        let [high, low] = pair.map(|digit| char::from(digit).to_digit(16));
        *byte = u8::try_from(high? << 4 | low?).ok()?;
    }
    Some(digest)
}

/// The JSON of a node.
pub(crate) fn node_json(content: &[u8]) -> String {
    let mut reader = Reader::traced("node", content, Tree::default());
    let outcome = VaultNode::decode_fields(&mut reader);
    let (tree, _) = reader.conclude(outcome);
    let mut out = String::new();
    write_children(Value::Record, tree.roots(), Style::default(), &mut out);
    out
}

/// The fields that JSON holds.
///
/// # Errors
/// What is wrong.
pub(crate) fn fields_of(json: &Json) -> Result<VaultNode<'static>, String> {
    let node = VaultNode::from_json(json.into()).map_err(|error| error.to_string())?;
    Ok(node.into_owned())
}

fn node_of(json: &Json) -> Result<(u32, Content), String> {
    let node = fields_of(json)?;
    let id = node.node_id.ok_or("wanted a NodeId, found none")?;
    if id == 0 || node.node_type.is_none() {
        return Err("wanted a NodeId above 0 and a NodeType".to_owned());
    }
    node.check_lengths(usize::MAX).map_err(|error| format!("node {id}: {error}"))?;
    let content = encode(&node).map_err(|_| "a field is too long".to_owned())?;
    Ok((id, content))
}

fn line(value: &impl Serialize) -> String {
    // Numbers and strings can be written.
    serde_json::to_string(value).unwrap_or_default()
}

fn named(name: &str, json: &str) -> String {
    format!("{{\"{name}\":{json}}}")
}

fn from_json<T: serde::de::DeserializeOwned>(json: &Json) -> Result<T, String> {
    serde_json::to_value(json).and_then(serde_json::from_value).map_err(|error| error.to_string())
}

/// A UUID of its text.
///
/// # Errors
/// What is wrong.
pub(crate) fn uuid_of(text: &str) -> Result<Uuid, String> {
    let json = Json::from(text);
    Uuid::from_json((&json).into()).map_err(|error| error.to_string())
}
