//! Definitions of messages, from files and directories.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use worldwire_core::{Diagnostic, Limits, Severity};
use worldwire_dissect::{Definitions, KiObjects, MxoObjects, TeraDefinitions};
use worldwire_ki::schema::Protocols;
use worldwire_tera::file::library::{BuildFacts, sender};
use worldwire_tera::file::{CodeMap, MapKind, text};
use worldwire_tera::schema::Problem;

use crate::cli::{Common, Data};
use crate::command::ki::inside;
use crate::command::ki::loader::Loader;
use crate::command::ki::op::inputs;
use crate::command::tera::folder::{named, one_set};
use crate::input::{files, read};
use crate::output::{Failure, complain};
use crate::{report, types};

/// The definitions that most commands load.
const DEFINITIONS: &str = "definitions of messages";

/// Reads definitions, hints and other descriptions of messages.
pub(crate) fn load(data: &Data, common: &Common) -> Result<Definitions, Failure> {
    load_noting_errors(data, common).map(|(definitions, _)| definitions)
}

/// Like [`load`], but also returns false if definitions with errors were skipped.
pub(crate) fn load_noting_errors(
    data: &Data,
    common: &Common,
) -> Result<(Definitions, bool), Failure> {
    let Data { revision, patch, pin, .. } = data;
    let mut definitions = Definitions::built_in();
    let clean = add_kind(&mut definitions, &data.paths, (DEFINITIONS, *revision), common)?;
    for (index, one) in pin.iter().enumerate() {
        let mut before = pin.iter().take(index);
        if let Some(other) = before.find(|other| other.name == one.name) {
            let problem = format!("--pin: {} is already pinned to version", one.name);
            return Err(Failure::Run(format!("{problem} {}; pin it only once", other.version)));
        }
        let tera = definitions.part::<TeraDefinitions>();
        named(&tera.library().definitions, &format!("{}.{}", one.name, one.version))?;
    }
    if revision.is_some() || patch.is_some() || !pin.is_empty() {
        let pins = pin.iter().map(|pin| (pin.name.as_str().into(), pin.version)).collect();
        let known = BuildFacts { revision: *revision, patch: *patch, pins };
        definitions.edit(|tera: &mut TeraDefinitions| tera.set_known(known));
    }
    Ok((definitions, clean))
}

/// Reads definitions from files and directories; they override the built-in ones.
pub(crate) fn load_from(paths: &[PathBuf], common: &Common) -> Result<Definitions, Failure> {
    load_kind(paths, DEFINITIONS, common)
}

/// Like the function above; `kind` names the expected definitions in the error for a path without
/// any.
pub(crate) fn load_kind(
    paths: &[PathBuf],
    kind: &str,
    common: &Common,
) -> Result<Definitions, Failure> {
    let mut definitions = Definitions::built_in();
    add_kind(&mut definitions, paths, (kind, None), common)?;
    Ok(definitions)
}

/// Reads definitions from files and directories; they override those already loaded. Returns false
/// if definitions with errors were skipped.
pub(crate) fn add(
    definitions: &mut Definitions,
    paths: &[PathBuf],
    common: &Common,
) -> Result<bool, Failure> {
    add_kind(definitions, paths, (DEFINITIONS, None), common)
}

