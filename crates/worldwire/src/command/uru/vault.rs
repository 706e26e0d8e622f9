//! `worldwire uru vault`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use worldwire_core::Record as _;
use worldwire_server::store::CopiedRows;
use worldwire_server::store::lock::FolderLock;
use worldwire_server::store::seal::KEY_FILE;
use worldwire_server::uru::admin::{Request, copy_database};
use worldwire_server::uru::migration::{self, Import};
use worldwire_server::uru::vault::{AgeNames, Dump};
use worldwire_server::uru::{CONFIG, SQLITE_FILE, ShardConfig};
use worldwire_uru::schema::Descriptors;
use worldwire_uru::vault::{NodeType, VaultNode, field_names};

use super::account::{answer, ask};
use super::fields::fields_of;
use super::sdl::load;
use crate::cli::{Common, OtherServer, Target, UruShard, UruVault};
use crate::command::administration::print_lines;
use crate::command::system;
use crate::input;
use crate::output::{Failure, Output, complain, counted, print, printable, write_secret};

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
        UruVault::Check { details, shard } => {
            let findings = ask(&shard.shard, Request::Check, Vec::new())?;
            let problems = findings.iter().filter(|finding| finding["problem"] == true).count();
            if shard.json {
                print_lines(&findings)?;
            } else {
                print(&report(&findings, problems, *details))?;
            }
            if problems == 0 { Ok(()) } else { Err(Failure::Input) }
        }
        UruVault::Prune { apply, shard } => {
            let pruned = ask(&shard.shard, Request::Prune { dry_run: !apply }, Vec::new())?;
            if shard.json { print_lines(&pruned) } else { print(&pruned_shown(&pruned)) }
        }
        UruVault::Copy { to, shard } => copy(to, shard, common),
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
        UruVault::Import { file, from: None, replace, shard, .. } => {
            let lines = input::read_text(file)?.lines().map(str::to_owned).collect::<Vec<_>>();
            let done = import(file, &lines, *replace, shard)?;
            let nodes = done.first().map_or(&Json::Null, |done| &done["nodes"]);
            let nodes = counted(nodes.as_u64().unwrap_or_default(), "node");
            common.note(&input::title(file), &format!("{nodes} imported"));
            if shard.json { print_lines(&done) } else { Ok(()) }
        }
        UruVault::Import { file, from: Some(from), sdl, replace, shard } => {
            let own = own_descriptors(&shard.shard);
            let descriptors = load(if sdl.is_empty() { &own } else { sdl }, common)?;
            move_in(file, *from, &descriptors, *replace, shard, common)
        }
    }
}

/// Copies the database of a stopped shard.
fn copy(to: &str, shard: &UruShard, common: &Common) -> Result<(), Failure> {
    let copied = system::runtime()?.block_on(copy_database(&shard.shard, to));
    let copied = copied.map_err(|error| Failure::Run(printable(&error.to_string())))?;
    let CopiedRows { accounts, characters: players, nodes, refs, scores } = copied;
    let [counted_accounts, counted_players, counted_nodes, counted_refs, counted_scores] = [
        (accounts, "account"),
        (players, "player"),
        (nodes, "node"),
        (refs, "reference"),
        (scores, "score"),
    ]
    .map(|(count, what)| counted(count, what));
    let title = shard.shard.to_string_lossy();
    common.note(
        &title,
        &format!(
            "{counted_accounts}, {counted_players}, {counted_nodes}, {counted_refs} and {counted_scores} copied \
             and compared"
        ),
    );
    let next = match to.contains("://") {
        true => format!("to use the new database, set database in {CONFIG}, and keep server.key"),
        false => format!(
            "to use the new database, remove database from {CONFIG}, and move the file to {}; keep server.key",
            shard.shard.join(SQLITE_FILE).display()
        ),
    };
    common.note(&title, &next);
    if shard.json {
        return print_lines(&[json!({
            "accounts": accounts, "players": players, "nodes": nodes, "refs": refs, "scores": scores,
        })]);
    }
    Ok(())
}

