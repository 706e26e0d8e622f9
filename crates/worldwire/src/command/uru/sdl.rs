//! `worldwire uru sdl`.

use core::slice;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use worldwire_core::json::{Json, parse};
use worldwire_core::value::{parse_hex, push_hex};
use worldwire_core::{Reader, Severity, nearest};
use worldwire_dissect::UruDefinitions;
use worldwire_server::uru::admin::Request;
use worldwire_uru::file::secure::Magic;
use worldwire_uru::schema::{Definition, Descriptor, Descriptors, Literal, Type, Variable};
use worldwire_uru::sdl::{Blob, MergePolicy, ObjectState};
use worldwire_uru::types::UnifiedTime;

use super::account::ask;
use crate::cli::{BlobContext, Common, Data, Decode, JsonForm, SideArg, UruSdl};
use crate::command::decode;
use crate::output::{Failure, complain, counted, print, printable};
use crate::{definitions, input, report};

pub(crate) fn run(command: &UruSdl, common: &Common) -> Result<(), Failure> {
    match command {
        UruSdl::Check { paths, json } => check(paths, *json, common),
        UruSdl::Show { descriptor, descriptors, json } => {
            show(descriptor.as_deref(), &descriptors.paths, *json, common)
        }
        UruSdl::Decode { file, hex, descriptors, json, bytes } => {
            let data = Data { paths: descriptors.paths.clone(), ..Data::default() };
            let arguments = Decode {
                codec: "uru.sdl".to_owned(),
                file: file.clone(),
                hex: hex.clone(),
                context: BlobContext { from: SideArg::Client, keys: Vec::new(), data },
                json: JsonForm { json: *json, json_safe: false },
                bytes: *bytes,
            };
            decode::run(&arguments, common)
        }
        UruSdl::Set { age, variables, sdl, shard } => {
            set(age, variables, sdl, &shard.shard, common)
        }
        UruSdl::Diff { old, new, descriptors, json } => {
            diff([old, new], &descriptors.paths, *json, common)
        }
    }
}

/// Reads descriptors and reports their problems.
pub(super) fn load(paths: &[PathBuf], common: &Common) -> Result<Descriptors, Failure> {
    let definitions = definitions::load_kind(paths, "descriptors (.sdl files)", common)?;
    let uru = definitions.get_ref::<UruDefinitions>();
    Ok(uru.map(|uru| uru.descriptors().clone()).unwrap_or_default())
}

/// Like the function above, but there must be at least one descriptor.
fn load_some(paths: &[PathBuf], common: &Common) -> Result<Descriptors, Failure> {
    let descriptors = load(paths, common)?;
    if descriptors.is_empty() {
        return Err(Failure::Run("--sdl: contains no descriptors (.sdl files)".to_owned()));
    }
    Ok(descriptors)
}

