//! Imports shards from other servers and exports them to these servers.
//!
//! | server | import | export |
//! | --- | --- | --- |
//! | dirtsand | the text of `pg_dump --column-inserts`, with or without the schema | statements for psql that replace all rows |
//! | moulars | its SQLite file | a new SQLite file |
//!
//! Both servers have nearly the same tables under different names, so imports and exports share a
//! representation as rows. Nodes, players and scores keep their numbers. Accounts keep their
//! passwords, because all of these servers store the digests that clients use. Data that cannot be
//! kept is listed, so nothing is lost silently. After an import, all players are offline.

mod ages;
mod export;
mod pg_dump;
mod row;
mod sqlite;
mod states;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::Serialize;
use worldwire_uru::crypt::login::is_email_name;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::types::{TermStr, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use super::vault::{AccountLine, Dump, NAME_RULE, Password, PlayerLine};
use super::vault::{digest, encode_node, is_player_name};
use crate::store::ScoreRow;
use row::At;

pub use ages::OwnAges;

/// A shard of another server, ready to be imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Import {
    /// The lines of a [`Dump`]. They contain password digests, which can be used like passwords.
    pub lines: Vec<String>,
    /// Data that could not be kept, for display.
    pub skipped: Vec<String>,
    /// The numbers of items that the lines contain.
    pub counts: Counts,
    /// The ages that the other server created automatically.
    pub ages: OwnAges,
}

/// The numbers of items in an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Accounts.
    pub accounts: usize,
    /// Players.
    pub players: usize,
    /// Vault nodes, without states and settings.
    pub nodes: usize,
    /// References between nodes.
    pub refs: usize,
    /// Scores.
    pub scores: usize,
    /// Objects' states.
    pub object_states: usize,
    /// Settings for all instances of an age.
    pub settings: usize,
    /// States that were decoded with their descriptors, including those of ages and settings.
    pub checked: usize,
    /// States whose descriptor is missing, by the descriptor's name and version. Only their headers
    /// were checked.
    pub unchecked: BTreeMap<String, usize>,
}

/// Why a shard cannot be imported or exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// The dump is not in the format of `pg_dump --column-inserts`.
    #[error("line {line}: {problem}")]
    Dump {
        /// The line number, from 1.
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
    /// A problem that concerns the whole database.
    #[error("{0}")]
    Whole(String),
}

type Result<T> = std::result::Result<T, MigrationError>;

/// A value in a database.
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
    Importer::import(&pg_dump::read(dump)?, export::DIRTSAND.beta_tester, descriptors)
}

/// Imports moulars' database file, which its server must not have open. States are checked as in
/// [`import_dirtsand`].
pub async fn import_moulars(file: &Path, descriptors: &Descriptors) -> Result<Import> {
    Importer::import(&sqlite::read(file).await?, export::MOULARS.beta_tester, descriptors)
}

/// A shard exported for dirtsand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirtsandExport {
    /// Statements for psql. They contain password digests, which can be used like passwords.
    pub statements: String,
    /// Descriptions of the data that could not be kept.
    pub skipped: Vec<String>,
}

/// Exports a vault as statements that replace all rows in dirtsand's database. The tables must
/// exist. Accounts without a password in the dump get a random one. Fails with
/// [`MigrationError::Whole`] if the system cannot supply random numbers.
pub fn export_dirtsand(dump: &Dump) -> Result<DirtsandExport> {
    let rows = export::rows(dump, &export::DIRTSAND)?;
    Ok(DirtsandExport { statements: pg_dump::write(&rows), skipped: rows.skipped })
}

/// Exports a vault as a new database file for moulars. Returns a list of data that could not be
/// kept.
///
/// # Errors
/// Those of [`export_dirtsand`] and those of the database, including one if the file exists.
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
    tables: &'d Tables,
    /// The flag of beta testers.
    beta_tester: u32,
    descriptors: &'d Descriptors,
    nodes: BTreeMap<u32, VaultNode<'static>>,
    dump: Dump,
    skipped: Vec<String>,
    counts: Counts,
}

