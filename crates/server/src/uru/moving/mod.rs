//! Moving in: what a shard of dirtsand or moulars keeps, as a dump of a vault here.
//!
//! | from | what is read |
//! | --- | --- |
//! | dirtsand | the text of `pg_dump --column-inserts`, with or without the schema |
//! | moulars | its SQLite file |
//!
//! Both keep nearly the same tables under other names, so both are read into rows first.
//! Numbers of nodes, players and scores stay as they are, and so do accounts with their passwords:
//! the digests are those that clients prove to know. What a dump cannot keep is listed, so nothing is
//! dropped silently. An import takes everybody offline, whatever the flags say.

mod pg_dump;
mod sqlite;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use worldwire_core::Field as _;
use worldwire_uru::crypt::login::is_email_name;
use worldwire_uru::types::{TermStr, Uuid};
use worldwire_uru::vault::{Blob, NodeType, VaultNode};

use super::vault::{digest, encode_node, node_json};

/// A shard that moves in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct House {
    /// The lines of a [`Dump`](super::vault::Dump). They hold digests of passwords, which are as
    /// good as passwords.
    pub lines: Vec<String>,
    /// What is not in the lines, for people.
    pub left: Vec<String>,
}

/// Why a database cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MovingError {
    /// A dump is not what `pg_dump --column-inserts` writes.
    #[error("line {line}: {problem}")]
    Dump {
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A row is not what the server writes.
    #[error("{table} {row}: {problem}")]
    Row {
        /// The table, in lower case and without `_`.
        table: &'static str,
        /// Its `idx`.
        row: i64,
        /// What is wrong.
        problem: String,
    },
    /// The database as a whole.
    #[error("{0}")]
    Whole(String),
}

type Result<T> = std::result::Result<T, MovingError>;

/// A value of a database.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row, by names of columns in lower case and without `_`.
type Row = HashMap<String, Cell>;

/// Rows by the names of their tables, in lower case and without `_` and schema.
type Tables = BTreeMap<String, Vec<Row>>;

/// Reads a dump of dirtsand's database.
///
/// # Errors
/// As [`MovingError`] says.
pub fn dirtsand(dump: &str) -> Result<House> {
    let tables = pg_dump::read(dump)?;
    Mover { tables, beta_tester: 4, house: House::default() }.finish()
}

/// Reads moulars' database file, which its server must not have open.
///
/// # Errors
/// As [`MovingError`] says.
pub async fn moulars(file: &Path) -> Result<House> {
    let tables = sqlite::read(file).await?;
    Mover { tables, beta_tester: 2, house: House::default() }.finish()
}

/// The name of a table or column, without what tells the two servers apart.
fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}

struct Mover {
    tables: Tables,
    /// The flag of beta testers.
    beta_tester: u32,
    house: House,
}

/// A row with its place, for errors.
struct At<'r> {
    table: &'static str,
    row: &'r Row,
}

impl Mover {
    fn finish(mut self) -> Result<House> {
        let accounts = self.accounts()?;
        let nodes = self.nodes()?;
        let refs = self.refs(&nodes)?;
        let players = self.players(&nodes, &accounts)?;
        let (scores, next_score) = self.scores()?;
        let next_node = nodes.keys().next_back().map_or(1, |last| last.saturating_add(1));
        let end = json!({"end": {
            "accounts": accounts.len(),
            "nodes": nodes.len(),
            "refs": refs.len(),
            "players": players.len(),
            "scores": scores.len(),
        }});
        let head = json!({"vault": 1, "next_node": next_node, "next_score": next_score});
        let lines = &mut self.house.lines;
        lines.push(head.to_string());
        lines.extend(accounts.into_values().flatten());
        for node in nodes.values() {
            let content = encode_node(node);
            let content = content.map_err(|_| whole("a node has a field that is too long"))?;
            lines.push(format!("{{\"node\":{}}}", node_json(&content)));
        }
        lines.extend(refs.into_iter().chain(players).chain(scores));
        lines.push(end.to_string());
        for (table, what) in [
            ("globalstates", "shard-wide settings"),
            ("agestates", "states of objects in ages"),
            ("apitokens", "tokens of its API"),
        ] {
            let count = self.rows(table).len();
            if count > 0 {
                self.house.left.push(format!("{count} {what}"));
            }
        }
        Ok(self.house)
    }

