//! The fields of messages as a table.

use worldwire_dissect::Definitions;
use worldwire_dissect::filter::{Column, ColumnCell, Resolver, Subject};

use super::check_filter;
use crate::cli::{Common, View};
use crate::command::selection::Shown;
use crate::command::time::Times;
use crate::output::{Failure, printable};

/// The columns named by `--fields` and the settings.
pub(super) fn columns(
    view: &View,
    definitions: &Definitions,
    common: &Common,
) -> Result<Vec<Column>, Failure> {
    let resolver = Resolver::new(definitions);
    let parse = |text: &String| {
        let column = Column::parse(text, &resolver)
            .map_err(|error| Failure::Run(format!("--fields {text}: {error}")))?;
        check_filter(&column.filter(), &resolver, common)?;
        Ok(column)
    };
    view.fields.iter().map(parse).collect()
}

/// The cells of a selected message, or `None` if it has none of the fields.
pub(super) fn cells(
    columns: &[Column],
    times: &Times,
    shown: &Shown<'_, '_>,
) -> Option<Vec<String>> {
    shown.item.message()?;
    let subject = Subject::of(shown.item, shown.name, shown.tree);
    let mut is_there = columns.iter().all(|column| !column.is_field());
    let cell = |column: &Column| {
        let mut text = String::new();
        match times.are_dates().then(|| column.cell(&subject)).flatten() {
            Some(ColumnCell::Moment(time)) => times.write(time, &mut text),
            _ => is_there |= column.write(&subject, &mut text) && column.is_field(),
        }
        text
    };
    let cells = columns.iter().map(cell).collect();
    is_there.then_some(cells)
}

/// A line of a table. CSV keeps text verbatim; other output has terminal control characters
/// escaped.
pub(super) fn row<'c>(is_csv: bool, cells: impl Iterator<Item = &'c str>) -> String {
    let delimiter = if is_csv { b',' } else { b'\t' };
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = match is_csv {
        true => writer.write_record(cells),
        false => writer.write_record(cells.map(printable)),
    };
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::row;

    #[test]
    fn tables_escape_control_characters_and_csv_is_exact() {
        let line = |is_csv: bool| {
            let cells = ["a\u{1b}[31m", "b\u{9b}\u{202e}", "c\td\n", "\"e\""];
            row(is_csv, cells.into_iter())
        };
        let table = "a\\u{1b}[31m\tb\\u{9b}\\u{202e}\tc\\td\\n\t\"\"\"e\"\"\"\n";
        assert_eq!(line(false), table);
        assert_eq!(line(true), "a\u{1b}[31m,b\u{9b}\u{202e},\"c\td\n\",\"\"\"e\"\"\"\n");
    }
}