/// Imports the lines of a file into a shard.
fn import(
    file: &Path,
    lines: &[String],
    replace: bool,
    shard: &UruShard,
) -> Result<Vec<Json>, Failure> {
    let answer = answer(&shard.shard, Request::Import { replace }, lines)?;
    answer.map_err(|problem| {
        // Report the problem as the file's, unless the file is valid.
        match Dump::read(lines.iter().map(String::as_str)) {
            Err(error) => complain(&input::title(file), &error.to_string()),
            Ok(_) => complain(&shard.shard.to_string_lossy(), &problem),
        }
        Failure::Input
    })
}

/// Imports another server's vault into a stopped shard and sets the shard's own ages.
fn move_in(
    file: &Path,
    from: OtherServer,
    descriptors: &Descriptors,
    replace: bool,
    shard: &UruShard,
    common: &Common,
) -> Result<(), Failure> {
    let title = input::title(file);
    let folder = &shard.shard;
    let failed = |problem: String| Failure::Run(format!("{}: {problem}", folder.display()));
    // A running shard would keep its own ages until it is restarted.
    if folder.join(KEY_FILE).exists() {
        let lock = FolderLock::take(folder).map_err(|error| failed(error.to_string()))?;
        lock.ok_or_else(|| {
            failed("stop the shard first: the import changes its shard.toml".to_owned())
        })?;
    }
    let Import { lines, skipped, counts, ages } = moved(file, from, descriptors)?;
    let config = folder.join(CONFIG);
    let text = match std::fs::read_to_string(&config) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| failed(format!("{CONFIG}: {error}")))?,
    };
    let adopted = ShardConfig::adopt_ages(&text, &ages);
    let adopted = adopted.map_err(|error| failed(format!("{CONFIG}: {error}")))?;
    tell(&title, skipped);
    import(file, &lines, replace, shard)?;
    let target = Target { output: Some(config), force: true };
    write_secret(&target, adopted.as_bytes())?;

    let [accounts, players, nodes] =
        [(counts.accounts, "account"), (counts.players, "player"), (counts.nodes, "node")]
            .map(|(count, what)| counted(count, what));
    let [scores, states] = [(counts.scores, "score"), (counts.object_states, "object state")]
        .map(|(count, what)| counted(count, what));
    let settings = counted(counts.settings, "shard-wide setting");
    let done =
        format!("{accounts}, {players}, {nodes}, {scores}, {states} and {settings} imported");
    common.note(&title, &done);
    let checked = counted(counts.checked, "state");
    if counts.unchecked.is_empty() {
        common.note(&title, &format!("{checked} checked with their descriptors"));
    } else {
        let missing: Vec<_> = counts.unchecked.keys().map(|name| printable(name)).collect();
        let states = counted(counts.unchecked.values().sum::<usize>(), "state");
        let problem = format!(
            "{states} not checked, because descriptors are missing: {}; supply them with --sdl \
             ({checked} checked)",
            missing.join(", ")
        );
        complain(&title, &problem);
    }
    let place = |age: &Option<AgeNames>| match age {
        Some(AgeNames { instance_name, user_name, .. }) => {
            printable(format!("{user_name} {instance_name}").trim())
        }
        None => "none, so the next start creates one".to_owned(),
    };
    let city = place(&ages.city.clone().map(|city| city.names));
    let hood = place(&ages.neighbourhood);
    let fixed = counted(ages.fixed.len(), "other public age");
    common.note(
        &title,
        &format!("set [ages] in {CONFIG}: city: {city}; neighbourhood: {hood}; {fixed}"),
    );
    let (keys, format) = match from {
        OtherServer::Dirtsand => ("dirtsand.ini", "dirtsand"),
        OtherServer::Moulars => ("moulars.toml", "moulars"),
    };
    let convert = format!(
        "worldwire uru keys convert {keys} --to toml --force -o {}",
        folder.join("keys.toml").display()
    );
    common.note(
        &title,
        &format!(
            "0 keys imported, because they are not in this file. Players' clients have the {format} \
             server's keys in their server.ini and cannot connect to a server with other keys: run \
             `{convert}`"
        ),
    );
    if shard.json {
        let mut done = serde_json::to_value(&counts).map_err(|error| failed(error.to_string()))?;
        done["keys"] = 0.into();
        return print_lines(&[done]);
    }
    Ok(())
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

