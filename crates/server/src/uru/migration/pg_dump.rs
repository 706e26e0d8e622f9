//! Reads and writes the format of `pg_dump --column-inserts`.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::export::{Rows, Value};
use super::{Cell, MigrationError, Result, Row, Tables, plain};

/// Reads all `INSERT` statements and skips all others. Fails at the first invalid line.
pub(super) fn read(text: &str) -> Result<Tables> {
    let mut tables = Tables::new();
    let mut reader = Text { text, at: 0 };
    loop {
        reader.skip_blank();
        if reader.rest().is_empty() {
            return Ok(tables);
        }
        if reader.takes("INSERT INTO ") {
            let (table, row) = reader.insert()?;
            tables.entry(table).or_default().push(row);
        } else if reader.rest().starts_with("COPY ") {
            return Err(
                reader.wrong("COPY is not supported; create the dump with --column-inserts")
            );
        } else {
            reader.skip_statement();
        }
    }
}

/// Statements that replace all rows in dirtsand's database in one transaction.
pub(super) fn write(rows: &Rows) -> String {
    let mut out = String::from(HEAD);
    let names: Vec<_> = rows.tables.iter().map(|filled| filled.table.name).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "TRUNCATE {};", names.join(", "));
    for filled in &rows.tables {
        let quoted = |name: &str| match name {
            "idx" => name.to_owned(),
            name => format!("\"{name}\""),
        };
        let columns = filled.table.columns().map(quoted);
        let columns = columns.collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "\n-- {}", filled.table.name);
        for row in &filled.rows {
            let values: Vec<_> = row.iter().map(literal).collect();
            let (table, values) = (filled.table.name, values.join(", "));
            let _ = writeln!(out, "INSERT INTO {table} ({columns}) VALUES ({values});");
        }
    }
    out.push('\n');
    for filled in &rows.tables {
        let sequence = filled.table.name.replacen("\"", "", 2).replacen('.', ".\"", 1);
        next(&mut out, &format!("{sequence}_idx_seq\""), filled.next);
    }
    next(&mut out, "game.\"AgeSeqNumber\"", rows.last_age.saturating_add(1));
    out.push_str("\nCOMMIT;\n");
    out
}

/// The beginning of every export.
const HEAD: &str = "\
-- A shard for dirtsand. To import it: psql --set ON_ERROR_STOP=1 --file THIS dirtsand
-- This replaces everything in the database. The tables must exist.

SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
BEGIN;
";

/// A statement that sets the next number of a sequence.
fn next(out: &mut String, sequence: &str, next: u32) {
    let _ = writeln!(out, "SELECT pg_catalog.setval('{sequence}', {}, false);", next.max(1));
}

fn literal(value: &Value) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Signed(number) => number.to_string(),
        Value::Unsigned(number) => number.cast_signed().to_string(),
        Value::Flag(flag) => flag.to_string(),
        Value::Text(text) => quoted(text),
        Value::Uuid(uuid) => quoted(&uuid.to_string()),
        Value::Blob(bytes) => quoted(&STANDARD.encode(bytes)),
    }
}