impl<'d> Importer<'d> {
    fn import(
        tables: &'d Tables,
        beta_tester: u32,
        descriptors: &'d Descriptors,
    ) -> Result<Import> {
        let (nodes, skipped) = (BTreeMap::new(), Vec::new());
        let (dump, counts) = (Dump::default(), Counts::default());
        let mut importer = Self { tables, beta_tester, descriptors, nodes, dump, skipped, counts };
        importer.accounts()?;
        importer.nodes()?;
        importer.refs()?;
        importer.players()?;
        importer.scores()?;
        importer.counts.nodes = importer.nodes.len();
        importer.states()?;
        let ages = importer.own_ages();
        let tokens = importer.rows("apitokens").len();
        if tokens > 0 {
            importer.skipped.push(export::counted(tokens, "API token"));
        }
        let Self { nodes, mut dump, skipped, mut counts, .. } = importer;
        for (id, node) in nodes {
            let content = encode_node(&node);
            let content = content.map_err(|_| whole("a field of a node is too long"))?;
            dump.nodes.insert(id, content);
        }
        counts.accounts = dump.accounts.len();
        counts.players = dump.players.len();
        counts.refs = dump.refs.len();
        counts.scores = dump.scores.len();
        Ok(Import { lines: dump.finish().lines().collect(), skipped, counts, ages })
    }

