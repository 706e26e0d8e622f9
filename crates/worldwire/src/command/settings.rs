//! `worldwire settings`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use worldwire_capture::CaptureReader;
use worldwire_core::Limits;

use crate::cli::{Common, SettingsCommand, SettingsShow};
use crate::input;
use crate::output::{Failure, complain, print, printable, shown};
use crate::settings::{FILE, Setting, user_file};

pub(crate) fn run(arguments: &SettingsCommand, common: &Common) -> Result<(), Failure> {
    let SettingsCommand::Show(SettingsShow { file, json }) = arguments;
    if let Some(file) = file {
        check_capture(file)?;
    }
    match json {
        true => print(&format!("{}\n", as_json(common))),
        false => print(&as_text(common)),
    }
}

/// Refuses a file without conversations, since profiles are selected by conversation.
fn check_capture(file: &Path) -> Result<(), Failure> {
    match CaptureReader::new(input::open(file)?, &Limits::DEFAULT) {
        Ok(_) => Ok(()),
        Err(error) => {
            complain(&shown(file), &error.to_string());
            Err(Failure::Input)
        }
    }
}

/// The settings files, whether they exist or not.
fn files() -> Vec<PathBuf> {
    [Some(PathBuf::from(FILE)), user_file()].into_iter().flatten().collect()
}

/// Whether settings files are in use.
fn is_read(file: &Path, common: &Common) -> bool {
    !common.no_settings && file.is_file()
}

fn as_text(common: &Common) -> String {
    let mut rows: Vec<[String; 3]> = Vec::new();
    for file in files() {
        let state = match (is_read(&file, common), common.no_settings) {
            (true, _) => "read",
            (false, true) => "ignored",
            (false, false) => "not found",
        };
        rows.push(["file".to_owned(), shown(&file), state.to_owned()]);
    }
    for profile in &common.settings.profiles {
        rows.push(["profile".to_owned(), printable(profile), String::new()]);
    }
    for setting in Setting::ALL {
        let name = setting.name();
        match common.settings.of(setting) {
            None => rows.push([name.to_owned(), "-".to_owned(), "default".to_owned()]),
            Some(values) => rows.extend(values.iter().map(|(value, origin)| {
                [name.to_owned(), printable(&value.to_string_lossy()), origin.to_string()]
            })),
        }
    }
    for rule in &common.settings.colors {
        let (filter, color) = (printable(&rule.filter), rule.color);
        rows.push(["color-rule".to_owned(), filter, color.to_string()]);
    }
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        // One long path must not push all sources out of sight.
        widths.max().unwrap_or(0).min(48)
    };
    let (first, second) = (width(0), width(1));
    let mut out = String::new();
    let mut last = "";
    for [name, value, source] in &rows {
        let name = if name == last {
            ""
        } else {
            last = name;
            name.as_str()
        };
        let line = format!("{name:first$}  {value:second$}  {source}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

fn as_json(common: &Common) -> Json {
    let files: Vec<Json> = files()
        .iter()
        .map(|file| json!({ "path": file.to_string_lossy(), "read": is_read(file, common) }))
        .collect();
    let settings: Vec<Json> = Setting::ALL
        .into_iter()
        .map(|setting| {
            let values = common.settings.of(setting).into_iter().flatten();
            let values: Vec<Json> = values
                .map(|(value, origin)| {
                    json!({ "value": value.to_string_lossy(), "source": origin.to_string() })
                })
                .collect();
            json!({ "name": setting.name(), "values": values })
        })
        .collect();
    let rules: Vec<Json> = common
        .settings
        .colors
        .iter()
        .map(|rule| json!({ "filter": rule.filter, "color": rule.color.to_string() }))
        .collect();
    json!({
        "files": files,
        "profiles": common.settings.profiles,
        "settings": settings,
        "color_rules": rules,
    })
}