    fn rows(&self, table: &str) -> &[Row] {
        self.tables.get(table).map(Vec::as_slice).unwrap_or_default()
    }

    /// The lines of each account: itself, and its password.
    fn accounts(&mut self) -> Result<BTreeMap<Uuid, Vec<String>>> {
        let mut accounts = BTreeMap::new();
        let mut left = Vec::new();
        let mut names = HashSet::new();
        for row in self.rows("accounts") {
            let at = At { table: "accounts", row };
            let name = at.text("login")?.or(at.text("accountname")?);
            let name = name.ok_or_else(|| at.wrong("wanted a name, found none"))?;
            let id = at.uuid("acctuuid")?.or(at.uuid("accountid")?);
            let id = id.ok_or_else(|| at.wrong("wanted a UUID, found none"))?;
            if !names.insert(name.to_lowercase()) {
                return Err(at.wrong("two accounts have this name but for its case: rename one"));
            }
            let flags = at.number("acctflags")?.or(at.number("accountflags")?).unwrap_or(0);
            let flags = u32::try_from(flags).map_err(|_| at.wrong("wanted flags"))?;
            let known = 1 | self.beta_tester | 0x1_0000;
            if flags & !known != 0 {
                left.push(format!("account {name}: flags {:#x}", flags & !known));
            }
            let tester = if flags & self.beta_tester == 0 { 0 } else { 4 };
            let flags = flags & 0x1_0001 | tester;
            let account = json!({"id": id.to_string(), "name": name, "flags": flags, "created": 0});
            let mut lines = vec![json!({ "account": account }).to_string()];
            match at.text("passhash")?.and_then(|hex| digest(hex.trim())) {
                Some(digest) => {
                    if is_email_name(&name) && name.chars().any(|c| c.is_ascii_uppercase()) {
                        left.push(format!(
                            "account {name}: a password that H'uru clients can log in with: its \
                             digest was made of a name with capital letters"
                        ));
                    }
                    let digest = if is_email_name(&name) { digest } else { reversed(digest) };
                    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                    let password = json!({"account": id.to_string(), "digest": digest});
                    lines.push(json!({ "password": password }).to_string());
                }
                None => left.push(format!("account {name}: a password: its digest is damaged")),
            }
            if accounts.insert(id, lines).is_some() {
                return Err(at.wrong("two accounts have this UUID"));
            }
        }
        self.house.left.append(&mut left);
        Ok(accounts)
    }

