//! Importing shards from other servers, and exporting to them.
//!
//! | server | import | export |
//! | --- | --- | --- |
//! | dirtsand | the text of `pg_dump --column-inserts`, with or without the schema | statements for psql that replace all rows |
//! | moulars | its SQLite file | a new SQLite file |
//!
//! Both servers have nearly the same tables under different names, so imports and exports share a
//! representation as rows. Nodes, players and scores keep their numbers. Accounts keep their
//! passwords, because all servers store the digests that clients use. Data that cannot be kept is
//! listed, so nothing is lost silently. After an import, all players are offline.

mod export;
mod pg_dump;
mod row;
mod sqlite;
mod states;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use serde_json::json;
use worldwire_uru::crypt::login::is_email_name;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::{TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::vault::{Dump, digest, encode_node, node_json};
use row::At;

/// A shard of another server, ready to be imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// The lines of a [`Dump`]. They contain password digests, which can be used like passwords.
    pub lines: Vec<String>,
    /// Data that could not be kept, for people.
    pub skipped: Vec<String>,
}

/// Why a shard cannot be imported or exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// The dump is not in the format of `pg_dump --column-inserts`.
    #[error("line {line}: {problem}")]
    Dump {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A row that the other server would not write.
    #[error("{table} {row}: {problem}")]
    Row {
        /// The table, in lower case and without `_`.
        table: &'static str,
        /// The row's `idx`.
        row: i64,
        /// What is wrong with it.
        problem: String,
    },
    /// A problem with the whole database.
    #[error("{0}")]
    Whole(String),
}

type Result<T> = std::result::Result<T, MigrationError>;

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

/// Imports a dump of dirtsand's database. States are checked against these descriptors. A state
/// whose descriptor is missing is imported unchecked.
pub fn import_dirtsand(dump: &str, descriptors: &Descriptors) -> Result<Import> {
    let tables = pg_dump::read(dump)?;
    let beta_tester = export::DIRTSAND.beta_tester;
    Importer { tables, beta_tester, descriptors, import: Import::default() }.finish()
}

/// Imports moulars' database file, which its server must not have open. States are checked as in
/// [`import_dirtsand`].
pub async fn import_moulars(file: &Path, descriptors: &Descriptors) -> Result<Import> {
    let tables = sqlite::read(file).await?;
    let beta_tester = export::MOULARS.beta_tester;
    Importer { tables, beta_tester, descriptors, import: Import::default() }.finish()
}

/// A shard exported for dirtsand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirtsandExport {
    /// Statements for psql. They contain password digests, which can be used like passwords.
    pub statements: String,
    /// Data that could not be kept, for people.
    pub skipped: Vec<String>,
}

/// Exports a vault as statements that replace all rows in dirtsand's database. The tables must
/// exist. Accounts without a password in the dump get a random one. Fails with
/// [`MigrationError::Whole`] if the system has no random numbers.
pub fn export_dirtsand(dump: &Dump) -> Result<DirtsandExport> {
    let rows = export::rows(dump, &export::DIRTSAND)?;
    Ok(DirtsandExport { statements: pg_dump::write(&rows), skipped: rows.skipped })
}

/// Exports a vault as a new database file for moulars. Returns a list of data that could not be
/// kept.
///
/// # Errors
/// Those of [`export_dirtsand`] and of the database; also if the file exists.
pub async fn export_moulars(dump: &Dump, file: &Path) -> Result<Vec<String>> {
    let rows = export::rows(dump, &export::MOULARS)?;
    sqlite::write(&rows.tables, file).await?;
    Ok(rows.skipped)
}

/// The name of a table or column in the form that both servers share.
fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}

struct Importer<'d> {
    tables: Tables,
    /// The flag of beta testers.
    beta_tester: u32,
    descriptors: &'d Descriptors,
    import: Import,
}

