//! Exports: converts a dump to another server's rows.

use std::collections::{BTreeMap, HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use worldwire_uru::crypt::login::is_email_name;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{TermStr, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use super::row::node_columns;
use super::{Result, reversed, whole};
use crate::uru::vault::{AgeNode, is_marker_node};
use crate::uru::vault::{Dump, decode, uuid_of};

/// The differences between the two servers.
pub(super) struct Server {
    /// The flag of beta testers.
    pub(super) beta_tester: u32,
    /// Whether players have their own table.
    has_players: bool,
    /// The maximum length of a Text, in characters.
    max_text: usize,
}

pub(super) const DIRTSAND: Server = Server { beta_tester: 4, has_players: true, max_text: 1024 };
pub(super) const MOULARS: Server =
    Server { beta_tester: 2, has_players: false, max_text: usize::MAX };

/// A table of dirtsand's database. Except for `others`, moulars writes the same names in snake case.
#[derive(Debug)]
pub(super) struct Table {
    /// The name with the schema, as it appears in statements.
    pub(super) name: &'static str,
    columns: &'static str,
    /// Columns whose names are unrelated: their names in dirtsand and in moulars.
    others: &'static [(&'static str, &'static str)],
}

impl Table {
    pub(super) fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.columns.split(' ')
    }

    pub(super) fn moulars_name(&self) -> String {
        let name = self.name.split('"').nth(1).unwrap_or_default();
        snake(name)
    }

    pub(super) fn moulars_columns(&self) -> impl Iterator<Item = String> {
        self.columns().map(|column| {
            let other = self.others.iter().find(|(name, _)| *name == column);
            other.map_or_else(|| snake(column), |(_, other)| (*other).to_owned())
        })
    }
}

/// `AgeStates` as `age_states`, and `IString64_1` as `istring64_1`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        before = c;
    }
    out
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Signed(i64),
    /// A 32-bit number, which dirtsand stores as signed.
    Unsigned(u32),
    Flag(bool),
    Text(String),
    Uuid(Uuid),
    Blob(Vec<u8>),
}

/// A table's rows.
pub(super) struct Filled {
    pub(super) table: &'static Table,
    pub(super) rows: Vec<Vec<Value>>,
    /// The number of the next row.
    pub(super) next: u32,
}

/// An exported shard.
pub(super) struct Rows {
    pub(super) tables: Vec<Filled>,
    /// The highest sequence number of an age.
    pub(super) last_age: u32,
    pub(super) skipped: Vec<String>,
}

/// The number of the first node on both servers.
const FIRST_NODE: u32 = 10_001;
/// The maximum length of other texts, in characters.
const MAX_SHORT: usize = 64;
/// The billing type of all accounts: paid.
const BILLING: i64 = 1;

const fn table(name: &'static str, columns: &'static str) -> Table {
    Table { name, columns, others: &[] }
}

const ACCOUNTS: Table = Table {
    others: &[
        ("Login", "account_name"),
        ("AcctUuid", "account_id"),
        ("AcctFlags", "account_flags"),
    ],
    ..table("auth.\"Accounts\"", "idx Login PassHash AcctUuid AcctFlags BillingType")
};

const PLAYERS: Table =
    table("auth.\"Players\"", "idx AcctUuid PlayerIdx PlayerName AvatarShape Explorer");

const SCORES: Table = table("auth.\"Scores\"", "idx CreateTime OwnerIdx Type Name Points");

macro_rules! node_names {
    ($($field:ident $column:literal $read:ident),*) => { concat!("idx", $(" ", $column),*) };
}

const NODES: Table = table("vault.\"Nodes\"", node_columns!(node_names));

const REFS: Table = table("vault.\"NodeRefs\"", "idx ParentIdx ChildIdx OwnerIdx");

const SERVERS: Table = Table {
    others: &[("AgeUuid", "instance_uuid")],
    ..table("game.\"Servers\"", "idx AgeUuid AgeFilename DisplayName AgeIdx SdlIdx Temporary")
};

const AGE_STATES: Table = table("game.\"AgeStates\"", "idx ServerIdx Descriptor ObjectKey SdlBlob");

const GLOBAL_STATES: Table = table("vault.\"GlobalStates\"", "idx Descriptor SdlBlob");

