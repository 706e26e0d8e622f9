//! The rows of moulars' SQLite file.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{Column as _, ConnectOptions as _, Connection as _, Row as _, TypeInfo as _};
use sqlx::{ValueRef as _, query};

use super::{Cell, MovingError, Result, Row, Tables, plain, whole};

/// The tables, and how to read each.
const TABLES: [(&str, &str); 8] = [
    ("meta", "SELECT * FROM meta"),
    ("accounts", "SELECT * FROM accounts"),
    ("nodes", "SELECT * FROM nodes"),
    ("noderefs", "SELECT * FROM node_refs"),
    ("scores", "SELECT * FROM scores"),
    ("globalstates", "SELECT * FROM global_states"),
    ("agestates", "SELECT * FROM age_states"),
    ("apitokens", "SELECT * FROM api_tokens"),
];
/// The version of the tables that is known.
const VERSION: &str = "1";

/// Reads all tables.
///
/// # Errors
/// Those of the database; another version.
pub(super) async fn read(file: &Path) -> Result<Tables> {
    let failed = |error: sqlx::Error| MovingError::Whole(error.to_string());
    let options = SqliteConnectOptions::new().filename(file).read_only(true).immutable(true);
    let mut connection = options.connect().await.map_err(failed)?;
    let mut tables = Tables::new();
    for (table, select) in TABLES {
        let rows = query(select).fetch_all(&mut connection).await.map_err(failed)?;
        let rows: std::result::Result<Vec<_>, _> = rows.iter().map(row).collect();
        tables.insert(table.to_owned(), rows.map_err(failed)?);
    }
    connection.close().await.map_err(failed)?;
    let version = Cell::Text("schema_version".to_owned());
    let is_version = |row: &&Row| row.get("name") == Some(&version);
    let found = tables["meta"].iter().find(is_version).and_then(|row| row.get("value"));
    match found {
        Some(Cell::Text(found)) if found == VERSION => Ok(tables),
        Some(Cell::Text(found)) => {
            Err(MovingError::Whole(format!("schema_version: wanted {VERSION}, found {found}")))
        }
        _ => Err(whole("schema_version: wanted 1, found none")),
    }
}

fn row(row: &SqliteRow) -> sqlx::Result<Row> {
    let cell = |at: usize| -> sqlx::Result<Cell> {
        let value = row.try_get_raw(at)?;
        if value.is_null() {
            return Ok(Cell::Null);
        }
        Ok(match value.type_info().name() {
            "INTEGER" => Cell::Number(row.try_get_unchecked(at)?),
            "TEXT" => Cell::Text(row.try_get_unchecked(at)?),
            _ => Cell::Bytes(row.try_get_unchecked(at)?),
        })
    };
    let columns = row.columns().iter();
    columns.map(|column| Ok((plain(column.name()), cell(column.ordinal())?))).collect()
}