/// Sets variables for all instances of an age on a shard.
fn set(
    age: &str,
    variables: &[String],
    sdl: &[PathBuf],
    shard: &Path,
    common: &Common,
) -> Result<(), Failure> {
    let own = [shard.join("data").join("secure").join("SDL")];
    let set = load_some(if sdl.is_empty() { &own } else { sdl }, common)?;
    let newest = set.newest(age).ok_or_else(|| {
        let names: Vec<String> = set.iter().map(|known| known.name().to_owned()).collect();
        let near = nearest(age, names.iter().map(String::as_str));
        let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        complain(age, &format!("no descriptor has this name{near}"));
        Failure::Input
    })?;
    let variable = |word: &String| {
        let misfit =
            || Failure::Run(format!("{}: must have the form VARIABLE=VALUE", printable(word)));
        let (name, value) = word.split_once('=').ok_or_else(misfit)?;
        Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
    };
    let variables = variables.iter().map(variable).collect::<Result<Vec<_>, _>>()?;
    let failed = |error: worldwire_core::Error| Failure::Run(error.to_string());
    let update = update(&set, &newest, &variables).map_err(failed)?;
    let request = Request::AgeSettings { age: newest.name().to_owned() };
    let stored = ask(shard, request, Vec::new())?;
    let stored = stored.first().and_then(serde_json::Value::as_str).and_then(parse_hex);
    let mut state = ObjectState::new(newest.clone());
    if let Some(bytes) = &stored {
        let blob = Blob::decode(&set, &mut Reader::new(bytes)).map_err(failed)?;
        state = ObjectState::of(&blob);
        if state.descriptor().version() < newest.version() {
            state = state.upgrade(&newest);
        }
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = u32::try_from(since.as_secs()).unwrap_or(u32::MAX);
    let now = UnifiedTime { seconds, microseconds: since.subsec_micros() };
    let applied = state.apply(&update, MergePolicy::OURS, &now);
    applied.map_err(|refused| Failure::Run(refused.to_string()))?;
    let mut hex = String::new();
    push_hex(&mut hex, &state.to_blob().to_bytes().map_err(failed)?);
    let request = Request::SetAgeSettings { age: newest.name().to_owned(), state: hex };
    ask(shard, request, Vec::new()).map(drop)
}

/// A state with only these variables.
pub(crate) fn update(
    set: &Descriptors,
    descriptor: &Definition,
    variables: &[(String, Json)],
) -> worldwire_core::Result<Blob<'static>> {
    for (name, value) in variables {
        let named = descriptor.variables().iter().find(|it| it.label().eq_ignore_ascii_case(name));
        if named.is_some_and(|variable| variable.simple_type() == Some(Type::Bool)) {
            check_bools(value).map_err(|error| error.inside(name))?;
        }
    }
    let variables: serde_json::Map<_, _> = variables
        .iter()
        .map(|(name, value)| {
            (name.clone(), json!({"hint": "", "flags": ["Dirty"], "value": value}))
        })
        .collect();
    let update = json!({
        "flags": ["AddedVarLengthIO"], "descriptor": descriptor.name(),
        "version": descriptor.version(), "variables": variables,
    });
    Blob::from_json(set, &update.into())
}

/// Refuses values for a `BOOL` other than those that clients set, although a blob can hold any
/// byte.
fn check_bools(value: &Json) -> worldwire_core::Result<()> {
    let items = value.as_array().unwrap_or_else(|| slice::from_ref(value));
    let is_other = |item: &&Json| item.as_bool().is_none() && !matches!(item.as_u64(), Some(0 | 1));
    match items.iter().find(is_other) {
        None => Ok(()),
        Some(found) => {
            Err(worldwire_core::Error::value("true, false, 1 or 0 for a BOOL", found.to_string()))
        }
    }
}