/// Converts another server's vault.
fn moved(file: &Path, from: OtherServer, descriptors: &Descriptors) -> Result<Import, Failure> {
    let house = match from {
        OtherServer::Dirtsand => migration::import_dirtsand(&input::read_text(file)?, descriptors),
        OtherServer::Moulars => {
            // The database reports the same error for a damaged file and for one that cannot be
            // opened.
            drop(input::open(file)?);
            system::runtime()?.block_on(migration::import_moulars(file, descriptors))
        }
    };
    house.map_err(|error| {
        complain(&input::title(file), &error.to_string());
        Failure::Input
    })
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
            // The file must not be readable by other users.
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

/// The indentation of a line in a tree. Beyond some depth, a number replaces the spaces, so that
/// the output for a chain of nodes does not grow quadratically.
fn indented(depth: u64) -> String {
    const DEEPEST: u64 = 40;
    match usize::try_from(depth) {
        Ok(levels) if depth <= DEEPEST => "  ".repeat(levels),
        _ => format!("{}({depth}) ", indented(DEEPEST)),
    }
}

fn fields_shown(shown: &[Json]) -> String {
    let mut out = String::new();
    for node in shown {
        let kind = NodeType::NAMES.number(node["NodeType"].as_str().unwrap_or_default());
        let kind = kind.and_then(|kind| u32::try_from(kind).ok()).map(NodeType);
        for field in VaultNode::fields() {
            // After each field, the same field follows under the game's name.
            let own = field_names(kind).iter().find(|(_, own)| *own == field.name);
            for name in [Some(field.name), own.map(|(name, _)| *name)].into_iter().flatten() {
                let _ = match &node[name] {
                    Json::Null => Ok(()),
                    Json::String(text) => writeln!(out, "{name}: {}", printable(text)),
                    value => writeln!(out, "{name}: {value}"),
                };
            }
        }
    }
    out
}

/// The findings. Without `details`, findings of one kind are summarised in one line.
fn report(findings: &[Json], problems: usize, details: bool) -> String {
    let mut out = String::new();
    let mut kinds: Vec<(&Json, &Json, usize)> = Vec::new();
    for finding in findings {
        match kinds.iter_mut().find(|(_, kind, _)| !details && **kind == finding["kind"]) {
            Some((_, _, more)) => *more += 1,
            None => kinds.push((finding, &finding["kind"], 0)),
        }
    }
    for (finding, _, more) in kinds {
        let kind = if finding["problem"] == true { "problem" } else { "note" };
        let text = printable(finding["text"].as_str().unwrap_or_default());
        let more = if more == 0 { String::new() } else { format!(" ({more} more like this)") };
        let _ = writeln!(out, "{kind}: {} {text}{more}", finding["id"]);
    }
    let _ = writeln!(out, "{}", counted(problems, "problem"));
    out
}

fn pruned_shown(pruned: &[Json]) -> String {
    let mut out = String::new();
    for one in pruned {
        for (kind, count) in one["types"].as_object().into_iter().flatten() {
            let _ = writeln!(out, "{kind}: {count}");
        }
        let [nodes, kept] = ["nodes", "kept"].map(|name| one[name].as_u64().unwrap_or_default());
        let done = match (one["dryRun"] == true, nodes == 0) {
            (true, false) => "would be removed; --apply removes them",
            (true, true) => "would be removed",
            (false, _) => "removed",
        };
        let _ = writeln!(out, "{} {done}", counted(nodes, "node"));
        if kept != 0 {
            let kept = counted(kept, "unreachable node");
            let why = "recent or still in use; `worldwire uru vault check --details` gives the \
                       reason for each";
            let _ = writeln!(out, "{kept} kept: {why}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_lines_are_not_long() {
        assert_eq!(indented(0), "");
        assert_eq!(indented(3), "      ");
        assert_eq!(indented(40).len(), 80);
        assert_eq!(indented(u64::MAX), format!("{}(18446744073709551615) ", " ".repeat(80)));
    }
}