impl Importer<'_> {
    fn finish(mut self) -> Result<Import> {
        let accounts = self.accounts()?;
        let mut nodes = self.nodes()?;
        let refs = self.refs(&nodes)?;
        let players = self.players(&nodes, &accounts)?;
        let (scores, next_score) = self.scores()?;
        self.states(&mut nodes)?;
        let next_node = nodes.keys().next_back().map_or(1, |last| last.saturating_add(1));
        let end = json!({"end": {
            "accounts": accounts.len(),
            "nodes": nodes.len(),
            "refs": refs.len(),
            "players": players.len(),
            "scores": scores.len(),
        }});
        let head = json!({"vault": 1, "next_node": next_node, "next_score": next_score});
        let lines = &mut self.import.lines;
        lines.push(head.to_string());
        lines.extend(accounts.into_values().flatten());
        for node in nodes.values() {
            let content = encode_node(node);
            let content = content.map_err(|_| whole("a field of a node is too long"))?;
            lines.push(format!("{{\"node\":{}}}", node_json(&content)));
        }
        lines.extend(refs.into_iter().chain(players).chain(scores));
        lines.push(end.to_string());
        let tokens = self.rows("apitokens").len();
        if tokens > 0 {
            self.import.skipped.push(export::counted(tokens, "API token"));
        }
        Ok(self.import)
    }

    fn rows(&self, table: &str) -> &[Row] {
        self.tables.get(table).map(Vec::as_slice).unwrap_or_default()
    }

    /// The lines of each account and its password.
    fn accounts(&mut self) -> Result<BTreeMap<Uuid, Vec<String>>> {
        let mut accounts = BTreeMap::new();
        let mut skipped = Vec::new();
        let mut names = HashSet::new();
        for row in self.rows("accounts") {
            let at = At { table: "accounts", row };
            let name = at.text("login")?.or(at.text("accountname")?);
            let name = name.ok_or_else(|| at.wrong("has no name"))?;
            let id = at.uuid("acctuuid")?.or(at.uuid("accountid")?);
            let id = id.ok_or_else(|| at.wrong("has no UUID"))?;
            if !names.insert(name.to_lowercase()) {
                return Err(at.wrong("another account's name differs only in case; rename one"));
            }
            let flags = at.number("acctflags")?.or(at.number("accountflags")?).unwrap_or(0);
            let flags = u32::try_from(flags).map_err(|_| at.wrong("flags must have 32 bits"))?;
            let known = 1 | self.beta_tester | 0x1_0000;
            if flags & !known != 0 {
                skipped.push(format!("account {name}: flags {:#x}", flags & !known));
            }
            let tester = if flags & self.beta_tester == 0 { 0 } else { 4 };
            let flags = flags & 0x1_0001 | tester;
            let account = json!({"id": id.to_string(), "name": name, "flags": flags, "created": 0});
            let mut lines = vec![json!({ "account": account }).to_string()];
            match at.text("passhash")?.and_then(|hex| digest(hex.trim())) {
                Some(digest) => {
                    if is_email_name(&name) && name.chars().any(|c| c.is_ascii_uppercase()) {
                        skipped.push(format!(
                            "account {name}: logins by H'uru clients: the password's digest was \
                             computed from a name with capital letters"
                        ));
                    }
                    let digest = if is_email_name(&name) { digest } else { reversed(digest) };
                    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                    let password = json!({"account": id.to_string(), "digest": digest});
                    lines.push(json!({ "password": password }).to_string());
                }
                None => {
                    skipped.push(format!("account {name}: the password: its digest is damaged"))
                }
            }
            if accounts.insert(id, lines).is_some() {
                return Err(at.wrong("another account has the same UUID"));
            }
        }
        self.import.skipped.append(&mut skipped);
        Ok(accounts)
    }

    fn nodes(&self) -> Result<BTreeMap<u32, VaultNode<'static>>> {
        let mut nodes = BTreeMap::new();
        for row in self.rows("nodes") {
            let node = At { table: "nodes", row }.node()?;
            nodes.insert(node.node_id.unwrap_or(0), node);
        }
        if nodes.is_empty() {
            return Err(whole("has no table of nodes"));
        }
        Ok(nodes)
    }

    fn refs(&mut self, nodes: &BTreeMap<u32, VaultNode<'static>>) -> Result<Vec<String>> {
        let mut skipped = Vec::new();
        let mut refs = BTreeMap::new();
        for row in self.rows("noderefs") {
            let at = At { table: "noderefs", row };
            let (parent, child) = (at.id("parentidx")?, at.id("childidx")?);
            let owner = at.unsigned("owneridx")?.unwrap_or(0);
            if !nodes.contains_key(&parent) || !nodes.contains_key(&child) {
                skipped.push(format!("the reference from {parent} to {child}: a node is missing"));
            } else if let Entry::Vacant(place) = refs.entry((parent, child)) {
                let line = json!({"ref": {"parent": parent, "child": child, "owner": owner}});
                place.insert(line.to_string());
            } else {
                skipped.push(format!("the reference from {parent} to {child}: a duplicate"));
            }
        }
        self.import.skipped.append(&mut skipped);
        Ok(refs.into_values().collect())
    }

    /// Players are in their own table in dirtsand, and only nodes in moulars.
    fn players(
        &mut self,
        nodes: &BTreeMap<u32, VaultNode<'static>>,
        accounts: &BTreeMap<Uuid, Vec<String>>,
    ) -> Result<Vec<String>> {
        let mut skipped = Vec::new();
        let mut players = BTreeMap::new();
        let player_nodes: BTreeMap<_, _> =
            nodes.iter().filter(|(_, node)| node.node_type == Some(NodeType::Player)).collect();
        let mut player = |id: u32, account: Uuid, name: String, shape: String, explorer: i64| {
            if !accounts.contains_key(&account) {
                skipped.push(format!("player {id} ({name}): its account is missing"));
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
                skipped.push(format!("player {id} ({name}): it has no node"));
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
            skipped.push(format!("player {id}: no account owns it; only its node is kept"));
        }
        self.import.skipped.append(&mut skipped);
        Ok(players.into_values().collect())
    }

    fn scores(&mut self) -> Result<(Vec<String>, u32)> {
        let mut skipped = Vec::new();
        let mut lines = Vec::new();
        let (mut seen, mut next) = (BTreeSet::new(), 1);
        for row in self.rows("scores") {
            let at = At { table: "scores", row };
            let id = at.id("idx")?;
            next = next.max(id.saturating_add(1));
            let owner = at.unsigned("owneridx")?.unwrap_or(0);
            let name = at.text("name")?.unwrap_or_default();
            if !seen.insert((owner, name.clone())) {
                skipped.push(format!("score {id}: {owner} has another score named {name}"));
                continue;
            }
            let value = at.number("points")?.unwrap_or(0);
            let value = i32::try_from(value).map_err(|_| at.wrong("points must have 32 bits"))?;
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
        self.import.skipped.append(&mut skipped);
        Ok((lines, next))
    }
}

fn whole(problem: &str) -> MigrationError {
    MigrationError::Whole(problem.to_owned())
}

/// Converts the SHA-1 of a password between databases and clients, which reverse each group of four
/// bytes.
fn reversed(mut digest: [u8; 20]) -> [u8; 20] {
    digest.as_chunks_mut::<4>().0.iter_mut().for_each(|group| group.reverse());
    digest
}

/// Converts a UUID between the byte orders of its text and of the wire, where the first three
/// groups are little-endian.
fn text_order(mut id: [u8; 16]) -> [u8; 16] {
    id[..4].reverse();
    id[4..6].reverse();
    id[6..8].reverse();
    id
}
