//! The rows of moulars' SQLite file.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Row as _};
use sqlx::{TypeInfo as _, ValueRef as _, query, raw_sql};

use super::export::{Filled, Value};
use super::{Cell, MigrationError, Result, Row, Tables, plain, text_order, whole};

/// The tables, and the statements for reading them.
const TABLES: [(&str, &str); 9] = [
    ("meta", "SELECT * FROM meta"),
    ("accounts", "SELECT * FROM accounts"),
    ("nodes", "SELECT * FROM nodes"),
    ("noderefs", "SELECT * FROM node_refs"),
    ("scores", "SELECT * FROM scores"),
    ("servers", "SELECT * FROM servers"),
    ("globalstates", "SELECT * FROM global_states"),
    ("agestates", "SELECT * FROM age_states"),
    ("apitokens", "SELECT * FROM api_tokens"),
];
/// The supported version of the schema.
const VERSION: &str = "1";

/// Reads all tables. Fails for another version of the schema.
pub(super) async fn read(file: &Path) -> Result<Tables> {
    let failed = |error: sqlx::Error| MigrationError::Whole(error.to_string());
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
            let problem = format!("unsupported schema_version {found}; must be {VERSION}");
            Err(MigrationError::Whole(problem))
        }
        _ => Err(whole("has no schema_version")),
    }
}

/// Writes a new database file with these rows. Fails if the file exists.
pub(super) async fn write(tables: &[Filled], file: &Path) -> Result<()> {
    let failed = |error: sqlx::Error| MigrationError::Whole(error.to_string());
    if file.exists() {
        return Err(whole("file exists"));
    }
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
    let mut connection = options.connect().await.map_err(failed)?;
    let mut transaction = connection.begin().await.map_err(failed)?;
    let made = raw_sql(include_str!("moulars.sql")).execute(&mut *transaction).await;
    made.map_err(failed)?;
    for Filled { table, rows, next } in tables {
        let names: Vec<_> = table.moulars_columns().collect();
        let places: Vec<_> = (1..=names.len()).map(|number| format!("?{number}")).collect();
        let (name, names, places) = (table.moulars_name(), names.join(", "), places.join(", "));
        // The statement is built from constants only.
        let insert = format!("INSERT INTO {name} ({names}) VALUES ({places})");
        for row in rows {
            let insert = query(AssertSqlSafe(insert.clone()));
            let insert = row.iter().fold(insert, |insert, value| match value {
                Value::Null => insert.bind(None::<i64>),
                Value::Signed(number) => insert.bind(*number),
                Value::Unsigned(number) => insert.bind(i64::from(*number)),
                Value::Flag(flag) => insert.bind(i64::from(*flag)),
                Value::Text(text) => insert.bind(text.clone()),
                Value::Uuid(uuid) => insert.bind(text_order(uuid.0).to_vec()),
                Value::Blob(bytes) => insert.bind(bytes.clone()),
            });
            insert.execute(&mut *transaction).await.map_err(failed)?;
        }
        let sequence = query("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)");
        let forget = query("DELETE FROM sqlite_sequence WHERE name = ?1").bind(name.clone());
        forget.execute(&mut *transaction).await.map_err(failed)?;
        let sequence = sequence.bind(name).bind(i64::from(*next) - 1);
        sequence.execute(&mut *transaction).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)?;
    connection.close().await.map_err(failed)
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
