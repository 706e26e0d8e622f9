//! Makes settings the defaults of options.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::output::Failure;
use crate::settings::{Setting, Settings, Sources, traffic};

/// The settings for a command line.
///
/// # Errors
/// If a settings file or an environment variable contains errors.
pub(super) fn settings(matches: &ArgMatches) -> Result<Settings, Failure> {
    if matches.get_flag("no_settings") {
        return Ok(Settings::default());
    }
    let profile = matches.get_one::<String>("profile").map(String::as_str);
    let sources = Sources::read(profile)?;
    let (path, arguments) = chosen(matches);
    let traffic = match sources.needs_traffic() && reads_traffic(&path) {
        true => traffic(arguments),
        false => Vec::new(),
    };
    sources.select(&traffic)
}

/// Sets the defaults of the chosen command.
pub(super) fn apply(command: Command, matches: &ArgMatches, settings: &Settings) -> Command {
    let (path, _) = chosen(matches);
    below(command, &path, 0, settings)
}

fn below(mut command: Command, path: &[String], depth: usize, settings: &Settings) -> Command {
    for setting in Setting::ALL {
        let is_known = command.get_arguments().any(|argument| argument.get_id() == setting.name());
        if let Some(values) = settings.of(setting).filter(|_| is_known && takes(path, setting)) {
            let values: Vec<_> = values.iter().map(|(value, _)| value.clone()).collect();
            command = command.mut_arg(setting.name(), |argument| argument.default_values(values));
        }
    }
    match path.get(depth) {
        Some(name) => command.mut_subcommand(name, |inner| below(inner, path, depth + 1, settings)),
        None => command,
    }
}

/// Remembers which options got their values from settings.
///
/// # Errors
/// If such a value is the path of a file that does not exist.
pub(super) fn mark_used(matches: &ArgMatches, settings: &mut Settings) -> Result<(), Failure> {
    let (path, arguments) = chosen(matches);
    for setting in Setting::ALL {
        let is_known = arguments.try_contains_id(setting.name()).is_ok();
        if is_known
            && takes(&path, setting)
            && settings.of(setting).is_some()
            && arguments.value_source(setting.name()) == Some(ValueSource::DefaultValue)
        {
            settings.check_paths(setting)?;
            settings.set_used(setting);
        }
    }
    Ok(())
}

/// The names of the chosen command, and its arguments.
fn chosen(matches: &ArgMatches) -> (Vec<String>, &ArgMatches) {
    let (mut path, mut inner) = (Vec::new(), matches);
    while let Some((name, next)) = inner.subcommand() {
        path.push(name.to_owned());
        inner = next;
    }
    (path, inner)
}

/// Whether a command reads captures or single messages.
fn reads_traffic(path: &[String]) -> bool {
    const OTHERS: [&str; 12] = [
        "client",
        "codegen",
        "completions",
        "conformance",
        "ki",
        "mods",
        "mxo",
        "proxy",
        "serve",
        "settings",
        "tera",
        "uru",
    ];
    let first = path.first().map_or("", String::as_str);
    first == "settings" || !OTHERS.contains(&first) || path == ["mxo", "views"]
}

/// Whether a setting is the default of the command's option with that name. In other commands,
/// options with these names have different meanings.
fn takes(path: &[String], setting: Setting) -> bool {
    if !setting.is_of_reading() {
        return true;
    }
    let is_definition = matches!(setting, Setting::Data | Setting::Revision | Setting::Patch);
    match path.first().map_or("", String::as_str) {
        "replay" => setting != Setting::As,
        "proxy" | "mods" => is_definition,
        _ => reads_traffic(path),
    }
}