    fn rows(&self, table: &str) -> &'d [Row] {
        self.tables.get(table).map(Vec::as_slice).unwrap_or_default()
    }

    fn accounts(&mut self) -> Result<()> {
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
            let flags =
                u32::try_from(flags).map_err(|_| at.wrong("the flags do not fit in 32 bits"))?;
            let known = 1 | self.beta_tester | 0x1_0000;
            if flags & !known != 0 {
                self.skipped.push(format!("account {name}: flags {:#x}", flags & !known));
            }
            let tester = if flags & self.beta_tester == 0 { 0 } else { 4 };
            let flags = flags & 0x1_0001 | tester;
            match at.text("passhash")?.and_then(|hex| digest(hex.trim())) {
                Some(digest) => {
                    if is_email_name(&name) && name.chars().any(|c| c.is_ascii_uppercase()) {
                        self.skipped.push(format!(
                            "account {name}: logins by H'uru clients: the password's digest was \
                             computed from a name with capital letters"
                        ));
                    }
                    let digest = if is_email_name(&name) { digest } else { reversed(digest) };
                    self.dump.passwords.insert(id, Password(digest));
                }
                None => self
                    .skipped
                    .push(format!("account {name}: the password: its digest is damaged")),
            }
            let account = AccountLine { id: id.to_string(), name, flags, created: 0 };
            if self.dump.accounts.insert(id, account).is_some() {
                return Err(at.wrong("another account has the same UUID"));
            }
        }
        Ok(())
    }

    fn nodes(&mut self) -> Result<()> {
        for row in self.rows("nodes") {
            let node = At { table: "nodes", row }.node()?;
            self.nodes.insert(node.node_id.unwrap_or(0), node);
        }
        if self.nodes.is_empty() { Err(whole("has no table of nodes")) } else { Ok(()) }
    }

    fn refs(&mut self) -> Result<()> {
        for row in self.rows("noderefs") {
            let at = At { table: "noderefs", row };
            let (parent, child) = (at.id("parentidx")?, at.id("childidx")?);
            let owner = at.unsigned("owneridx")?.unwrap_or(0);
            let known = [parent, child].iter().all(|id| self.nodes.contains_key(id));
            let problem = match self.dump.refs.entry((parent, child)) {
                _ if !known => "a node is missing",
                Entry::Occupied(_) => "a duplicate",
                Entry::Vacant(place) => {
                    place.insert(owner);
                    continue;
                }
            };
            self.skipped.push(format!("the reference from {parent} to {child}: {problem}"));
        }
        Ok(())
    }

    /// In dirtsand, players have their own table; in moulars, they are only nodes.
    fn players(&mut self) -> Result<()> {
        if self.tables.contains_key("players") {
            for row in self.rows("players") {
                let at = At { table: "players", row };
                let account = at.uuid("acctuuid")?.unwrap_or(Uuid::ZERO);
                let name = at.text("playername")?.unwrap_or_default();
                let shape = at.text("avatarshape")?.unwrap_or_default();
                let explorer = at.number("explorer")?.unwrap_or(1);
                self.player(at.id("playeridx")?, account, name, shape, explorer);
            }
        } else {
            let is_player = |node: &VaultNode<'_>| node.node_type == Some(NodeType::Player);
            let nodes = self.nodes.iter().filter(|(_, node)| is_player(node));
            let player = |(id, node): (&u32, &VaultNode<'_>)| {
                let [name, shape] = [&node.istring64_1, &node.string64_1]
                    .map(|text| text.as_ref().map(TermStr::to_text).unwrap_or_default());
                let account = node.uuid_1.unwrap_or(Uuid::ZERO);
                (*id, account, name, shape, node.int32_2.unwrap_or(1).into())
            };
            for (id, account, name, shape, explorer) in nodes.map(player).collect::<Vec<_>>() {
                self.player(id, account, name, shape, explorer);
            }
        }
        for (id, node) in &self.nodes {
            if node.node_type == Some(NodeType::Player) && !self.dump.players.contains_key(id) {
                let text = format!("player {id}: no account owns it; only its node is kept");
                self.skipped.push(text);
            }
        }
        Ok(())
    }

    fn player(&mut self, id: u32, account: Uuid, name: String, shape: String, explorer: i64) {
        let node = self.nodes.get(&id).filter(|node| node.node_type == Some(NodeType::Player));
        let problem = match node {
            _ if !self.dump.accounts.contains_key(&account) => "its account is missing",
            None => "it has no node",
            Some(node) => {
                let created = node.create_time.unwrap_or(0);
                let (account, explorer) = (account.to_string(), u32::from(explorer != 0));
                if !is_player_name(&name) {
                    // The player is kept: an operator can rename it.
                    self.skipped.push(format!(
                        "player {id}: chat under the name {name:?}; a name {NAME_RULE}; rename it \
                         with `worldwire uru player rename {id} NAME`"
                    ));
                }
                let line = PlayerLine { id, account, name, shape, explorer, created };
                self.dump.players.insert(id, line);
                return;
            }
        };
        self.skipped.push(format!("player {id} ({name}): {problem}"));
    }

    fn scores(&mut self) -> Result<()> {
        let mut seen = HashSet::new();
        for row in self.rows("scores") {
            let at = At { table: "scores", row };
            let id = at.id("idx")?;
            let owner = at.unsigned("owneridx")?.unwrap_or(0);
            let name = at.text("name")?.unwrap_or_default();
            if !seen.insert((owner, name.clone())) {
                let text = format!("score {id}: {owner} has another score named {name}");
                self.skipped.push(text);
                continue;
            }
            let value = at.number("points")?.unwrap_or(0);
            let value =
                i32::try_from(value).map_err(|_| at.wrong("the points do not fit in 32 bits"))?;
            let kind = at.unsigned("type")?.unwrap_or(0);
            let created = at.unsigned("createtime")?.unwrap_or(0);
            let score = ScoreRow { id, owner, name, kind, value, created };
            self.dump.scores.insert(id, score);
        }
        Ok(())
    }
}

fn whole(problem: &str) -> MigrationError {
    MigrationError::Whole(problem.to_owned())
}

/// Converts the SHA-1 of a password between the form in databases and the form that clients use, in
/// which each group of four bytes is reversed.
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
