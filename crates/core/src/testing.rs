//! The harnesses that run conformance vectors and fuzz targets for all families.
//!
//! A family's vectors are the JSON files in one folder. Every list of objects in a file, and the
//! list `cases` of every object, is a section of cases. The folder is `vectors/FAMILY` in the
//! project, or `$WORLDWIRE_VECTORS/FAMILY` if that is set.

mod codec;
pub mod holding;
pub mod operations;
pub mod pair;
pub mod schema;

pub use codec::{Decoded, decode, encoded};

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::json::{Json, Style, write_children};
use crate::text::{TextStyle, write_tree};
use crate::value::{Content, parse_hex};
use crate::{Children, NodeRef, Tree, Value};

/// One case of a vector file, with its origin.
#[derive(Clone, Copy, Debug)]
pub struct Case<'j> {
    /// The file's name without its extension.
    pub file: &'j str,
    /// The key of its list in the file.
    pub section: &'j str,
    /// The case.
    pub case: &'j Json,
    /// The whole file, for cases that need its shared values.
    pub whole: &'j Json,
}

/// The sections of a file: every list of objects, and the list `cases` of every object.
fn sections(file: &Json) -> Vec<(&str, &[Json])> {
    let entries = file.as_object().into_iter().flatten();
    let lists = entries.filter_map(|(key, value)| {
        let list = value.as_array().or_else(|| value.get("cases")?.as_array())?;
        list.iter().all(Json::is_object).then_some((key, list))
    });
    lists.collect()
}

