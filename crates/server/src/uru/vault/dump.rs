//! A whole vault as JSON lines: a backup, input for other tools, or a transfer to another server.
//!
//! | line | meaning |
//! | --- | --- |
//! | `{"vault":1,"next_node":N,"next_score":N}` | the first line |
//! | `{"account":{"id":..,"name":..,"flags":..,"created":..}}` | an account, without its password |
//! | `{"password":{"account":..,"digest":..}}` | only between servers: P0 for an e-mail name, else P1, as 40 hexadecimal digits |
//! | `{"node":{..}}` | a node, as `worldwire decode uru.vault-node` shows it |
//! | `{"ref":{"parent":..,"child":..,"owner":..}}` | a reference |
//! | `{"player":{"id":..,"account":..,"name":..,"shape":..,"explorer":..,"created":..}}` | a player |
//! | `{"score":{"id":..,"owner":..,"name":..,"kind":..,"value":..,"created":..}}` | a score |
//! | `{"end":{"accounts":N,"nodes":N,"refs":N,"players":N,"scores":N}}` | the last line, with the number of each |
//!
//! Reading a dump and writing it again reproduces the same lines. Passwords are exported only on
//! request, so dumps without them are not secret. An account imported without a password cannot log
//! in until an operator sets one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use worldwire_core::json::{Json, parse};
use worldwire_core::value::{parse_hex, push_hex};
use worldwire_core::{Error, Field};
use worldwire_uru::crypt::login::NAME_UNITS;
use worldwire_uru::types::Uuid;
use worldwire_uru::vault::{NodeType, VaultNode};

use super::content::{Content, Entry, decode, encode, node_json};
use super::graph::Graph;
use super::inspect::{Finding, problems};
use super::scores::MAX_KIND;
use crate::store::{RefRow, ScoreRow};

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
    pub(crate) scores: BTreeMap<u32, ScoreRow>,
}

/// Why a dump cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DumpError {
    /// A line is invalid.
    #[error("line {line}: {problem}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        problem: LineError,
    },
    /// The lines are valid but do not form a vault.
    #[error(transparent)]
    Whole(#[from] VaultProblem),
}

/// Why a line of a dump is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// Not the JSON of any kind of line.
    #[error("{0}")]
    Json(String),
    /// A field has a wrong value.
    #[error(transparent)]
    Field(#[from] Error),
    /// The format has another version.
    #[error("unsupported version {0}; this server reads version 1")]
    Version(u32),
    /// An object of an unknown kind.
    #[error("must be one of account, password, node, ref, player, score, end")]
    Kind,
    /// A second line for the same item.
    #[error("{0} appears twice")]
    Repeated(String),
    /// A name that clients cannot send.
    #[error("account {account}: a name has at most {NAME_UNITS} characters")]
    LongName {
        /// The account.
        account: String,
    },
    /// A digest that is not 40 hexadecimal digits.
    #[error("a digest must have 40 hexadecimal digits")]
    Digest,
    /// A score of an unknown kind.
    #[error("score {id}: kind must be 0 to {MAX_KIND}, not {kind}")]
    ScoreKind {
        /// The score.
        id: u32,
        /// The score's kind.
        kind: u32,
    },
    /// A node without a number or a type.
    #[error("a node needs a NodeType and a NodeId above 0")]
    NoNodeId,
    /// A node with a field that is too long.
    #[error("node {id}: {error}")]
    Node {
        /// The node.
        id: u32,
        /// The field.
        error: Error,
    },
    /// A node that is too large to encode.
    #[error("node {0}: a field is too long")]
    LongField(u32),
    /// A line after the last.
    #[error("nothing may follow the line \"end\"")]
    AfterEnd,
}

/// Why valid lines do not form a vault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VaultProblem {
    /// The first line is missing.
    #[error("the first line must be \"vault\"")]
    NoHead,
    /// The last line is missing.
    #[error(
        "the last line must be \"end\": the export was cut off or made by an older version; export \
         the vault again"
    )]
    NoEnd,
    /// Lines are missing, or there are too many.
    #[error("the last line announces {announced}, but the dump has {found}")]
    Counts {
        /// The numbers in the last line.
        announced: String,
        /// The numbers of lines that were read.
        found: String,
    },
    /// There is no room for new nodes or scores.
    #[error("next_node and next_score must be at most {MAX_NEXT}")]
    NextNumbers,
    /// A number is so high that none would be left for new nodes or scores.
    #[error("{what} {id}: number must be below {MAX_NEXT}")]
    HighNumber {
        /// `node` or `score`.
        what: &'static str,
        /// The number.
        id: u32,
    },
    /// A node cannot be decoded.
    #[error("node {0} is damaged")]
    DamagedNode(u32),
    /// There is no System node, or there are several.
    #[error("must have one System node, not {0}")]
    Systems(usize),
    /// A password belongs to a missing account.
    #[error("there is a password for account {0}, but the account is missing")]
    PasswordWithoutAccount(Uuid),
    /// Two scores have the same owner and name.
    #[error("score {0} has the same owner and name as another score")]
    SameScore(u32),
    /// There is a problem that a check of the vault would report.
    #[error("node {id} {text}")]
    Check {
        /// The node.
        id: u32,
        /// The problem, as the end of a sentence.
        text: String,
    },
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
    pub(crate) id: String,
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