/// Reads the requested definitions, for one revision of the TERA client if one is given. Returns
/// false if definitions with errors were skipped.
fn add_kind(
    definitions: &mut Definitions,
    paths: &[PathBuf],
    (kind, revision): (&str, Option<u32>),
    common: &Common,
) -> Result<bool, Failure> {
    let mut clean = true;
    let mut lists = Vec::new();
    // MxO tables refer to each other, in any order.
    let mut tables = Vec::new();
    for path in paths {
        tracing::debug!(path = %path.display(), "definitions");
        let is_list = |file: &PathBuf| types::is_list(file, path.is_dir());
        if let Some(said) = of_archived(path, definitions)? {
            report_all(&said, path, common)?;
            continue;
        }
        let found = files(path, &|subject, text| common.note(subject, text))?;
        let (of_path, files): (Vec<_>, Vec<_>) = found.into_iter().partition(is_list);
        if path.is_dir() {
            one_set(path, &files)?;
        }
        let has_lists = !of_path.is_empty();
        lists.extend(of_path);
        let files = files.into_iter().map(|file| (file.display().to_string(), file));
        // Directories may contain unrelated files of any size. A file named on the command line is
        // always read.
        let is_named = !path.is_dir();
        let files = files.filter(|(name, _)| is_named || definitions.may_be_in(name));
        let files = files.map(|(name, file)| read(&file).map(|bytes| (name, bytes)));
        let files: Vec<(String, Vec<u8>)> = match inside::is_archive_file(path) {
            true => messages_of(path, definitions, common)?,
            false => files.collect::<Result<_, Failure>>()?,
        };
        let (of_mxo, files): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|(_, bytes)| MxoObjects::are_in(bytes));
        let has_tables = !of_mxo.is_empty();
        tables.extend(of_mxo);
        let mut said = definitions.add(files);
        if said.is_none() && !has_lists && !has_tables {
            for archive in archives_in(std::slice::from_ref(path), common)? {
                let files = messages_of(&archive, definitions, common)?;
                if let Some(more) = definitions.add(files) {
                    said.get_or_insert_default().extend(more);
                }
            }
        }
        let Some(said) = said else {
            if has_lists || has_tables {
                continue;
            }
            let help = help_on_maps(path, revision).unwrap_or_default();
            let message = format!("{}: contains no {kind}{help}", path.display());
            return Err(Failure::Run(message));
        };
        clean &= report_all(&said, path, common)?;
    }
    if let Some(said) = definitions.add(tables) {
        let shown = said.iter().filter(|one| !common.quiet || one.severity() == Severity::Error);
        report::diagnostics(shown);
        // As with hints, leaving out the faulty tables would change how everything else is decoded.
        if said.iter().any(|one| one.severity() == Severity::Error) {
            return Err(Failure::Input);
        }
    }
    if !lists.is_empty() {
        let classes = types::load(&lists, common)?;
        definitions.edit(|objects: &mut KiObjects| objects.set_classes(classes));
    }
    if !common.quiet {
        let objects = definitions.part::<KiObjects>();
        report::diagnostics(&objects.warnings(&definitions.part::<Protocols>()));
    }
    Ok(clean)
}

/// Reports what is wrong with the definitions of a path. Returns whether they have no errors.
fn report_all(said: &[Diagnostic], path: &Path, common: &Common) -> Result<bool, Failure> {
    let shown = said.iter().filter(|one| !common.quiet || one.severity() == Severity::Error);
    report::diagnostics(shown);
    // The user's hints correct the built-in ones.
    let of_hints = |one: &&Diagnostic| one.file().ends_with(".toml");
    if said.iter().filter(of_hints).any(|one| one.severity() == Severity::Error) {
        return Err(Failure::Input);
    }
    let clean = said.iter().all(|one| one.severity() != Severity::Error);
    if !clean {
        complain(&path.display().to_string(), "definitions with errors were skipped");
    }
    Ok(clean)
}

/// Adds the definitions in one file of a KI archive, if a path names one.
fn of_archived(
    path: &Path,
    definitions: &mut Definitions,
) -> Result<Option<Vec<Diagnostic>>, Failure> {
    if inside::split(path).is_none() {
        return Ok(None);
    }
    inputs::with(&[path.to_owned()], &Limits::DEFAULT, |inputs| {
        let mut loader = Loader::alone();
        let mut files = Vec::new();
        for input in inputs {
            files.push((input.subject(), input.open(&mut loader)?.into_owned()));
        }
        let said = definitions.add(files);
        said.map(Some).ok_or_else(|| {
            let message = format!("{}: contains no {DEFINITIONS}", path.display());
            Failure::Run(message)
        })
    })
}