/// Runs every case in every file of a family through `run` and prints the number of cases per file.
/// Files named in `elsewhere` belong to other tests and are listed as not run here.
///
/// # Panics
/// If a file cannot be read, a file has no cases, or a case fails; lists all failures. `run` must
/// fail for a case that it does not understand.
pub fn run_vectors(
    family: &str,
    elsewhere: &[&str],
    mut run: impl FnMut(Case<'_>) -> Result<(), String>,
) {
    let folder = std::env::var_os("WORLDWIRE_VECTORS");
    let folder = folder.map_or_else(|| project().join("vectors"), PathBuf::from).join(family);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{}: no vectors", folder.display());
    let mut failures = String::new();
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if elsewhere.contains(&name.as_str()) {
            println!("{family}/{name}.json: not run here");
            continue;
        }
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file: Json = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let sections = sections(&file);
        assert!(!sections.is_empty(), "{}: no cases", path.display());
        for (section, cases) in sections {
            assert!(!cases.is_empty(), "{}: no cases in {section}", path.display());
            for (index, case) in cases.iter().enumerate() {
                if let Err(why) = run(Case { file: &name, section, case, whole: &file }) {
                    let _ = writeln!(failures, "{name}.json {section}[{index}]: {why}");
                }
            }
            println!("{family}/{name}.json: {} {section}", cases.len());
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// The folder of the project. Published crates do not contain its samples and vectors.
fn project() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A file in the project's folder `samples`.
///
/// # Panics
/// If the file cannot be read.
#[must_use]
pub fn sample_file(name: &str) -> Vec<u8> {
    let path = project().join("samples").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The value of a case's key, decoded from hexadecimal digits.
///
/// # Errors
/// If there is no such key or its value is not hexadecimal.
pub fn hex(case: &Json, key: &str) -> Result<Vec<u8>, String> {
    let text = case.get(key).and_then(Json::as_str).ok_or_else(|| format!("no {key}"))?;
    parse_hex(text).ok_or_else(|| format!("{key} is not hexadecimal text"))
}

/// Checks that a node matches a case's expectation. Records may have fields that the case omits. A
/// case may give numbers as names, and bytes and identifiers as text.
///
/// # Errors
/// Where and how they differ.
pub fn agrees(node: NodeRef<'_, '_>, wanted: &Json) -> Result<(), String> {
    let differs = || {
        let mut found = String::new();
        crate::text::write_value(node, 0, &mut found);
        Err(format!("{}: wanted {wanted}, found {found}", node.name()))
    };
    match (wanted, node.value()) {
        (Json::Object(fields), Value::Record) => {
            for (key, wanted) in fields {
                let Some(child) = node.child(key) else {
                    return Err(format!("{}: no {key}", node.name()));
                };
                agrees(child, wanted)?;
            }
            Ok(())
        }
        // Text that is shown as a record because it has other properties too.
        (_, Value::Record) if node.child("text").is_some() => match node.child("text") {
            Some(text) => agrees(text, wanted),
            None => differs(),
        },
        (Json::Array(items), Value::List) => {
            let children: Vec<_> = node.children().collect();
            if children.len() != items.len() {
                return differs();
            }
            children.into_iter().zip(items).try_for_each(|(child, item)| agrees(child, item))
        }
        (Json::Null, Value::Null) => Ok(()),
        (Json::Bool(wanted), Value::Bool(found)) if *wanted == found => Ok(()),
        (Json::String(wanted), Value::Enum(number, names))
            if names.name(number) == Some(&**wanted) =>
        {
            Ok(())
        }
        (Json::Number(wanted), Value::F32(found)) if wanted.as_f64() == Some(f64::from(found)) => {
            Ok(())
        }
        (Json::Number(wanted), Value::F64(found)) if wanted.as_f64() == Some(found) => Ok(()),
        (Json::Number(wanted), value) => match value {
            Value::Signed(found) | Value::Enum(found, _) if wanted.as_i64() == Some(found) => {
                Ok(())
            }
            _ if wanted.as_u64().is_some() && wanted.as_u64() == node.unsigned() => Ok(()),
            _ => differs(),
        },
        (Json::String(wanted), Value::Span(_)) => match node.content() {
            Some(Content::Text(text)) if *text == **wanted => Ok(()),
            Some(Content::Bytes(bytes)) if Some(&*bytes) == parse_hex(wanted).as_deref() => Ok(()),
            _ => differs(),
        },
        _ => differs(),
    }
}

/// Renders a tree in every format, whether decoding succeeded or failed, and returns its JSON.
///
/// # Panics
/// If a walk through children does not visit every node exactly once, if a node, its text or its
/// bytes are not within their layer, or if the JSON is invalid.
pub fn render(tree: &Tree<'_>, style: Style) -> Json {
    assert_eq!(visit(tree, tree.roots()), tree.len(), "a walk visits every node once");
    let mut text = String::new();
    write_tree(tree, TextStyle { ranges: true, ..TextStyle::default() }, &mut text);
    let lines = text.lines().count();
    assert!(lines <= tree.len() + 1, "{lines} lines for {} nodes", tree.len());
    text.clear();
    write_children(Value::Record, tree.roots(), style, &mut text);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The number of nodes that a walk visits; checks the position of each.
fn visit(tree: &Tree<'_>, nodes: Children<'_, '_>) -> usize {
    let mut count = 0;
    for node in nodes {
        let layer = tree.layers().get(usize::from(node.layer()));
        let length = layer.map_or(0, |layer| layer.data().len());
        let within = |start: u32, end: u64| u64::from(start) <= end && end <= length as u64;
        let (name, range) = (node.name(), node.bytes());
        let is_within = within(range.start, range.end.into());
        assert!(is_within, "{name}: bytes {range:?} of a layer of {length}");
        if let Value::Span(span) = node.value() {
            let end = u64::from(span.start) + u64::from(span.length);
            assert!(within(span.start, end), "{name}: {span:?} of a layer of {length} bytes");
        }
        count += 1 + visit(tree, node.children());
    }
    count
}

/// A fuzz target: its name, its function and its seeds.
#[derive(Debug)]
pub struct Target {
    /// The name, which is also used as a file name.
    pub name: &'static str,
    /// Runs the target on any bytes; panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs that reach deep states.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// The number of mutated inputs for each target: `$WORLDWIRE_FUZZ_RUNS`, or 2,000.
#[must_use]
pub fn fuzz_runs() -> u64 {
    let runs = std::env::var("WORLDWIRE_FUZZ_RUNS").ok().and_then(|runs| runs.parse().ok());
    runs.unwrap_or(2_000)
}

/// Runs a target on its seeds and then on this many mutations of them, always the same ones.
///
/// # Panics
/// If the target panics.
pub fn fuzz(target: &Target, runs: u64) {
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{}: no seeds", target.name);
    seeds.iter().for_each(|seed| (target.run)(seed));
    (target.run)(&[]);
    let mut sampler = crate::Sampler::new(runs);
    let pick = |sampler: &mut crate::Sampler, count: usize| {
        usize::try_from(sampler.below(count as u64)).unwrap_or(0)
    };
    for _ in 0..runs {
        let mut input = seeds[pick(&mut sampler, seeds.len())].clone();
        for _ in 0..=sampler.below(4) {
            let at = pick(&mut sampler, input.len() + 1);
            match sampler.below(8) {
                0 if at < input.len() => input[at] ^= 1 << sampler.below(8),
                1 if at < input.len() => {
                    input[at] = [0, 1, 0x7f, 0x80, 0xff][pick(&mut sampler, 5)]
                }
                2 => input.truncate(at),
                3 => {
                    let length = pick(&mut sampler, 9);
                    let noise = sampler.bytes(length);
                    input.splice(at..at, noise);
                }
                4 if at < input.len() => {
                    let end = (at + pick(&mut sampler, 9)).min(input.len());
                    input.drain(at..end);
                }
                5 if at + 4 <= input.len() => {
                    let word = u32::try_from(sampler.number() & 0xffff_ffff).unwrap_or(0);
                    input[at..at + 4].copy_from_slice(&word.to_le_bytes());
                }
                6 => {
                    let other = &seeds[pick(&mut sampler, seeds.len())];
                    let from = pick(&mut sampler, other.len() + 1);
                    input.truncate(at);
                    input.extend_from_slice(&other[from..]);
                }
                _ if at < input.len() => input[at] = sampler.bits().to_le_bytes()[0],
                _ => input.push(sampler.bits().to_le_bytes()[0]),
            }
        }
        // Joining seeds must not let mutations grow without limit.
        input.truncate(1 << 16);
        (target.run)(&input);
    }
}

/// The environment variable that names the target in a process that [`each_alone`] starts.
const ALONE: &str = "WORLDWIRE_FUZZ_ALONE";

/// Calls `run` for every target in a separate process, so that its memory use can be measured, with
/// one process per processor at a time. Each process runs the calling test program again, with only
/// the test named `test`.
///
/// # Panics
/// If targets fail; prints their names and output.
pub fn each_alone<'t>(
    test: &str,
    targets: impl IntoIterator<Item = &'t Target>,
    run: impl Fn(&Target),
) {
    let targets: Vec<&Target> = targets.into_iter().collect();
    if let Ok(name) = std::env::var(ALONE) {
        let target = targets.iter().find(|target| target.name == name);
        return run(target.expect("the name of a target"));
    }
    assert!(!targets.is_empty(), "no targets");
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(output) = alone(test, target.name) {
                failures
                    .lock()
                    .expect("no thread panics")
                    .push(format!("{}: {output}", target.name));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().expect("no thread panics");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs a test for one target and returns its output if it fails.
fn alone(test: &str, target: &str) -> Result<(), String> {
    let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
    command.args(["--exact", test, "--nocapture"]).env(ALONE, target);
    let output = command.output().map_err(|error| error.to_string())?;
    let [printed, errors] =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    // A test program succeeds if no test has the given name.
    if output.status.success() && printed.contains("1 passed") {
        return Ok(());
    }
    Err(format!("{}\n{printed}{errors}", output.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_fail_alone_are_named() {
        let target = |name| Target { name, run: |_| (), seeds: Vec::new };
        let targets = ["good", "bad", "worse"].map(target);
        let test = "testing::tests::targets_that_fail_alone_are_named";
        let run = |target: &Target| {
            assert!(std::env::var_os(ALONE).is_some(), "a separate process");
            assert_eq!(target.name, "good", "not this one");
        };
        if std::env::var_os(ALONE).is_some() {
            return each_alone(test, &targets, run);
        }
        each_alone(test, &targets[..1], run);
        let failure = |test, targets: &[Target]| {
            let outcome = std::panic::catch_unwind(|| each_alone(test, targets, run));
            *outcome.expect_err("it fails").downcast::<String>().expect("a text")
        };
        let all = failure(test, &targets);
        assert!(all.contains("bad: exit") && all.contains("worse: exit"), "{all}");
        assert!(!all.contains("good: ") && all.contains("not this one"), "{all}");
        assert!(failure("testing::tests::no_such_test", &targets[..1]).contains("good: exit"));
    }
}
