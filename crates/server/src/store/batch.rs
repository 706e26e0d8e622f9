//! A batch as arrays of columns. The function `ww_commit` in PostgreSQL commits it in one round
//! trip.
//!
//! With individual statements, a commit would take a round trip for each row, and a process that is
//! suspended between two statements would keep the database locked.

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;

use super::{Change, Changes, Position};

/// The error code for a batch that does not directly follow the database's position.
pub(super) const NOT_NEXT: &str = "WW001";

/// The largest batch that is sent at once. PostgreSQL's limit is 1 GB.
const MAX_ROWS: usize = 4_096;
const MAX_BYTES: usize = 64 << 20;

/// The statement that commits a batch. It also logs which rows the batch changes, for standbys, and
/// deletes the log of all but the last 10,000 batches.
macro_rules! commit {
    ($also:literal) => {
        concat!(
            "WITH logged AS (INSERT INTO batch_log (batch, settings, accounts, characters, nodes, \
            parents, children, scores) VALUES ($2 + 1, $9, $3 || $11, $4 || $17, $5 || $22, \
            $6 || $25, $7 || $26, $8 || $28) ON CONFLICT (batch) DO NOTHING), \
            forgotten AS (DELETE FROM batch_log WHERE batch <= $2 + 1 - 10000)",
            $also,
            " SELECT ww_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, \
            $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, \
            $33)"
        )
    };
}

const COMMIT: &str = commit!("");
/// The statement for a batch with sessions or placements.
const COMMIT_MORE: &str = commit!(
    ", gone AS (DELETE FROM sessions WHERE connection = ANY ($34)), \
    kept AS (INSERT INTO sessions (connection, epoch, data) \
    SELECT connection, $1, data FROM unnest($35::bigint[], $36::bytea[]) AS new (connection, data) \
    ON CONFLICT (connection) DO UPDATE SET epoch = excluded.epoch, data = excluded.data), \
    over AS (DELETE FROM placements WHERE number = ANY ($37)), \
    placed AS (INSERT INTO placements (number, data) \
    SELECT number, data FROM unnest($38::bigint[], $39::bytea[]) AS new (number, data) \
    ON CONFLICT (number) DO UPDATE SET data = excluded.data)"
);

/// The columns of all rows in a batch.
#[derive(Default)]
pub(super) struct Columns<'c> {
    gone: GoneColumns<'c>,
    settings: (Vec<&'c str>, Vec<&'c [u8]>),
    accounts: AccountColumns<'c>,
    characters: CharacterColumns<'c>,
    nodes: (Vec<i64>, Vec<i64>, Vec<&'c [u8]>),
    refs: [Vec<i64>; 3],
    scores: ScoreColumns<'c>,
    sessions: SessionColumns<'c>,
    placements: PlacementColumns<'c>,
}

#[derive(Default)]
struct GoneColumns<'c> {
    accounts: Vec<&'c [u8]>,
    characters: Vec<i64>,
    nodes: Vec<i64>,
    /// The numbers of parents and children.
    refs: [Vec<i64>; 2],
    scores: Vec<i64>,
}

impl<'c> GoneColumns<'c> {
    /// Adds the row for a change that deletes a row.
    fn add(&mut self, change: &'c Change) {
        match change {
            Change::DeleteAccount(id) => self.accounts.push(id),
            Change::DeleteCharacter(id) => self.characters.push((*id).into()),
            Change::DeleteNode(id) => self.nodes.push((*id).into()),
            Change::DeleteRef { parent, child } => {
                let [parents, children] = &mut self.refs;
                parents.push((*parent).into());
                children.push((*child).into());
            }
            Change::DeleteScore(id) => self.scores.push((*id).into()),
            _ => {}
        }
    }
}

#[derive(Default)]
struct AccountColumns<'c> {
    ids: Vec<&'c [u8]>,
    names: Vec<&'c str>,
    folded: Vec<&'c str>,
    flags: Vec<i64>,
    created: Vec<i64>,
    secrets: Vec<&'c [u8]>,
}

#[derive(Default)]
struct CharacterColumns<'c> {
    ids: Vec<i64>,
    accounts: Vec<&'c [u8]>,
    names: Vec<&'c str>,
    created: Vec<i64>,
    data: Vec<&'c [u8]>,
}

#[derive(Default)]
struct ScoreColumns<'c> {
    ids: Vec<i64>,
    owners: Vec<i64>,
    names: Vec<&'c str>,
    kinds: Vec<i64>,
    values: Vec<i64>,
    created: Vec<i64>,
}

#[derive(Default)]
struct SessionColumns<'c> {
    gone: Vec<i64>,
    connections: Vec<i64>,
    data: Vec<&'c [u8]>,
}

#[derive(Default)]
struct PlacementColumns<'c> {
    gone: Vec<i64>,
    numbers: Vec<i64>,
    data: Vec<&'c [u8]>,
}

impl<'c> Columns<'c> {
    /// The columns of a batch; `None` if it is too large to be sent at once.
    pub(super) fn of(changes: &'c Changes) -> Option<Self> {
        if changes.len() > MAX_ROWS {
            return None;
        }
        let mut columns = Self::default();
        let mut bytes: usize = 0;
        for change in changes.values() {
            bytes = bytes.saturating_add(columns.add(change));
        }
        (bytes <= MAX_BYTES).then_some(columns)
    }

