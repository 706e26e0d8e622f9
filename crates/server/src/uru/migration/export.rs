//! Exporting: converts a dump to another server's rows.

use std::collections::{BTreeMap, HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use worldwire_uru::crypt::login::is_email_name;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{TermStr, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use super::{Result, reversed, whole};
use crate::uru::vault::AgeNode;
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

/// A table, by its names in both databases.
#[derive(Debug)]
pub(super) struct Table {
    /// With its schema, as statements name it.
    pub(super) dirtsand: &'static str,
    pub(super) moulars: &'static str,
    /// The names of the columns in both databases, separated by spaces and in the same order.
    pub(super) columns: [&'static str; 2],
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Signed(i64),
    /// A number of 32 bits, which dirtsand stores as signed.
    Unsigned(u32),
    Flag(bool),
    Text(String),
    Uuid(Uuid),
    Blob(Vec<u8>),
}

/// The rows of a table.
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

const ACCOUNTS: Table = Table {
    dirtsand: "auth.\"Accounts\"",
    moulars: "accounts",
    columns: [
        "idx Login PassHash AcctUuid AcctFlags BillingType",
        "idx account_name pass_hash account_id account_flags billing_type",
    ],
};

const PLAYERS: Table = Table {
    dirtsand: "auth.\"Players\"",
    moulars: "",
    columns: ["idx AcctUuid PlayerIdx PlayerName AvatarShape Explorer", ""],
};

const SCORES: Table = Table {
    dirtsand: "auth.\"Scores\"",
    moulars: "scores",
    columns: [
        "idx CreateTime OwnerIdx Type Name Points",
        "idx create_time owner_idx type name points",
    ],
};

const NODES: Table = Table {
    dirtsand: "vault.\"Nodes\"",
    moulars: "nodes",
    columns: [
        "idx CreateTime ModifyTime CreateAgeName CreateAgeUuid CreatorUuid CreatorIdx \
        NodeType Int32_1 Int32_2 Int32_3 Int32_4 Uint32_1 Uint32_2 Uint32_3 Uint32_4 \
        Uuid_1 Uuid_2 Uuid_3 Uuid_4 String64_1 String64_2 String64_3 String64_4 String64_5 \
        String64_6 IString64_1 IString64_2 Text_1 Text_2 Blob_1 Blob_2",
        "idx create_time modify_time create_age_name create_age_uuid creator_uuid \
        creator_idx node_type int32_1 int32_2 int32_3 int32_4 uint32_1 uint32_2 uint32_3 \
        uint32_4 uuid_1 uuid_2 uuid_3 uuid_4 string64_1 string64_2 string64_3 string64_4 \
        string64_5 string64_6 istring64_1 istring64_2 text_1 text_2 blob_1 blob_2",
    ],
};

const REFS: Table = Table {
    dirtsand: "vault.\"NodeRefs\"",
    moulars: "node_refs",
    columns: ["idx ParentIdx ChildIdx OwnerIdx", "idx parent_idx child_idx owner_idx"],
};

const SERVERS: Table = Table {
    dirtsand: "game.\"Servers\"",
    moulars: "servers",
    columns: [
        "idx AgeUuid AgeFilename DisplayName AgeIdx SdlIdx Temporary",
        "idx instance_uuid age_filename display_name age_idx sdl_idx temporary",
    ],
};

const AGE_STATES: Table = Table {
    dirtsand: "game.\"AgeStates\"",
    moulars: "age_states",
    columns: [
        "idx ServerIdx Descriptor ObjectKey SdlBlob",
        "idx server_idx descriptor object_key sdl_blob",
    ],
};

const GLOBAL_STATES: Table = Table {
    dirtsand: "vault.\"GlobalStates\"",
    moulars: "global_states",
    columns: ["idx Descriptor SdlBlob", "idx descriptor sdl_blob"],
};

/// Converts a dump to a server's rows, and lists data that it cannot keep. Fails if the system has
/// no random numbers.
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

    /// Players; without a table for them, also the fields of their nodes.
    fn players(&mut self) -> Filled {
        let mut rows = Vec::new();
        for (id, player) in &self.dump.players {
            // Reading the dump has checked this.
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

    /// The servers of instances, and their numbers.
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

    /// States of objects, and settings for all instances of an age. Here they are nodes.
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
                            // Both servers store it as text.
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
        (filled(&AGE_STATES, objects), filled(&GLOBAL_STATES, settings))
    }

    fn nodes(&mut self) -> Filled {
        let (mut rows, mut unmade) = (Vec::new(), 0);
        for (id, node) in &self.nodes {
            let max_text = self.server.max_text;
            let skipped = &mut self.skipped;
            let mut text = |name: &str, field: &Option<TermStr<'_>>, most| {
                field.as_ref().map_or(Value::Null, |field| {
                    let (text, lost) = fitting(field, most);
                    skipped.extend(lost.map(|lost| format!("node {id}: {name}: {lost}")));
                    Value::Text(text)
                })
            };
            macro_rules! fields {
                ($make:ident: $($field:ident),*) => {
                    [$(node.$field.as_ref().map_or(Value::Null, $make)),*]
                };
            }
            macro_rules! texts {
                ($most:expr; $($name:literal $field:ident),*) => {
                    [$(text($name, &node.$field, $most)),*]
                };
            }
            let age_name = text("CreateAgeName", &node.create_age_name, MAX_SHORT);
            let strings = texts!(MAX_SHORT;
                "String64_1" string64_1, "String64_2" string64_2, "String64_3" string64_3,
                "String64_4" string64_4, "String64_5" string64_5, "String64_6" string64_6,
                "IString64_1" istring64_1, "IString64_2" istring64_2);
            let long = texts!(max_text; "Text_1" text_1, "Text_2" text_2);
            let made = fields!(unsigned: create_time, modify_time, creator_id);
            let creator = node.creator_acct;
            unmade += usize::from(creator.is_none() || made.contains(&Value::Null));
            let or_zero = |value: &Value| match value {
                Value::Null => Value::Unsigned(0),
                value => value.clone(),
            };
            let [create_time, modify_time, creator_id] = made.each_ref().map(or_zero);
            let row = [
                Value::Unsigned(*id),
                create_time,
                modify_time,
                age_name,
                node.create_age_uuid.as_ref().map_or(Value::Null, uuid),
                Value::Uuid(creator.unwrap_or_default()),
                creator_id,
                Value::Unsigned(node.node_type.unwrap_or_default().0),
            ];
            let numbers = fields!(signed: int32_1, int32_2, int32_3, int32_4).into_iter();
            let numbers = numbers.chain(fields!(unsigned: uint32_1, uint32_2, uint32_3, uint32_4));
            let uuids = fields!(uuid: uuid_1, uuid_2, uuid_3, uuid_4);
            let blobs = fields!(blob: blob_1, blob_2);
            let row = row.into_iter().chain(numbers).chain(uuids);
            rows.push(row.chain(strings).chain(long).chain(blobs).collect());
        }
        if unmade > 0 {
            let count = counted(unmade, "node");
            self.skipped.push(format!("{count}: that the creator and creation time are unknown"));
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

/// A table of rows numbered from 1.
fn filled(table: &'static Table, rows: Vec<Vec<Value>>) -> Filled {
    let next = u32::try_from(rows.len() + 1).unwrap_or(u32::MAX);
    Filled { table, rows, next }
}

/// The number of the next row after this many.
fn number(rows: usize) -> Value {
    Value::Signed(i64::try_from(rows + 1).unwrap_or(i64::MAX))
}

fn signed(number: &i32) -> Value {
    Value::Signed((*number).into())
}

fn unsigned(number: &u32) -> Value {
    Value::Unsigned(*number)
}

fn uuid(uuid: &Uuid) -> Value {
    Value::Uuid(*uuid)
}

fn blob(blob: &NodeBlob<'_>) -> Value {
    Value::Blob(blob.to_vec())
}

/// Shortens a text to what a database can store, and describes what is lost.
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