/// Converts a dump to a server's rows, and lists data that the server cannot keep. Fails if the
/// system cannot supply random numbers.
pub(super) fn rows(dump: &Dump, server: &Server) -> Result<Rows> {
    let mut exporter = Exporter { dump, server, nodes: BTreeMap::new(), skipped: Vec::new() };
    for (id, content) in &dump.nodes {
        let node = decode(content).map_err(|_| whole(&format!("node {id} is damaged")))?;
        exporter.nodes.insert(*id, node);
    }
    let accounts = exporter.accounts()?;
    let players = exporter.players();
    let scores = exporter.scores();
    let (servers, numbers) = exporter.servers();
    let (age_states, global_states) = exporter.states(&numbers);
    let nodes = exporter.nodes();
    let refs = exporter.refs();
    let mut tables = vec![accounts];
    tables.extend(server.has_players.then_some(players));
    tables.extend([scores, nodes, refs, global_states, servers, age_states]);
    let ages = exporter.nodes.values().filter(|node| node.node_type == Some(NodeType::AgeInfo));
    let last_age = ages.filter_map(|info| u32::try_from(info.int32_1?).ok()).max().unwrap_or(0);
    Ok(Rows { tables, last_age, skipped: exporter.skipped })
}

struct Exporter<'d> {
    dump: &'d Dump,
    server: &'d Server,
    nodes: BTreeMap<u32, VaultNode<'d>>,
    skipped: Vec<String>,
}