    /// Adds a row and returns the size of its data in bytes.
    fn add(&mut self, change: &'c Change) -> usize {
        match change {
            Change::PutSetting(row) => {
                self.settings.0.push(&row.name);
                self.settings.1.push(&row.value);
                row.value.len()
            }
            Change::PutAccount(row) => {
                let accounts = &mut self.accounts;
                accounts.ids.push(&row.id);
                accounts.names.push(&row.name);
                accounts.folded.push(&row.folded);
                accounts.flags.push(row.flags.into());
                accounts.created.push(row.created.into());
                accounts.secrets.push(&row.secret);
                row.name.len() + row.folded.len() + row.secret.len()
            }
            Change::PutCharacter(row) => {
                let characters = &mut self.characters;
                characters.ids.push(row.id.into());
                characters.accounts.push(&row.account);
                characters.names.push(&row.name);
                characters.created.push(row.created.into());
                characters.data.push(&row.data);
                row.name.len() + row.data.len()
            }
            Change::PutNode(row) => {
                self.nodes.0.push(row.id.into());
                self.nodes.1.push(row.kind.into());
                self.nodes.2.push(&row.data);
                row.data.len()
            }
            Change::PutRef(row) => {
                let [parents, children, owners] = &mut self.refs;
                parents.push(row.parent.into());
                children.push(row.child.into());
                owners.push(row.owner.into());
                0
            }
            Change::PutScore(row) => {
                let scores = &mut self.scores;
                scores.ids.push(row.id.into());
                scores.owners.push(row.owner.into());
                scores.names.push(&row.name);
                scores.kinds.push(row.kind.into());
                scores.values.push(row.value.into());
                scores.created.push(row.created.into());
                row.name.len()
            }
            Change::PutSession(row) => {
                self.sessions.connections.push(row.connection.cast_signed());
                self.sessions.data.push(&row.data);
                row.data.len()
            }
            Change::DeleteSession(connection) => {
                self.sessions.gone.push(connection.cast_signed());
                0
            }
            Change::PutPlacement(row) => {
                self.placements.numbers.push(row.number.into());
                self.placements.data.push(&row.data);
                row.data.len()
            }
            Change::DeletePlacement(number) => {
                self.placements.gone.push((*number).into());
                0
            }
            deleted => {
                self.gone.add(deleted);
                0
            }
        }
    }

    /// The statement that commits the batch that follows `after`.
    pub(super) fn commit(self, after: Position) -> Query<'c, Postgres, PgArguments> {
        let Self {
            gone,
            settings,
            accounts,
            characters,
            nodes,
            refs,
            scores,
            sessions,
            placements,
        } = self;
        let [gone_parents, gone_children] = gone.refs;
        let [parents, children, owners] = refs;
        let has_more = !sessions.gone.is_empty()
            || !sessions.data.is_empty()
            || !placements.gone.is_empty()
            || !placements.data.is_empty();
        let query = sqlx::query(if has_more { COMMIT_MORE } else { COMMIT });
        let query = query
            .bind(after.epoch.cast_signed())
            .bind(after.batch.cast_signed())
            .bind(gone.accounts)
            .bind(gone.characters)
            .bind(gone.nodes)
            .bind(gone_parents)
            .bind(gone_children)
            .bind(gone.scores)
            .bind(settings.0)
            .bind(settings.1)
            .bind(accounts.ids)
            .bind(accounts.names)
            .bind(accounts.folded)
            .bind(accounts.flags)
            .bind(accounts.created)
            .bind(accounts.secrets)
            .bind(characters.ids)
            .bind(characters.accounts)
            .bind(characters.names)
            .bind(characters.created)
            .bind(characters.data)
            .bind(nodes.0)
            .bind(nodes.1)
            .bind(nodes.2)
            .bind(parents)
            .bind(children)
            .bind(owners)
            .bind(scores.ids)
            .bind(scores.owners)
            .bind(scores.names)
            .bind(scores.kinds)
            .bind(scores.values)
            .bind(scores.created);
        match has_more {
            true => query
                .bind(sessions.gone)
                .bind(sessions.connections)
                .bind(sessions.data)
                .bind(placements.gone)
                .bind(placements.numbers)
                .bind(placements.data),
            false => query,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NodeRow;

    fn nodes(count: usize, bytes: usize) -> Changes {
        let data: std::sync::Arc<[u8]> = vec![7; bytes].into();
        let ids = 1..=u32::try_from(count).unwrap();
        let node = |id| Change::PutNode(NodeRow { id, kind: 22, data: data.clone() });
        ids.map(node).map(|change| (change.key(), change)).collect()
    }

    #[test]
    fn large_batches_are_not_sent_at_once() {
        for (count, bytes, fits) in [
            (0, 0, true),
            (MAX_ROWS, 5, true),
            (MAX_ROWS + 1, 5, false),
            (64, 1 << 20, true),
            (65, 1 << 20, false),
        ] {
            assert_eq!(Columns::of(&nodes(count, bytes)).is_some(), fits, "{count} x {bytes}");
        }
    }
}