    fn nodes(&self) -> Result<BTreeMap<u32, VaultNode<'static>>> {
        let mut nodes = BTreeMap::new();
        for row in self.rows("nodes") {
            let node = At { table: "nodes", row }.node()?;
            nodes.insert(node.node_id.unwrap_or(0), node);
        }
        if nodes.is_empty() {
            return Err(whole("wanted a table of nodes, found none"));
        }
        Ok(nodes)
    }

    fn refs(&mut self, nodes: &BTreeMap<u32, VaultNode<'static>>) -> Result<Vec<String>> {
        let mut left = Vec::new();
        let mut refs = BTreeMap::new();
        for row in self.rows("noderefs") {
            let at = At { table: "noderefs", row };
            let (parent, child) = (at.id("parentidx")?, at.id("childidx")?);
            let owner = at.unsigned("owneridx")?.unwrap_or(0);
            if !nodes.contains_key(&parent) || !nodes.contains_key(&child) {
                left.push(format!("the reference from {parent} to {child}: one is missing"));
            } else if let Entry::Vacant(place) = refs.entry((parent, child)) {
                let line = json!({"ref": {"parent": parent, "child": child, "owner": owner}});
                place.insert(line.to_string());
            } else {
                left.push(format!("the reference from {parent} to {child}, a second time"));
            }
        }
        self.house.left.append(&mut left);
        Ok(refs.into_values().collect())
    }

    /// Players are in a table of their own on dirtsand, and nodes only on moulars.
    fn players(
        &mut self,
        nodes: &BTreeMap<u32, VaultNode<'static>>,
        accounts: &BTreeMap<Uuid, Vec<String>>,
    ) -> Result<Vec<String>> {
        let mut left = Vec::new();
        let mut players = BTreeMap::new();
        let player_nodes: BTreeMap<_, _> =
            nodes.iter().filter(|(_, node)| node.node_type == Some(NodeType::Player)).collect();
        let mut player = |id: u32, account: Uuid, name: String, shape: String, explorer: i64| {
            if !accounts.contains_key(&account) {
                left.push(format!("player {id} ({name}): its account is missing"));
            } else if let Some(node) = player_nodes.get(&id) {
                let created = node.create_time.unwrap_or(0);
                let account = account.to_string();
                let explorer = u32::from(explorer != 0);
                let line = json!({"player": {
                    "id": id,
                    "account": account,
                    "name": name,
                    "shape": shape,
                    "explorer": explorer,
                    "created": created,
                }});
                players.insert(id, line.to_string());
            } else {
                left.push(format!("player {id} ({name}): it has no node"));
            }
        };
        if self.tables.contains_key("players") {
            for row in self.rows("players") {
                let at = At { table: "players", row };
                let account = at.uuid("acctuuid")?.unwrap_or(Uuid::ZERO);
                let name = at.text("playername")?.unwrap_or_default();
                let shape = at.text("avatarshape")?.unwrap_or_default();
                let explorer = at.number("explorer")?.unwrap_or(1);
                player(at.id("playeridx")?, account, name, shape, explorer);
            }
        } else {
            for (id, node) in &player_nodes {
                let text = |text: &Option<TermStr<'_>>| {
                    text.as_ref().map(TermStr::to_text).unwrap_or_default()
                };
                let (name, shape) = (text(&node.istring64_1), text(&node.string64_1));
                let explorer = node.int32_2.unwrap_or(1).into();
                player(**id, node.uuid_1.unwrap_or(Uuid::ZERO), name, shape, explorer);
            }
        }
        for id in player_nodes.keys().filter(|id| !players.contains_key(**id)) {
            left.push(format!("node {id} as a player: no account has it; it stays a node"));
        }
        self.house.left.append(&mut left);
        Ok(players.into_values().collect())
    }

    fn scores(&mut self) -> Result<(Vec<String>, u32)> {
        let mut left = Vec::new();
        let mut lines = Vec::new();
        let (mut seen, mut next) = (BTreeSet::new(), 1);
        for row in self.rows("scores") {
            let at = At { table: "scores", row };
            let id = at.id("idx")?;
            next = next.max(id.saturating_add(1));
            let owner = at.unsigned("owneridx")?.unwrap_or(0);
            let name = at.text("name")?.unwrap_or_default();
            if !seen.insert((owner, name.clone())) {
                left.push(format!("score {id}: {owner} has one of the name {name} already"));
                continue;
            }
            let value = at.number("points")?.unwrap_or(0);
            let value = i32::try_from(value).map_err(|_| at.wrong("wanted points"))?;
            let kind = at.unsigned("type")?.unwrap_or(0);
            let created = at.unsigned("createtime")?.unwrap_or(0);
            let line = json!({"score": {
                "id": id,
                "owner": owner,
                "name": name,
                "kind": kind,
                "value": value,
                "created": created,
            }});
            lines.push(line.to_string());
        }
        self.house.left.append(&mut left);
        Ok((lines, next))
    }
}