impl Exporter<'_> {
    fn accounts(&mut self) -> Result<Filled> {
        let mut rows = Vec::new();
        let mut other_flags = BTreeMap::<u32, usize>::new();
        let mut dated = 0;
        for (id, account) in &self.dump.accounts {
            let name = &account.name;
            let digest = match self.dump.passwords.get(id) {
                Some(password) if is_email_name(name) => password.0,
                Some(password) => reversed(password.0),
                None => {
                    self.skipped.push(format!("account {name}: it has no password in the dump"));
                    let mut unknown = [0; 20];
                    getrandom::fill(&mut unknown).map_err(|error| whole(&error.to_string()))?;
                    unknown
                }
            };
            let (admin, banned) = (AccountFlags::Admin.0, AccountFlags::Banned.0);
            let tester = AccountFlags::BetaTester.0;
            let other = account.flags & !(admin | banned | tester);
            if other != 0 {
                *other_flags.entry(other).or_default() += 1;
            }
            dated += usize::from(account.created != 0);
            let is_tester = account.flags & tester != 0;
            let tester = if is_tester { self.server.beta_tester } else { 0 };
            rows.push(vec![
                number(rows.len()),
                Value::Text(name.clone()),
                Value::Text(digest.iter().map(|byte| format!("{byte:02x}")).collect()),
                Value::Uuid(*id),
                Value::Unsigned(account.flags & (admin | banned) | tester),
                Value::Signed(BILLING),
            ]);
        }
        let flags = other_flags.into_iter();
        self.skipped.extend(
            flags.map(|(flags, count)| format!("{}: flags {flags:#x}", counted(count, "account"))),
        );
        if dated > 0 {
            self.skipped.push(format!("{}: the creation time", counted(dated, "account")));
        }
        Ok(filled(&ACCOUNTS, rows))
    }

    /// Players. If the server has no table for them, this includes the fields of their nodes.
    fn players(&mut self) -> Filled {
        let mut rows = Vec::new();
        for (id, player) in &self.dump.players {
            // This was checked when the dump was read.
            let account = uuid_of(&player.account).unwrap_or_default();
            if let Some(node) = self.nodes.get_mut(id) {
                if node.create_time != Some(player.created) {
                    self.skipped.push(format!("player {id} ({}): the creation time", player.name));
                }
                if !self.server.has_players {
                    node.uuid_1 = Some(account);
                    node.istring64_1 = Some(TermStr::from(&*player.name));
                    node.string64_1 = Some(TermStr::from(&*player.shape));
                    node.int32_2 = Some(i32::try_from(player.explorer).unwrap_or(1));
                }
            }
            rows.push(vec![
                number(rows.len()),
                Value::Uuid(account),
                Value::Unsigned(*id),
                Value::Text(player.name.clone()),
                Value::Text(player.shape.clone()),
                Value::Unsigned(player.explorer),
            ]);
        }
        filled(&PLAYERS, rows)
    }

    fn scores(&self) -> Filled {
        let rows = self.dump.scores.iter().map(|(id, score)| {
            vec![
                Value::Unsigned(*id),
                Value::Unsigned(score.created),
                Value::Unsigned(score.owner),
                Value::Unsigned(score.kind),
                Value::Text(score.name.clone()),
                Value::Signed(score.value.into()),
            ]
        });
        Filled { table: &SCORES, rows: rows.collect(), next: self.dump.head.next_score }
    }

    /// The servers for instances, and the numbers of these servers.
    fn servers(&mut self) -> (Filled, HashMap<Uuid, u32>) {
        let (mut rows, mut numbers) = (Vec::new(), HashMap::new());
        for (age, node) in &self.nodes {
            if node.node_type != Some(NodeType::Age) {
                continue;
            }
            let instance = node.uuid_1.unwrap_or_default();
            let serial = u32::try_from(rows.len() + 1).unwrap_or(u32::MAX);
            if instance.is_zero() || numbers.contains_key(&instance) {
                self.skipped.push(format!("age {age}: it has no unique UUID"));
                continue;
            }
            numbers.insert(instance, serial);
            let info = self.below(*age, NodeType::AgeInfo);
            let states = info.and_then(|(info, _)| self.below(info, NodeType::SDL));
            let text = |field: &Option<TermStr<'_>>| {
                field.as_ref().map(TermStr::to_text).filter(|text| !text.is_empty())
            };
            let filename = text(&node.string64_1).unwrap_or_default();
            // The name that both servers show to players.
            let shown =
                info.and_then(|(_, info)| text(&info.text_1).or_else(|| text(&info.string64_3)));
            rows.push(vec![
                Value::Unsigned(serial),
                Value::Uuid(instance),
                Value::Text(filename.clone()),
                Value::Text(plain(&shown.unwrap_or(filename)).chars().take(1024).collect()),
                Value::Unsigned(*age),
                Value::Unsigned(states.map_or(0, |(states, _)| states)),
                Value::Flag(false),
            ]);
        }
        (filled(&SERVERS, rows), numbers)
    }

    /// The first child of this type.
    fn below(&self, parent: u32, kind: NodeType) -> Option<(u32, &VaultNode<'_>)> {
        let children = self.dump.refs.range((parent, 0)..=(parent, u32::MAX));
        let mut nodes =
            children.filter_map(|((_, child), _)| Some((*child, self.nodes.get(child)?)));
        nodes.find(|(_, node)| node.node_type == Some(kind))
    }

    /// Objects' states, and settings for all instances of an age. In the dump, they are nodes.
    fn states(&mut self, servers: &HashMap<Uuid, u32>) -> (Filled, Filled) {
        let (mut objects, mut settings) = (Vec::new(), Vec::new());
        let mut taken = HashSet::new();
        for (id, node) in &self.nodes {
            match AgeNode::of(node) {
                None => continue,
                Some(AgeNode::Object { instance, descriptor, object, state }) => {
                    match servers.get(&instance) {
                        Some(server) => objects.push(vec![
                            number(objects.len()),
                            Value::Unsigned(*server),
                            Value::Text(descriptor),
                            // Both servers store this as text.
                            Value::Text(STANDARD.encode(&object)),
                            Value::Blob(state),
                        ]),
                        None => self.skipped.push(format!(
                            "the state of an object ({descriptor}) in node {id}: its age is missing"
                        )),
                    }
                }
                Some(AgeNode::Settings { age, state }) => settings.push(vec![
                    number(settings.len()),
                    Value::Text(age),
                    Value::Blob(state),
                ]),
            }
            taken.insert(*id);
        }
        self.nodes.retain(|id, _| !taken.contains(id));
        let is_marker = |node: &VaultNode<'_>| node.node_type.is_some_and(is_marker_node);
        let before = self.nodes.len();
        self.nodes.retain(|_, node| !is_marker(node));
        let markers = before - self.nodes.len();
        if markers > 0 {
            let count = counted(markers, "node");
            self.skipped
                .push(format!("marker games in {count}: the other server cannot store them"));
        }
        (filled(&AGE_STATES, objects), filled(&GLOBAL_STATES, settings))
    }

    fn nodes(&mut self) -> Filled {
        let (mut rows, mut unmade) = (Vec::new(), 0);
        for (id, node) in &self.nodes {
            let (max_text, skipped) = (self.server.max_text, &mut self.skipped);
            let mut cells = Cells { id: *id, max_text, skipped };
            macro_rules! row {
                ($($field:ident $column:literal $value:ident),*) => {
                    vec![
                        Value::Unsigned(*id),
                        $(node.$field.as_ref().map_or(Value::Null, |it| cells.$value($column, it))),*
                    ]
                };
            }
            let mut row = node_columns!(row);
            // Both servers require these columns.
            let required = [
                ("CreateTime", Value::Unsigned(0)),
                ("ModifyTime", Value::Unsigned(0)),
                ("CreatorUuid", Value::Uuid(Uuid::ZERO)),
                ("CreatorIdx", Value::Unsigned(0)),
            ];
            let mut is_unmade = false;
            for (value, column) in row.iter_mut().zip(NODES.columns()) {
                if *value == Value::Null
                    && let Some((_, default)) = required.iter().find(|(name, _)| *name == column)
                {
                    *value = default.clone();
                    is_unmade = true;
                }
            }
            unmade += usize::from(is_unmade);
            rows.push(row);
        }
        if unmade > 0 {
            let count = counted(unmade, "node");
            self.skipped
                .push(format!("{count}: the fact that the creator and creation time are unknown"));
        }
        Filled { table: &NODES, rows, next: self.dump.head.next_node.max(FIRST_NODE) }
    }

    fn refs(&self) -> Filled {
        let refs = self.dump.refs.iter().enumerate();
        let rows = refs.map(|(at, ((parent, child), owner))| {
            let ends = [parent, child, owner].map(|id| Value::Unsigned(*id));
            [number(at)].into_iter().chain(ends).collect()
        });
        filled(&REFS, rows.collect())
    }
}

