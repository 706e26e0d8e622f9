//! The rows of SQL databases, which store all numbers as signed 64-bit integers.

use super::{
    AccountRow, CharacterRow, NodeRow, PlacementRow, Position, RefRow, ScoreRow, SettingRow,
    StoreError,
};

pub(super) fn position(epoch: i64, batch: i64) -> Position {
    Position { epoch: epoch.cast_unsigned(), batch: batch.cast_unsigned() }
}

pub(super) fn no_position() -> StoreError {
    let problem = "the table \"shard\" has lost its only row; restore a backup of the database";
    StoreError::Damaged(problem.to_owned())
}

pub(super) fn setting((name, value): (String, Vec<u8>)) -> Result<SettingRow, StoreError> {
    Ok(SettingRow { name, value })
}

type StoredAccount = (Vec<u8>, String, String, i64, i64, Vec<u8>);

pub(super) fn account(
    (id, name, folded, flags, created, secret): StoredAccount,
) -> Result<AccountRow, StoreError> {
    Ok(AccountRow {
        id: identifier(id)?,
        name,
        folded,
        flags: narrow(flags, "flags")?,
        created: narrow(created, "a time")?,
        secret,
    })
}

type StoredCharacter = (i64, Vec<u8>, String, i64, Vec<u8>);

pub(super) fn character(stored: StoredCharacter) -> Result<CharacterRow, StoreError> {
    let (id, account, name, created, data) = stored;
    Ok(CharacterRow {
        id: narrow(id, "a character's number")?,
        account: identifier(account)?,
        name,
        created: narrow(created, "a time")?,
        data,
    })
}

pub(super) fn node((id, kind, data): (i64, i64, Vec<u8>)) -> Result<NodeRow, StoreError> {
    let (id, kind) = (narrow(id, "a node's number")?, narrow(kind, "a node's type")?);
    Ok(NodeRow { id, kind, data: data.into() })
}

pub(super) fn reference((parent, child, owner): (i64, i64, i64)) -> Result<RefRow, StoreError> {
    Ok(RefRow {
        parent: narrow(parent, "a node's number")?,
        child: narrow(child, "a node's number")?,
        owner: narrow(owner, "an owner's number")?,
    })
}

type StoredScore = (i64, i64, String, i64, i64, i64);

pub(super) fn score(
    (id, owner, name, kind, value, created): StoredScore,
) -> Result<ScoreRow, StoreError> {
    Ok(ScoreRow {
        id: narrow(id, "a score's number")?,
        owner: narrow(owner, "an owner's number")?,
        name,
        kind: narrow(kind, "a score's type")?,
        value: narrow(value, "points")?,
        created: narrow(created, "a time")?,
    })
}

pub(super) fn placement((number, data): (i64, Vec<u8>)) -> Result<PlacementRow, StoreError> {
    Ok(PlacementRow { number: narrow(number, "an age's number")?, data })
}

pub(super) fn narrow<W: Copy + std::fmt::Display, N: TryFrom<W>>(
    wide: W,
    what: &str,
) -> Result<N, StoreError> {
    N::try_from(wide)
        .map_err(|_| StoreError::Damaged(format!("{what} does not fit in 32 bits: {wide}")))
}

pub(super) fn identifier(bytes: Vec<u8>) -> Result<[u8; 16], StoreError> {
    bytes.try_into().map_err(|bytes: Vec<u8>| {
        let found = bytes.len();
        StoreError::Damaged(format!("an account ID must have 16 bytes, not {found}"))
    })
}