fn check(paths: &[PathBuf], json: bool, common: &Common) -> Result<(), Failure> {
    let mut texts = Vec::new();
    for path in paths {
        let mut files = input::files(path, &|subject, text| common.note(subject, text))?;
        if path.is_dir() {
            files
                .retain(|file| file.extension().is_some_and(|end| end.eq_ignore_ascii_case("sdl")));
        }
        for file in files {
            let bytes = input::read(&file)?;
            if Magic::detect(&bytes).is_some() {
                let message = "is encrypted; decrypt it with `worldwire decode uru.secure-file`";
                return Err(Failure::Run(format!("{}: {message}", file.display())));
            }
            texts.push((file.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    let set = Descriptors::load(texts.iter().map(|(name, text)| (name, text)));
    let is_error = |severity: Severity| severity == Severity::Error;
    let errors = set.problems().iter().filter(|one| is_error(one.severity())).count();
    let mut out = String::new();
    if json {
        for problem in set.problems() {
            let line = json!({
                "file": problem.file(), "line": problem.line(), "column": problem.column(),
                "severity": problem.severity().to_string(), "message": problem.message(),
                "help": problem.help_text(),
            });
            let _ = writeln!(out, "{line}");
        }
    } else {
        let shown = set.problems().iter();
        report::diagnostics(shown.filter(|one| !common.quiet || is_error(one.severity())));
        let names: BTreeSet<_> = set.iter().map(|one| one.name().to_ascii_lowercase()).collect();
        let _ = writeln!(
            out,
            "{}, {} of {}: {}, {}",
            counted(texts.len(), "file"),
            counted(set.len(), "descriptor"),
            counted(names.len(), "name"),
            counted(set.problems().len() - errors, "warning"),
            counted(errors, "error"),
        );
    }
    print(&out)?;
    if errors == 0 { Ok(()) } else { Err(Failure::Input) }
}

fn show(word: Option<&str>, paths: &[PathBuf], json: bool, common: &Common) -> Result<(), Failure> {
    let set = load_some(paths, common)?;
    let found = match word {
        Some(word) => named(&set, word)?,
        None => set.iter().collect(),
    };
    let mut out = String::new();
    for (number, descriptor) in found.iter().enumerate() {
        if json {
            let _ = writeln!(out, "{}", described(descriptor));
        } else {
            let gap = if number == 0 { "" } else { "\n" };
            let _ = write!(out, "{gap}{}", **descriptor);
        }
    }
    print(&out)
}

/// The descriptors given as NAME or NAME.VERSION.
fn named(set: &Descriptors, word: &str) -> Result<Vec<Descriptor>, Failure> {
    let all: Vec<_> = set.versions(word).collect();
    if !all.is_empty() {
        return Ok(all);
    }
    let (name, version) = word.rsplit_once('.').unwrap_or((word, ""));
    if let Some(found) = version.parse().ok().and_then(|version| set.get(name, version)) {
        return Ok(vec![found]);
    }
    let versions: Vec<_> = set.versions(name).map(|one| one.version().to_string()).collect();
    let names: Vec<_> = set.iter().map(|one| one.name().to_owned()).collect();
    let hint = match nearest(name, names.iter().map(String::as_str)) {
        _ if !versions.is_empty() => format!("; available: version {}", versions.join(", ")),
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    };
    complain(word, &format!("no such descriptor{hint}"));
    Err(Failure::Input)
}

fn described(definition: &Definition) -> serde_json::Value {
    let variable = |variable: &Variable| {
        let words = |words: &[Literal]| words.iter().map(|w| json!(w.text())).collect::<Vec<_>>();
        json!({
            "name": variable.name(),
            "type": variable.element_type().to_string(),
            "count": variable.count(),
            "default": variable.default().map(words),
            "defaultOptions": variable.default_options().collect::<Vec<_>>(),
            "displayOptions": variable.display_options().collect::<Vec<_>>(),
        })
    };
    json!({
        "name": definition.name(),
        "version": definition.version(),
        "variables": definition.variables().iter().map(variable).collect::<Vec<_>>(),
    })
}

fn diff(
    paths: [&PathBuf; 2],
    descriptors: &[PathBuf],
    json: bool,
    common: &Common,
) -> Result<(), Failure> {
    let set = load_some(descriptors, common)?;
    let [old, new] = [state(paths[0], &set)?, state(paths[1], &set)?];
    let (before, after) = (old.descriptor().name(), new.descriptor().name());
    if !before.eq_ignore_ascii_case(after) {
        let message = format!("the states have different descriptors: {before} and {after}");
        return Err(Failure::Run(message));
    }
    let changes = old.diff(&new);
    let mut out = String::new();
    for change in &changes {
        if json {
            change.write_json(&mut out);
            out.push('\n');
        } else {
            let _ = writeln!(out, "{}", printable(&change.to_string()));
        }
    }
    if changes.is_empty() && !json {
        let [old, new] = paths.map(|path| input::title(path));
        let _ = writeln!(out, "{old} and {new} have no differences");
    }
    print(&out)
}

/// Reads a state: a blob, or its JSON.
fn state(path: &Path, set: &Descriptors) -> Result<ObjectState, Failure> {
    let bytes = input::read(path)?;
    // A blob begins with flags, whose lowest byte is 0 or 1.
    let text = bytes.trim_ascii_start().starts_with(b"{").then(|| String::from_utf8_lossy(&bytes));
    let read = match text {
        Some(text) => match parse(&text) {
            Ok(json) => Blob::from_json(set, &json).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        },
        None => {
            let mut reader = Reader::new(&bytes);
            let blob = Blob::decode(set, &mut reader);
            let blob = blob.and_then(|blob| reader.end().map(|()| blob.into_owned()));
            blob.map_err(|error| error.closed().to_string())
        }
    };
    match read {
        Ok(blob) => Ok(ObjectState::of(&blob)),
        Err(error) => {
            complain(&input::title(path), &error);
            Err(Failure::Input)
        }
    }
}
