//! `worldwire uru vault`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use worldwire_core::Record as _;
use worldwire_server::uru::admin::Request;
use worldwire_server::uru::migration;
use worldwire_server::uru::vault::Dump;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::vault::VaultNode;

use super::account::{answer, ask, print_lines};
use super::fields::fields_of;
use super::sdl::load;
use crate::cli::{Common, OtherServer, Target, UruVault};
use crate::command::system;
use crate::input;
use crate::output::{Failure, Output, complain, indented, print, printable, write_secret};

pub(crate) fn run(command: &UruVault, common: &Common) -> Result<(), Failure> {
    match command {
        UruVault::Tree { node, depth, shard } => {
            let request = Request::Tree { node: node.clone(), depth: *depth };
            let tree = ask(&shard.shard, request, Vec::new())?;
            if shard.json { print_lines(&tree) } else { print(&drawn(&tree)) }
        }
        UruVault::Show { node, shard } => {
            let shown = ask(&shard.shard, Request::Show { node: *node }, Vec::new())?;
            if shard.json { print_lines(&shown) } else { print(&fields_shown(&shown)) }
        }
        UruVault::Find { fields, shard } => {
            let fields = fields_of(fields)?;
            print_lines(&ask(&shard.shard, Request::Find { fields }, Vec::new())?)
        }
        UruVault::Set { node, fields, shard } => {
            let fields = fields_of(fields)?;
            print_lines(&ask(&shard.shard, Request::Set { node: *node, fields }, Vec::new())?)
        }
        UruVault::Check { shard } => {
            let findings = ask(&shard.shard, Request::Check, Vec::new())?;
            let problems = findings.iter().filter(|finding| finding["problem"] == true).count();
            if shard.json {
                print_lines(&findings)?;
            } else {
                print(&report(&findings, problems))?;
            }
            if problems == 0 { Ok(()) } else { Err(Failure::Input) }
        }
        UruVault::Export { to: None, shard, target } => {
            // Check that the file can be written before putting load on the shard.
            let mut output = Output::open(target)?;
            for line in ask(shard, Request::Export { passwords: false }, Vec::new())? {
                output.write(line.as_str().unwrap_or_default().as_bytes())?;
                output.write(b"\n")?;
            }
            output.finish()
        }
        UruVault::Export { to: Some(to), shard, target } => move_out(shard, *to, target),
        UruVault::Import { file, from, sdl, replace, shard } => {
            let lines = match from {
                None => input::read_text(file)?.lines().map(str::to_owned).collect::<Vec<_>>(),
                Some(from) => {
                    let own = own_descriptors(&shard.shard);
                    let descriptors = load(if sdl.is_empty() { &own } else { sdl }, common)?;
                    moved(file, *from, &descriptors)?
                }
            };
            let answer = answer(&shard.shard, Request::Import { replace: *replace }, &lines)?;
            let done = answer.map_err(|problem| {
                // Blame the file, unless it is valid.
                match Dump::read(lines.iter().map(String::as_str)) {
                    Err(error) => complain(&input::title(file), &error.to_string()),
                    Ok(_) => complain(&shard.shard.to_string_lossy(), &problem),
                }
                Failure::Input
            })?;
            let nodes = done.first().map_or(&Json::Null, |done| &done["nodes"]);
            let plural = if *nodes == 1 { "" } else { "s" };
            common.note(&input::title(file), &format!("{nodes} node{plural} imported"));
            if shard.json { print_lines(&done) } else { Ok(()) }
        }
    }
}

/// The descriptors of a shard, if it has any.
fn own_descriptors(shard: &Path) -> Vec<PathBuf> {
    let folder = shard.join("data").join("secure").join("SDL");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = files.map(|file| file.path());
    files
        .filter(|file| file.extension().is_some_and(|end| end.eq_ignore_ascii_case("sdl")))
        .collect()
}

/// Converts the lines of another server's vault. Data that cannot be converted is reported.
fn moved(
    file: &Path,
    from: OtherServer,
    descriptors: &Descriptors,
) -> Result<Vec<String>, Failure> {
    let house = match from {
        OtherServer::Dirtsand => migration::import_dirtsand(&input::read_text(file)?, descriptors),
        OtherServer::Moulars => {
            system::runtime()?.block_on(migration::import_moulars(file, descriptors))
        }
    };
    let title = input::title(file);
    let house = house.map_err(|error| Failure::Run(format!("{title}: {error}")))?;
    tell(&title, house.skipped);
    Ok(house.lines)
}

/// Writes the vault for another server. Data that it cannot store is reported.
fn move_out(shard: &Path, to: OtherServer, target: &Target) -> Result<(), Failure> {
    let failed = |problem: String| Failure::Run(problem);
    let lines = ask(shard, Request::Export { passwords: true }, Vec::new())?;
    let dump = Dump::read(lines.iter().filter_map(Json::as_str));
    let dump = dump.map_err(|error| failed(error.to_string()))?;
    let (bytes, left) = match to {
        OtherServer::Dirtsand => {
            let departure = migration::export_dirtsand(&dump);
            let departure = departure.map_err(|error| failed(error.to_string()))?;
            (departure.statements.into_bytes(), departure.skipped)
        }
        OtherServer::Moulars => {
            // The file must be private.
            let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
            let file = folder.path().join("vault.db");
            let left = system::runtime()?.block_on(migration::export_moulars(&dump, &file));
            let left = left.map_err(|error| failed(error.to_string()))?;
            (input::read(&file)?, left)
        }
    };
    write_secret(target, &bytes)?;
    tell(&shard.to_string_lossy(), left);
    Ok(())
}

fn tell(title: &str, left: Vec<String>) {
    for left in left {
        complain(title, &format!("not converted: {}", printable(&left)));
    }
}

/// The lines of a tree as text.
pub(crate) fn drawn(tree: &[Json]) -> String {
    let mut out = String::new();
    for line in tree {
        let text = |value: &Json| printable(value.as_str().unwrap_or_default());
        let indent = indented(line["depth"].as_u64().unwrap_or_default());
        let _ = write!(out, "{indent}{} {}", line["id"], text(&line["type"]));
        let title = text(&line["title"]);
        if !title.is_empty() {
            let _ = write!(out, " {title}");
        }
        let again = if line["repeated"] == true { " (see above)" } else { "" };
        let _ = writeln!(out, "{again}");
    }
    out
}

fn fields_shown(shown: &[Json]) -> String {
    let mut out = String::new();
    for node in shown {
        for field in VaultNode::fields() {
            let name = field.name;
            let _ = match &node[name] {
                Json::Null => Ok(()),
                Json::String(text) => writeln!(out, "{name}: {}", printable(text)),
                value => writeln!(out, "{name}: {value}"),
            };
        }
    }
    out
}

fn report(findings: &[Json], problems: usize) -> String {
    let mut out = String::new();
    for finding in findings {
        let kind = if finding["problem"] == true { "problem" } else { "note" };
        let text = finding["text"].as_str().unwrap_or_default();
        let _ = writeln!(out, "{kind}: {} {}", finding["id"], printable(text));
    }
    let plural = if problems == 1 { "" } else { "s" };
    let _ = writeln!(out, "{problems} problem{plural}");
    out
}