impl At<'_> {
    fn wrong(&self, problem: impl Into<String>) -> MovingError {
        let row = match self.row.get("idx") {
            Some(Cell::Number(row)) => *row,
            _ => 0,
        };
        MovingError::Row { table: self.table, row, problem: problem.into() }
    }

    fn cell(&self, column: &str) -> Option<&Cell> {
        self.row.get(column).filter(|cell| **cell != Cell::Null)
    }

    fn misfit(&self, column: &str, wanted: &str) -> MovingError {
        self.wrong(format!("{column}: wanted {wanted}"))
    }

    fn number(&self, column: &str) -> Result<Option<i64>> {
        match self.cell(column) {
            None => Ok(None),
            Some(Cell::Number(number)) => Ok(Some(*number)),
            Some(_) => Err(self.misfit(column, "a number")),
        }
    }

    /// A number without a sign, which PostgreSQL keeps with one.
    fn unsigned(&self, column: &str) -> Result<Option<u32>> {
        let fits = |number: i64| {
            let negative = i32::try_from(number).map(i32::cast_unsigned);
            u32::try_from(number).or(negative).map_err(|_| self.misfit(column, "32 bits"))
        };
        self.number(column)?.map(fits).transpose()
    }

    fn id(&self, column: &str) -> Result<u32> {
        let id = self.unsigned(column)?.filter(|id| *id != 0);
        id.ok_or_else(|| self.misfit(column, "a number above 0"))
    }

    fn signed(&self, column: &str) -> Result<Option<i32>> {
        let fits = |number| i32::try_from(number).map_err(|_| self.misfit(column, "32 bits"));
        self.number(column)?.map(fits).transpose()
    }

    fn text(&self, column: &str) -> Result<Option<String>> {
        match self.cell(column) {
            None => Ok(None),
            Some(Cell::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.misfit(column, "a text")),
        }
    }

    /// As text, or as 16 bytes in the order of the text.
    fn uuid(&self, column: &str) -> Result<Option<Uuid>> {
        let wrong = || self.misfit(column, "a UUID");
        match self.cell(column) {
            None => Ok(None),
            Some(Cell::Text(text)) => {
                let json = Json::String(text.clone());
                Uuid::from_json((&json).into()).map(Some).map_err(|_| wrong())
            }
            Some(Cell::Bytes(bytes)) => {
                let mut id: [u8; 16] = bytes.as_slice().try_into().map_err(|_| wrong())?;
                id[..4].reverse();
                id[4..6].reverse();
                id[6..8].reverse();
                Ok(Some(Uuid(id)))
            }
            Some(Cell::Number(_) | Cell::Null) => Err(wrong()),
        }
    }

    /// As bytes, or as text in base64.
    fn blob(&self, column: &str) -> Result<Option<Blob<'static>>> {
        match self.cell(column) {
            None => Ok(None),
            Some(Cell::Bytes(bytes)) => Ok(Some(Blob::new(bytes.clone()))),
            Some(Cell::Text(text)) => {
                let bytes = STANDARD.decode(text.split_whitespace().collect::<String>());
                bytes.map(|bytes| Some(Blob::new(bytes))).map_err(|_| self.misfit(column, "base64"))
            }
            Some(_) => Err(self.misfit(column, "a blob")),
        }
    }

    /// A node. What is not set is absent, which is not the same as zero.
    fn node(&self) -> Result<VaultNode<'static>> {
        let string =
            |column| Ok::<_, MovingError>(self.text(column)?.map(|text| TermStr::from(&*text)));
        let kind = self.unsigned("nodetype")?.ok_or_else(|| self.misfit("nodetype", "a type"))?;
        Ok(VaultNode {
            node_id: Some(self.id("idx")?),
            create_time: self.unsigned("createtime")?,
            modify_time: self.unsigned("modifytime")?,
            create_age_name: string("createagename")?,
            create_age_uuid: self.uuid("createageuuid")?,
            creator_acct: self.uuid("creatoruuid")?,
            creator_id: self.unsigned("creatoridx")?,
            node_type: Some(NodeType(kind)),
            int32_1: self.signed("int321")?,
            int32_2: self.signed("int322")?,
            int32_3: self.signed("int323")?,
            int32_4: self.signed("int324")?,
            uint32_1: self.unsigned("uint321")?,
            uint32_2: self.unsigned("uint322")?,
            uint32_3: self.unsigned("uint323")?,
            uint32_4: self.unsigned("uint324")?,
            uuid_1: self.uuid("uuid1")?,
            uuid_2: self.uuid("uuid2")?,
            uuid_3: self.uuid("uuid3")?,
            uuid_4: self.uuid("uuid4")?,
            string64_1: string("string641")?,
            string64_2: string("string642")?,
            string64_3: string("string643")?,
            string64_4: string("string644")?,
            string64_5: string("string645")?,
            string64_6: string("string646")?,
            istring64_1: string("istring641")?,
            istring64_2: string("istring642")?,
            text_1: string("text1")?,
            text_2: string("text2")?,
            blob_1: self.blob("blob1")?,
            blob_2: self.blob("blob2")?,
        })
    }
}

fn whole(problem: &str) -> MovingError {
    MovingError::Whole(problem.to_owned())
}

/// SHA-1 of a password, as clients send it: the bytes of each group of four the other way round.
fn reversed(mut digest: [u8; 20]) -> [u8; 20] {
    digest.as_chunks_mut::<4>().0.iter_mut().for_each(|group| group.reverse());
    digest
}
