//! `worldwire uru age`.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value as Json;
use worldwire_core::nearest;
use worldwire_server::uru::admin::Request;
use worldwire_server::uru::config::FixedAge;

use super::account::ask;
use super::files::data_of;
use super::online::since;
use crate::cli::{Common, UruAge, UruShard};
use crate::command::administration::{print_lines, text};
use crate::input;
use crate::output::{Failure, complain, counted, print, printable, shown};

pub(crate) fn run(command: &UruAge, shard: &UruShard, common: &Common) -> Result<(), Failure> {
    match command {
        UruAge::List { all, running } => {
            let request = Request::Ages { all: *all, running: *running };
            let ages = ask(&shard.shard, request, Vec::new())?;
            if shard.json { print_lines(&ages) } else { print(&table(&ages)) }
        }
        UruAge::Add { filename, instance, name, user_name, description, no_check, another } => {
            if let (false, Some(problem)) = (*no_check, misnamed(filename, shard)?) {
                complain(filename, &format!("{problem} Use --no-check to add it anyway"));
                return Err(Failure::Input);
            }
            let age = FixedAge {
                filename: filename.clone(),
                instance_name: name.clone().unwrap_or_else(|| filename.clone()),
                user_name: user_name.clone().unwrap_or_default(),
                description: description.clone().unwrap_or_default(),
                instance: instance.clone().unwrap_or_default(),
            };
            let added = add(&shard.shard, age, *another, common)?;
            if shard.json { print_lines(&added) } else { Ok(()) }
        }
        UruAge::Import { file } => {
            let ages = static_ages(&input::read_text(file)?).map_err(|problem| {
                Failure::Run(printable(&format!("{}: {problem}", input::title(file))))
            })?;
            for age in ages {
                if let Some(problem) = misnamed(&age.filename, shard)? {
                    complain(&age.filename, &problem);
                }
                let added = add(&shard.shard, age, true, common)?;
                if shard.json {
                    print_lines(&added)?;
                }
            }
            Ok(())
        }
        UruAge::Remove { age } => {
            let removed = ask(&shard.shard, Request::RemoveAge { age: age.clone() }, Vec::new())?;
            for one in &removed {
                common.note(&title(one), "removed");
            }
            if shard.json { print_lines(&removed) } else { Ok(()) }
        }
    }
}

fn add(shard: &Path, age: FixedAge, another: bool, common: &Common) -> Result<Vec<Json>, Failure> {
    let added = ask(shard, Request::AddAge { age, another }, Vec::new())?;
    for one in &added {
        let done = if one["added"] == true { "added" } else { "exists already" };
        common.note(&title(one), done);
    }
    Ok(added)
}

/// Describes what is wrong with the name of a new age, if the shard has age files to compare it
/// with.
fn misnamed(filename: &str, shard: &UruShard) -> Result<Option<String>, Failure> {
    let folder = data_of(shard)?.join("ages");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let paths = paths.filter(|path| path.extension().is_some_and(|end| end == "age"));
    let names: Vec<String> =
        paths.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    if names.is_empty() || names.iter().any(|name| name == filename) {
        return Ok(None);
    }
    let folder = shown(&folder);
    Ok(Some(match nearest(filename, names.iter().map(String::as_str)) {
        Some(near) => format!("has no age file in {folder}; did you mean {near}?"),
        None => format!("has no age file in {folder}."),
    }))
}

/// `Kveer 68e219e0-ee25-4df0-b855-0435584e29e2 (K'veer)`.
fn title(age: &Json) -> String {
    let [filename, instance, name] = ["filename", "instance", "name"].map(|key| text(&age[key]));
    format!("{filename} {instance} ({name})")
}

/// The ages in dirtsand's `static_ages.ini`: a section for each instance.
fn static_ages(text: &str) -> Result<Vec<FixedAge>, String> {
    let mut ages: Vec<FixedAge> = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        let failed = |problem: &str| format!("line {}: {problem}", index + 1);
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(instance) = line.strip_prefix('[') {
            let instance = instance.strip_suffix(']').ok_or_else(|| failed("needs a closing ]"))?;
            ages.push(FixedAge { instance: instance.trim().to_owned(), ..FixedAge::default() });
            continue;
        }
        let (name, value) =
            line.split_once('=').ok_or_else(|| failed("must have the form NAME = VALUE"))?;
        let age = ages.last_mut().ok_or_else(|| failed("comes before the first [INSTANCE]"))?;
        let value = value.trim().to_owned();
        match name.trim().to_ascii_lowercase().as_str() {
            "filename" => age.filename = value,
            "instance" => age.instance_name = value,
            "username" => age.user_name = value,
            "description" => age.description = value,
            name => return Err(failed(&format!("unknown setting {name}"))),
        }
    }
    match ages.iter().find(|age| age.filename.is_empty()) {
        Some(age) => Err(format!("[{}]: needs Filename = NAME", age.instance)),
        None if ages.is_empty() => Err("contains no ages".to_owned()),
        None => Ok(ages),
    }
}

fn table(ages: &[Json]) -> String {
    let mut out = String::new();
    for age in ages {
        let [filename, instance, name] =
            ["filename", "instance", "name"].map(|key| text(&age[key]));
        let mut marks = Vec::new();
        marks.extend((age["public"] == true).then(|| "public".to_owned()));
        let owners = age["owners"].as_u64().unwrap_or_default();
        marks.extend((owners > 0).then(|| counted(owners, "owner")));
        if let Some(begun) = age["running"]["since"].as_u64() {
            marks.push(format!("running since {}", since(begun)));
        }
        let marks =
            if marks.is_empty() { String::new() } else { format!("  ({})", marks.join(", ")) };
        let _ = writeln!(out, "{instance}  {filename}  {name}{marks}");
        for player in age["running"]["players"].as_array().into_iter().flatten() {
            let came = player["since"].as_u64().map(since).unwrap_or_default();
            let _ = writeln!(out, "  {}  {}  since {came}", player["id"], text(&player["name"]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_ages_of_dirtsand_are_read() {
        let file = "# ours\n[3f2a7c10-5b1d-4e7a-9c22-0d6f3b8a4411]\nInstance = Fernbrook Commons\n\
                    Filename = Fernbrook\nUserName = The common\n\n\
                    [5c4f3a62-0a0c-4d0e-9d7b-6f8e2b1a7c33]\nFilename=city\n";
        let ages = static_ages(file).unwrap();
        assert_eq!(ages.len(), 2);
        assert_eq!(ages[0].instance, "3f2a7c10-5b1d-4e7a-9c22-0d6f3b8a4411");
        assert_eq!(ages[0].instance_name, "Fernbrook Commons");
        assert_eq!((&*ages[0].filename, &*ages[0].user_name), ("Fernbrook", "The common"));
        assert_eq!((&*ages[1].filename, &*ages[1].instance_name), ("city", ""));
        for (file, wanted) in [
            ("", "contains no ages"),
            ("Filename = x", "line 1: comes before the first [INSTANCE]"),
            ("[x\n", "line 1: needs a closing ]"),
            ("[x]\nFilename\n", "line 2: must have the form NAME = VALUE"),
            ("[x]\nFile = y\n", "line 2: unknown setting file"),
            ("[x]\nInstance = y\n", "[x]: needs Filename = NAME"),
        ] {
            assert_eq!(static_ages(file).unwrap_err(), wanted);
        }
    }
}
