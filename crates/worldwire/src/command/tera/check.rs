//! `worldwire tera def check`.

use std::fmt::Write as _;
use std::mem::take;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use serde_json::json;
use worldwire_tera::schema::set::Update;
use worldwire_tera::schema::{ParseOptions, Problem, Set};

use super::folder::{self, Texts};
use crate::cli::Common;
use crate::output::{Failure, complain, print, say};

/// Editors write a file in several steps; changes within this time count as one.
const SETTLED: Duration = Duration::from_millis(50);

pub(super) fn run(
    paths: &[PathBuf],
    options: ParseOptions,
    json: bool,
    watch: bool,
    common: &Common,
) -> Result<(), Failure> {
    // Start watching before the first check, so that no change is missed in between.
    let changes = if watch { Some(Changes::of(paths)?) } else { None };
    let mut texts = folder::texts(paths, common)?;
    let mut set = Set::load(take(&mut texts.files), options);
    let clean = tell(&set, &texts, json, common)?;
    let Some(changes) = changes else {
        return if clean { Ok(()) } else { Err(Failure::Input) };
    };
    loop {
        changes.wait()?;
        // A file can vanish after its directory was listed. Its removal is itself a change, so
        // another check follows soon.
        let mut texts = match folder::texts(paths, common) {
            Ok(texts) => texts,
            Err(Failure::Run(message)) => {
                complain("--watch", &message);
                continue;
            }
            Err(_) => continue,
        };
        let Update { read, compiled, removed } = set.update(take(&mut texts.files));
        if read + removed == 0 {
            continue;
        }
        if !common.quiet {
            say(format_args!("{read} read, {compiled} compiled, {removed} removed"));
        }
        tell(&set, &texts, json, common)?;
    }
}

/// Reports problems in files and definitions, and a summary. Returns true if there are no errors.
fn tell(set: &Set, texts: &Texts, json: bool, common: &Common) -> Result<bool, Failure> {
    let mut out = String::new();
    let of_set: Vec<Problem> = texts.places.problems(set).collect();
    let all = || texts.problems.iter().chain(&of_set);
    let errors = all().filter(|problem| problem.is_error()).count();
    if json {
        for problem in all() {
            let severity = if problem.is_error() { "error" } else { "warning" };
            let Problem { kind, diagnostic } = problem;
            let line = json!({
                "file": diagnostic.file(), "line": diagnostic.line(),
                "column": diagnostic.column(), "severity": severity,
                "kind": kind.name(), "message": diagnostic.message(),
                "help": diagnostic.help_text(),
            });
            let _ = writeln!(out, "{line}");
        }
        print(&out)?;
        return Ok(errors == 0);
    }
    texts.tell(common);
    folder::tell(&of_set, common.quiet);
    let warnings = all().count() - errors;
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let (files, good, names) = (set.files(), set.definitions().count(), set.names().count());
    let dialect = match set.dialect() {
        Some(one) => format!("dialect {one}"),
        None if files == 0 => "no dialect".to_owned(),
        None => "several dialects".to_owned(),
    };
    let _ = writeln!(
        out,
        "{files} file{}, {good} definition{} of {names} message{}, {dialect}: {warnings} warning{}, \
         {errors} error{}",
        plural(files),
        plural(good),
        plural(names),
        plural(warnings),
        plural(errors)
    );
    print(&out)?;
    Ok(errors == 0)
}

/// Watches files and directories for changes.
struct Changes {
    _watcher: notify::RecommendedWatcher,
    events: mpsc::Receiver<notify::Result<notify::Event>>,
}

impl Changes {
    fn of(paths: &[PathBuf]) -> Result<Self, Failure> {
        let (send, events) = mpsc::channel();
        let failed = |error: notify::Error| Failure::Run(format!("--watch: {error}"));
        let mut watcher = notify::recommended_watcher(send).map_err(failed)?;
        for path in paths {
            // Editors replace files, which only a watch on the directory notices.
            let folder = if path.is_dir() { Some(path.as_path()) } else { path.parent() };
            let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or_else(|| std::path::Path::new("."));
            watcher.watch(folder, RecursiveMode::Recursive).map_err(failed)?;
        }
        Ok(Self { _watcher: watcher, events })
    }

    /// Waits for a change and for others that follow it closely.
    fn wait(&self) -> Result<(), Failure> {
        let stopped = |_| Failure::Run("--watch: the system no longer reports changes".to_owned());
        loop {
            let event = self.events.recv().map_err(stopped)?;
            let event = event.map_err(|error| Failure::Run(format!("--watch: {error}")))?;
            // Read access is not a change.
            if !event.kind.is_access() {
                break;
            }
        }
        while self.events.recv_timeout(SETTLED).is_ok() {}
        Ok(())
    }
}