/// Converts the fields of a node.
struct Cells<'c> {
    id: u32,
    max_text: usize,
    skipped: &'c mut Vec<String>,
}

#[expect(clippy::unused_self, reason = "the table of columns names these methods")]
impl Cells<'_> {
    fn string(&mut self, column: &str, field: &TermStr<'_>) -> Value {
        let most = if column.starts_with("Text") { self.max_text } else { MAX_SHORT };
        let (text, lost) = fitting(field, most);
        let lost = lost.map(|lost| format!("node {}: {column}: {lost}", self.id));
        self.skipped.extend(lost);
        Value::Text(text)
    }

    fn unsigned(&self, _column: &str, number: &u32) -> Value {
        Value::Unsigned(*number)
    }

    fn signed(&self, _column: &str, number: &i32) -> Value {
        Value::Signed((*number).into())
    }

    fn uuid(&self, _column: &str, uuid: &Uuid) -> Value {
        Value::Uuid(*uuid)
    }

    fn kind(&self, _column: &str, kind: &NodeType) -> Value {
        Value::Unsigned(kind.0)
    }

    fn blob(&self, _column: &str, blob: &NodeBlob<'_>) -> Value {
        Value::Blob(blob.to_vec())
    }
}

/// A table of rows numbered from 1.
fn filled(table: &'static Table, rows: Vec<Vec<Value>>) -> Filled {
    let next = u32::try_from(rows.len() + 1).unwrap_or(u32::MAX);
    Filled { table, rows, next }
}

/// The number of the row that follows this many rows.
fn number(rows: usize) -> Value {
    Value::Signed(i64::try_from(rows + 1).unwrap_or(i64::MAX))
}

/// Shortens a text to the length that a database can store, and describes what is lost.
fn fitting(field: &TermStr<'_>, most: usize) -> (String, Option<String>) {
    let text = field.to_text();
    let kept: String = plain(&text).chars().take(most).collect();
    let lost = if kept != text {
        Some(format!("the text after {}", counted(kept.chars().count(), "character")))
    } else if *field != *text {
        Some("invalid UTF-16 units".to_owned())
    } else {
        None
    };
    (kept, lost)
}

/// A text up to the first zero, which PostgreSQL cannot store.
fn plain(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default()
}

pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