/// The KI archives in directories. Archives are large, so their content is read only if the
/// directory itself has no definitions.
pub(crate) fn archives_in(paths: &[PathBuf], common: &Common) -> Result<Vec<PathBuf>, Failure> {
    let mut archives = Vec::new();
    for folder in paths.iter().filter(|path| path.is_dir()) {
        let found = files(folder, &|subject, text| common.note(subject, text))?;
        let is_named =
            |file: &PathBuf| file.extension().is_some_and(|it| it.eq_ignore_ascii_case("wad"));
        archives.extend(found.into_iter().filter(|it| is_named(it) && inside::is_archive_file(it)));
    }
    Ok(archives)
}

/// Whether a file is KI's message XML.
pub(crate) fn has_messages(bytes: &[u8]) -> bool {
    /// Only message XML contains this.
    const MARK: &[u8] = b"_ProtocolInfo";
    bytes.windows(MARK.len()).any(|part| part == MARK)
}

/// The advice for a TERA map whose file name does not mark it as one.
fn help_on_maps(path: &Path, revision: Option<u32>) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    let is_named = path.extension().is_some_and(|end| end == "map");
    let is_map = || {
        let (text, _) = text::read(read(path).ok()?).ok()?;
        let (map, problems) = CodeMap::parse(MapKind::Protocol, "", &text);
        let is_message = |(name, _): (&str, u32)| sender(name).is_some();
        Some(map.iter().any(is_message) && !problems.iter().any(Problem::is_error))
    };
    if !is_named && !is_map()? {
        return None;
    }
    let wanted = match revision {
        Some(revision) => format!("protocol.{revision}.map for revision {revision}"),
        None => "protocol.REVISION.map, with the client's revision".to_owned(),
    };
    Some(format!(
        "; TERA maps are found by their file names: {wanted}, and sysmsg.PATCH.map for system messages"
    ))
}

/// The message XML in a KI archive, which contains mostly other files.
fn messages_of(
    path: &Path,
    definitions: &Definitions,
    common: &Common,
) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    inputs::with(&[path.to_owned()], &Limits::DEFAULT, |inputs| {
        let mut loader = Loader::alone();
        let mut found = Vec::new();
        for input in inputs.iter().filter(|input| definitions.may_be_in(&input.subject())) {
            match input.read(&mut loader) {
                Ok(Some(bytes)) if has_messages(&bytes) => {
                    found.push((input.subject(), bytes.into_owned()));
                }
                Ok(_) => {}
                Err(fault) => common.note(&input.subject(), &fault),
            }
        }
        Ok(found)
    })
}

/// The options that supply these definitions and select the build, each preceded by a space.
pub(crate) fn options(data: &Data) -> String {
    let mut options = String::new();
    for path in &data.paths {
        let _ = write!(options, " --data {}", shell(path));
    }
    if let Some(revision) = data.revision {
        let _ = write!(options, " --revision {revision}");
    }
    if let Some(patch) = &data.patch {
        let _ = write!(options, " --patch {patch}");
    }
    options
}

/// The options that select versions of definitions, each preceded by a space.
pub(crate) fn pins(data: &Data) -> String {
    data.pin.iter().map(|pin| format!(" --pin {}.{}", pin.name, pin.version)).collect()
}

/// A path, quoted for a shell.
pub(crate) fn shell(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=~".contains(c);
    if !path.is_empty() && path.chars().all(plain) && !path.starts_with('~') {
        path
    } else if path.contains(char::is_control) {
        // The command must fit on one line.
        let escaped = path.chars().map(|c| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if c.is_control() => c.to_string().bytes().map(|it| format!("\\x{it:02x}")).collect(),
            c => c.to_string(),
        });
        format!("$'{}'", escaped.collect::<String>())
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(shell(Path::new("a/b-1.pcap")), "a/b-1.pcap");
        assert_eq!(shell(Path::new("my captures/it's.pcap")), "'my captures/it'\\''s.pcap'");
        assert_eq!(shell(Path::new("~x")), "'~x'");
        assert_eq!(shell(Path::new("a\nit's\\\u{85}")), "$'a\\x0ait\\'s\\\\\\xc2\\x85'");
    }
}
