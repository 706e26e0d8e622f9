//! `worldwire ki dml table`.

use std::path::Path;

use worldwire_core::json::{Json, Style, write_children};
use worldwire_core::{Error, Reader, Tree, Value};
use worldwire_ki::file::table::TableFile;
use worldwire_ki::file::xml;
use worldwire_ki::object::looks_rounded;

use super::found::{self, Found, Kind};
use super::{complain_first, warning};
use crate::cli::{Common, KiTableForm, Target};
use crate::output::{Failure, complain, write_all};
use crate::report;

/// The maximum number of warnings listed individually, since every record can have one.
const MAX_WARNINGS: usize = 20;

/// Files of DML tables in archives and directories.
static TABLES: Kind = Kind {
    what: "file of DML tables",
    is_named: |name| {
        let name = name.rsplit('/').next().unwrap_or(name);
        name.eq_ignore_ascii_case("LatestFileList.bin")
    },
    is: |bytes| {
        let mut reader = Reader::new(bytes);
        let file = TableFile::decode(&mut reader);
        file.is_ok_and(|file| !file.tables.is_empty() && file.warnings().next().is_none())
    },
};

/// The output of `dml table`.
pub(crate) struct How<'h> {
    pub(crate) to: KiTableForm,
    /// The only table to write.
    pub(crate) only: Option<&'h str>,
    /// Whether to write integers of more than 53 bits as strings.
    pub(crate) safe: bool,
}

pub(crate) fn run(
    path: &Path,
    &How { to, only, safe }: &How<'_>,
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let source = found::only(path, &TABLES, common)?;
    let Found { title: subject, bytes, .. } = source.found();
    let is_unnamed = path == Path::new("-") && !bytes.starts_with(b"[");
    let path = Path::new(&subject);
    if is_unnamed && only.is_none() && form(path, bytes) == KiTableForm::Csv {
        let problem = "is the CSV of a single table, which does not contain the table's name; use \
                       --table NAME";
        return Err(Failure::Run(format!("{subject}: {problem}")));
    }
    let bad = |error: &Error| {
        complain(&subject, &error.to_string());
        Failure::Input
    };
    let (mut file, mut is_lossy) = tables(path, bytes, only)?;
    complain_first(&subject, MAX_WARNINGS, file.warnings().map(warning));
    let missing = file.missing();
    for name in missing.iter().take(MAX_WARNINGS) {
        let text =
            format!("table {name} is missing, though _TableList names it: is the file truncated?");
        complain(&subject, &text);
    }
    let single = only.is_some();
    if let Some(name) = only {
        file.tables.retain(|table| table.name.as_bytes() == name.as_bytes());
        if file.tables.is_empty() {
            complain(&subject, &format!("no table \"{name}\""));
            return Err(Failure::Input);
        }
    }
    if to == KiTableForm::Xml {
        let lost = file.lost_in_xml().map(|lost| warning(format!("XML cannot store {lost}")));
        is_lossy |= complain_first(&subject, MAX_WARNINGS, lost) > 0;
    }
    let written = match (to, &file.tables[..]) {
        (KiTableForm::Bin, _) => file.to_bytes(),
        (KiTableForm::Xml, _) => file.to_xml().map(String::into_bytes),
        (KiTableForm::Csv, [table]) if single => table.to_csv().map(String::into_bytes),
        (KiTableForm::Csv, _) => file.to_csv().map(String::into_bytes),
        (KiTableForm::Json, _) => json(&file, Style { safe }),
    };
    write_all(target, &written.map_err(|error| bad(&error))?)?;
    if missing.is_empty() && !is_lossy { Ok(()) } else { Err(Failure::Input) }
}

/// Numbers that appear to have been rounded by another program.
fn find_rounded(json: &Json, found: &mut Vec<i128>) {
    match json {
        Json::Number(number) => {
            let whole = number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from));
            found.extend(whole.filter(|whole| looks_rounded(*whole)));
        }
        Json::Array(items) => items.iter().for_each(|item| find_rounded(item, found)),
        Json::Object(items) => items.values().for_each(|item| find_rounded(item, found)),
        Json::Null | Json::Bool(_) | Json::String(_) => {}
    }
}

/// The tables of a file in any form, and whether any part was skipped. Skipped parts are reported.
/// `name` is the table name for CSV files, which do not contain one.
pub(super) fn tables<'b>(
    path: &Path,
    bytes: &'b [u8],
    only: Option<&str>,
) -> Result<(TableFile<'b>, bool), Failure> {
    let subject = path.display().to_string();
    let bad = |error: Error| {
        complain(&subject, &error.to_string());
        Failure::Input
    };
    let whole = |file| (file, false);
    match form(path, bytes) {
        KiTableForm::Bin => TableFile::decode(&mut Reader::new(bytes)).map(whole).map_err(bad),
        KiTableForm::Xml => {
            let loaded = xml::load(&subject, bytes);
            report::diagnostics(&loaded.diagnostics);
            let is_lossy = !loaded.diagnostics.is_empty();
            loaded.file.map(|file| (file, is_lossy)).ok_or(Failure::Input)
        }
        KiTableForm::Json => {
            let json: Json = serde_json::from_slice(bytes).map_err(|error| {
                complain(&subject, &format!("invalid JSON: {error}"));
                Failure::Input
            })?;
            let mut rounded = Vec::new();
            find_rounded(&json, &mut rounded);
            let what = "looks like an integer that was rounded to a double";
            let help =
                "programs that store numbers as doubles do that; write JSON with --json-safe";
            let told = rounded.iter().map(|number| warning(format!("{number} {what}; {help}")));
            complain_first(&subject, MAX_WARNINGS, told);
            TableFile::from_json(&json).map(whole).map_err(bad)
        }
        KiTableForm::Csv => {
            let text = String::from_utf8_lossy(bytes);
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let name = only.map(str::to_owned).or(name).unwrap_or_default();
            TableFile::from_csv(&text, &name).map(whole).map_err(bad)
        }
    }
}

/// The format of a file, judging by its content: XML and JSON by their first character, CSV by its
/// first line, tables by a count, which contains control characters.
fn form(path: &Path, bytes: &[u8]) -> KiTableForm {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    match text.first() {
        Some(b'<') => KiTableForm::Xml,
        Some(b'{') => KiTableForm::Json,
        _ if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"))
            || is_csv(text) =>
        {
            KiTableForm::Csv
        }
        _ => KiTableForm::Bin,
    }
}

/// Whether data begins like CSV: with the name of a table in brackets, or columns as NAME:TYPE.
fn is_csv(data: &[u8]) -> bool {
    let line = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line));
    let is_head = |text: &str| text.starts_with('[') || text.contains(':');
    text.is_ok_and(|text| is_head(text) && !text.contains(|c: char| c.is_control() && c != '\t'))
}

/// The tables as the tree of their binary form.
fn json(file: &TableFile<'_>, style: Style) -> worldwire_core::Result<Vec<u8>> {
    let bytes = file.to_bytes()?;
    let mut reader = Reader::traced("file", &bytes, Tree::new());
    let outcome = TableFile::decode(&mut reader).map(drop);
    let (tree, outcome) = reader.conclude(outcome);
    outcome?;
    let mut out = String::new();
    write_children(Value::Record, tree.roots(), style, &mut out);
    out.push('\n');
    Ok(out.into_bytes())
}