/// A digest that can be used like a password.
#[derive(Clone, PartialEq)]
pub(crate) struct Password(pub(crate) [u8; 20]);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl Password {
    fn parse(hex: &str) -> Result<Self, LineError> {
        digest(hex).map(Self).ok_or(LineError::Digest)
    }

    fn hex(&self) -> String {
        let mut text = String::new();
        push_hex(&mut text, &self.0);
        text
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlayerLine {
    pub(crate) id: u32,
    pub(crate) account: String,
    pub(crate) name: String,
    pub(crate) shape: String,
    pub(crate) explorer: u32,
    pub(crate) created: u32,
}

/// The maximum value of the next number for nodes or scores. It leaves room for more.
const MAX_NEXT: u32 = u32::MAX - 1_000_000;

impl Dump {
    /// The version of the format.
    const VERSION: u32 = 1;

    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The lines, without terminators.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let head = std::iter::once(line(&self.head));
        let accounts = self.accounts.values().map(|one| named("account", &line(one)));
        let passwords = self.passwords.iter().map(|(id, password)| {
            let (account, digest) = (id.to_string(), password.hex());
            named("password", &line(&PasswordLine { account, digest }))
        });
        let nodes = self.nodes.values().map(|content| named("node", &node_json(content)));
        let refs = self.refs.iter().map(|(&(parent, child), &owner)| {
            named("ref", &line(&RefRow { parent, child, owner }))
        });
        let players = self.players.values().map(|one| named("player", &line(one)));
        let scores = self.scores.values().map(|one| named("score", &line(one)));
        let end = std::iter::once(named("end", &line(&self.counts())));
        let lines = head.chain(accounts).chain(passwords).chain(nodes);
        lines.chain(refs).chain(players).chain(scores).chain(end)
    }

    /// Completes the first line, with next numbers above the highest ones in use, and the last
    /// line.
    pub(crate) fn finish(mut self) -> Self {
        let after = |id: Option<&u32>| id.map_or(1, |id| id.saturating_add(1));
        self.head.vault = Self::VERSION;
        self.head.next_node = self.head.next_node.max(after(self.nodes.keys().next_back()));
        self.head.next_score = self.head.next_score.max(after(self.scores.keys().next_back()));
        self.end = self.counts();
        self
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

    /// Reads a dump and checks that it is complete, has no duplicates, and passes the checks of a
    /// running vault. Empty lines are ignored.
    pub fn read<'l>(lines: impl IntoIterator<Item = &'l str>) -> Result<Self, DumpError> {
        let mut dump = Self::default();
        let mut end = None;
        for (at, text) in lines.into_iter().enumerate() {
            let invalid = |problem| DumpError::Line { line: at + 1, problem };
            if text.trim().is_empty() {
                continue;
            }
            if end.is_some() {
                return Err(invalid(LineError::AfterEnd));
            }
            end = dump.read_line(text, at == 0).map_err(invalid)?;
        }
        if dump.head.vault == 0 {
            return Err(VaultProblem::NoHead.into());
        }
        dump.end = end.ok_or(VaultProblem::NoEnd)?;
        let found = dump.counts();
        if dump.end != found {
            let (announced, found) = (line(&dump.end), line(&found));
            return Err(VaultProblem::Counts { announced, found }.into());
        }
        dump.check()?;
        Ok(dump)
    }

    fn read_line(&mut self, text: &str, first: bool) -> Result<Option<End>, LineError> {
        let json = parse(text).map_err(|error| LineError::Json(error.to_string()))?;
        if first {
            self.head = from_json(&json)?;
            if self.head.vault != Self::VERSION {
                return Err(LineError::Version(self.head.vault));
            }
            return Ok(None);
        }
        let Json::Object(object) = json else { return Err(LineError::Kind) };
        let mut members = object.iter();
        let (Some((name, json)), None) = (members.next(), members.next()) else {
            return Err(LineError::Kind);
        };
        let once = |repeated: bool, what: String| {
            if repeated { Err(LineError::Repeated(what)) } else { Ok(()) }
        };
        match name {
            "end" => return from_json(json).map(Some),
            "account" => {
                let one: AccountLine = from_json(json)?;
                if one.name.encode_utf16().count() > NAME_UNITS {
                    return Err(LineError::LongName { account: one.id });
                }
                let id = uuid_of(&one.id)?;
                let what = format!("account {id}");
                once(self.accounts.insert(id, one).is_some(), what)
            }
            "password" => {
                let PasswordLine { account, digest } = from_json(json)?;
                let (id, password) = (uuid_of(&account)?, Password::parse(&digest)?);
                let old = self.passwords.insert(id, password).is_some();
                once(old, format!("the password of account {id}"))
            }
            "node" => {
                let (id, content) = node_of(json)?;
                once(self.nodes.insert(id, content).is_some(), format!("node {id}"))
            }
            "ref" => {
                let RefRow { parent, child, owner } = from_json(json)?;
                let old = self.refs.insert((parent, child), owner).is_some();
                once(old, format!("the reference from {parent} to {child}"))
            }
            "player" => {
                let one: PlayerLine = from_json(json)?;
                let id = one.id;
                once(self.players.insert(id, one).is_some(), format!("player {id}"))
            }
            "score" => {
                let one: ScoreRow = from_json(json)?;
                let id = one.id;
                if one.kind > MAX_KIND {
                    return Err(LineError::ScoreKind { id, kind: one.kind });
                }
                once(self.scores.insert(id, one).is_some(), format!("score {id}"))
            }
            _ => Err(LineError::Kind),
        }?;
        Ok(None)
    }

    /// Checks that the lines together form a vault.
    fn check(&self) -> Result<(), VaultProblem> {
        if self.head.next_node > MAX_NEXT || self.head.next_score > MAX_NEXT {
            return Err(VaultProblem::NextNumbers);
        }
        // New numbers follow the highest one in use.
        let highest =
            [("node", self.nodes.keys().next_back()), ("score", self.scores.keys().next_back())];
        for (what, id) in highest {
            if let Some(id) = id.filter(|id| **id >= MAX_NEXT) {
                return Err(VaultProblem::HighNumber { what, id: *id });
            }
        }
        let mut graph = Graph::default();
        let mut systems = 0;
        for (id, content) in &self.nodes {
            let Ok(node) = decode(content) else { return Err(VaultProblem::DamagedNode(*id)) };
            systems += usize::from(node.node_type == Some(NodeType::System));
            graph.set(*id, Some(Entry::of(&node, &graph.keys)));
        }
        if systems != 1 {
            return Err(VaultProblem::Systems(systems));
        }
        for (&(parent, child), &owner) in &self.refs {
            graph.link(parent, child, owner);
        }
        if let Some(id) = self.passwords.keys().find(|id| !self.accounts.contains_key(id)) {
            return Err(VaultProblem::PasswordWithoutAccount(*id));
        }
        let mut scores = BTreeSet::new();
        for (id, score) in &self.scores {
            if !scores.insert((score.owner, &score.name)) {
                return Err(VaultProblem::SameScore(*id));
            }
        }
        let players = self.players.iter().map(|(id, player)| {
            let account = uuid_of(&player.account);
            (*id, &*player.name, account.is_ok_and(|id| self.accounts.contains_key(&id)))
        });
        match problems(&graph, players).into_iter().next() {
            Some(Finding { id, text, .. }) => Err(VaultProblem::Check { id, text }),
            None => Ok(()),
        }
    }
}

/// Parses a digest of 40 hexadecimal digits.
pub(crate) fn digest(hex: &str) -> Option<[u8; 20]> {
    // `parse_hex` ignores spaces.
    let bytes = parse_hex(hex).filter(|bytes| hex.len() == 2 * bytes.len())?;
    bytes.try_into().ok()
}

/// The fields of a node given as JSON.
pub(crate) fn fields_of(json: &Json) -> Result<VaultNode<'static>, Error> {
    Ok(VaultNode::from_json(json.into())?.into_owned())
}

fn node_of(json: &Json) -> Result<(u32, Content), LineError> {
    let node = fields_of(json)?;
    let id = node.node_id.filter(|id| *id != 0 && node.node_type.is_some());
    let id = id.ok_or(LineError::NoNodeId)?;
    node.check_lengths(usize::MAX).map_err(|error| LineError::Node { id, error })?;
    let content = encode(&node).map_err(|_| LineError::LongField(id))?;
    Ok((id, content))
}

fn line(value: &impl Serialize) -> String {
    // Serialising structs of numbers and strings cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn named(name: &str, json: &str) -> String {
    format!("{{\"{name}\":{json}}}")
}

fn from_json<T: serde::de::DeserializeOwned>(json: &Json) -> Result<T, LineError> {
    let value = serde_json::to_value(json).and_then(serde_json::from_value);
    value.map_err(|error| LineError::Json(error.to_string()))
}

/// Parses a UUID.
pub(crate) fn uuid_of(text: &str) -> Result<Uuid, Error> {
    let json = Json::from(text);
    Uuid::from_json((&json).into())
}