/// A cursor over the text.
struct Text<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Text<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn wrong(&self, problem: impl Into<String>) -> MigrationError {
        let before = self.text.get(..self.at).unwrap_or_default();
        MigrationError::Dump { line: before.matches('\n').count() + 1, problem: problem.into() }
    }

    fn takes(&mut self, word: &str) -> bool {
        let takes = self.rest().starts_with(word);
        self.at += if takes { word.len() } else { 0 };
        takes
    }

    fn wants(&mut self, word: &str) -> Result<()> {
        self.skip_space();
        if self.takes(word) {
            return Ok(());
        }
        let found: String = self.rest().chars().take(20).collect();
        Err(self.wrong(format!("expected {word}, found {found:?}")))
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Skips white space, comments, and psql commands.
    fn skip_blank(&mut self) {
        loop {
            self.skip_space();
            if !self.rest().starts_with("--") && !self.rest().starts_with('\\') {
                return;
            }
            self.skip_behind("\n");
        }
    }

    /// Skips a statement with its semicolon.
    fn skip_statement(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            match c {
                ';' => return,
                '\'' | '"' => self.skip_behind(&c.to_string()),
                // The body of a function is between two equal tags.
                '$' => {
                    let rest = self.rest();
                    let is_tag = |tag: &str| tag.chars().all(|c| c.is_alphanumeric() || c == '_');
                    if let Some((tag, _)) = rest.split_once('$').filter(|(tag, _)| is_tag(tag)) {
                        self.at += tag.len() + 1;
                        self.skip_behind(&format!("${tag}$"));
                    }
                }
                _ => {}
            }
        }
    }

    fn skip_behind(&mut self, end: &str) {
        let rest = self.rest();
        self.at += rest.find(end).map_or(rest.len(), |at| at + end.len());
    }

    /// Parses the table and the row after `INSERT INTO`.
    fn insert(&mut self) -> Result<(String, Row)> {
        let mut table = self.name()?;
        while self.takes(".") {
            table = self.name()?;
        }
        self.wants("(")?;
        let columns = self.list(Self::name)?;
        self.wants("VALUES")?;
        self.wants("(")?;
        let values = self.list(Self::value)?;
        self.wants(";")?;
        if columns.len() != values.len() {
            let (wanted, found) = (columns.len(), values.len());
            return Err(self.wrong(format!("has {wanted} columns but {found} values")));
        }
        Ok((table, columns.into_iter().zip(values).collect()))
    }

    /// Parses a list of items separated by commas, up to the closing parenthesis.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        loop {
            self.skip_space();
            items.push(item(self)?);
            self.skip_space();
            if !self.takes(",") {
                self.wants(")")?;
                return Ok(items);
            }
        }
    }

    fn name(&mut self) -> Result<String> {
        if self.takes("\"") {
            return Ok(plain(&self.quoted('"')?));
        }
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let name = rest.split(|c| !is_part(c)).next().unwrap_or_default();
        if name.is_empty() {
            return Err(self.wrong("expected a name"));
        }
        self.at += name.len();
        Ok(plain(name))
    }

    fn value(&mut self) -> Result<Cell> {
        if self.takes("'") {
            return self.quoted('\'').map(Cell::Text);
        }
        let word = self.rest().split([',', ')']).next().unwrap_or_default().trim();
        let cell = match word {
            "NULL" => Cell::Null,
            "true" => Cell::Number(1),
            "false" => Cell::Number(0),
            number => match number.parse() {
                Ok(number) => Cell::Number(number),
                Err(_) => return Err(self.wrong(format!("not a value: {word:?}"))),
            },
        };
        self.at += word.len();
        Ok(cell)
    }

    /// Parses a text after its opening quote. Quotes in it are doubled; backslashes are literal.
    fn quoted(&mut self, quote: char) -> Result<String> {
        let mut text = String::new();
        loop {
            let Some((before, _)) = self.rest().split_once(quote) else {
                return Err(self.wrong("a closing quote is missing"));
            };
            text.push_str(before);
            self.at += before.len() + 1;
            if !self.rest().starts_with(quote) {
                return Ok(text);
            }
            text.push(quote);
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_inserted_rows_are_read() {
        let dump = "--\n-- a comment; with ' in it\n\\restrict x'\nSET a = 'b;''c';\n\
                    CREATE FUNCTION f() AS $body$ INSERT INTO x; ' $body$;\n\
                    INSERT INTO auth.\"Node_Refs\" (idx, \"Parent_Idx\", d) VALUES (1, -2, 'it''s\n\
                    INSERT INTO a \\ (b);');\nSELECT setval('x', 1, true);\n\
                    INSERT INTO t (a, b) VALUES (NULL, true);";
        let tables = read(dump).unwrap();
        assert_eq!(tables.keys().collect::<Vec<_>>(), ["noderefs", "t"]);
        let row = &tables["noderefs"][0];
        assert_eq!((&row["idx"], &row["parentidx"]), (&Cell::Number(1), &Cell::Number(-2)));
        assert_eq!(row["d"], Cell::Text("it's\nINSERT INTO a \\ (b);".to_owned()));
        assert_eq!((&tables["t"][0]["a"], &tables["t"][0]["b"]), (&Cell::Null, &Cell::Number(1)));
    }

    #[test]
    fn errors_name_the_line() {
        for (dump, problem) in [
            ("\nCOPY t FROM stdin;", "line 2: COPY is not supported"),
            ("INSERT INTO t (a) VALUES (1, 2);", "line 1: has 1 columns but 2 values"),
            ("INSERT INTO t (a) VALUES ('x);", "line 1: a closing quote is missing"),
            ("INSERT INTO t (a) VALUES (x);", "line 1: not a value: \"x\""),
            ("INSERT INTO t (a) VALUES (1", "line 1: expected ), found \"\""),
            ("INSERT INTO t DEFAULT VALUES;", "line 1: expected (, found \"DEFAULT VALUES;\""),
        ] {
            let error = read(dump).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}
