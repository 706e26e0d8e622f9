//! `worldwire mods`, and the mods of `worldwire proxy tera`. Both run under Node.js.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli::{Common, Data, Mods, ModsCheck, ModsCommand};
use crate::output::{Failure, reason, shown};

/// The variable that names a directory with another version of the package.
const VARIABLE: &str = "WORLDWIRE_MODS";
/// The oldest version of Node.js that can run the package.
const OLDEST_NODE: u32 = 18;

pub(crate) fn run(arguments: &Mods, _: &Common) -> Result<(), Failure> {
    match &arguments.command {
        ModsCommand::Check(check) => self::check(check),
    }
}

fn check(arguments: &ModsCheck) -> Result<(), Failure> {
    let ModsCheck { folder, data, json } = arguments;
    let unpacked = tempfile::tempdir();
    let unpacked = unpacked.map_err(|error| Failure::io(&std::env::temp_dir(), &error))?;
    let mut words = vec![entry(unpacked.path())?.into_os_string(), "check".into()];
    words.extend(options(folder, data)?);
    if *json {
        words.push("--json".into());
    }
    // However this program ends, its end of the pipe is closed, and the check ends, too.
    words.push("--until-eof".into());
    let failed = |error| Failure::Run(format!("node: {}", reason(&error)));
    let child = Command::new("node").args(words).stdin(Stdio::piped()).spawn();
    let mut child = child.map_err(failed)?;
    // `wait` would close the pipe.
    let open = child.stdin.take();
    let status = child.wait().map_err(failed)?;
    drop(open);
    match status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(Failure::Input),
        _ => Err(Failure::Run(format!("the mods could not be checked: node exited with {status}"))),
    }
}

/// The command of the hook that runs mods. The package is unpacked to a directory in `place`.
pub(crate) fn hook(folder: &Path, data: &Data, place: &Path) -> Result<String, Failure> {
    let entry = entry(&place.join("worldwire-mods"))?;
    let mut words: Vec<OsString> =
        vec!["node".into(), entry.into_os_string(), "--connect".into(), "stdin".into()];
    words.extend(options(folder, data)?);
    words.extend(["--blocked".into(), blocked(place)?.into_os_string()]);
    let mut command = String::new();
    for word in words {
        let text = word.to_str().ok_or_else(|| {
            Failure::Run(format!("{}: not UTF-8; use another path", shown(Path::new(&word))))
        })?;
        if !command.is_empty() {
            command.push(' ');
        }
        push_quoted(text, &mut command);
    }
    // `exec` replaces the shell, so the process ends when the mods end.
    Ok(if cfg!(windows) { command } else { format!("exec {command}") })
}

/// The file to which the hook writes mods that block or exit while they start. It is valid for one
/// run.
fn blocked(place: &Path) -> Result<PathBuf, Failure> {
    let file = place.join("worldwire-mods.blocked");
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::io(&file, &error)),
        _ => Ok(file),
    }
}

/// The file to run with `node`. Checks that `node` is installed.
fn entry(place: &Path) -> Result<PathBuf, Failure> {
    let wanted = format!("mods need Node.js {OLDEST_NODE} or later, installed as `node`");
    let output = Command::new("node").arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| Failure::Run(format!("{wanted}: {}", reason(&error))))?;
    let version = String::from_utf8_lossy(&output.stdout);
    let major = version.trim().trim_start_matches('v').split('.').next();
    if major.and_then(|major| major.parse().ok()).is_none_or(|major: u32| major < OLDEST_NODE) {
        return Err(Failure::Run(format!("{wanted}; found {}", version.trim())));
    }
    match std::env::var_os(VARIABLE) {
        Some(package) => Ok(Path::new(&package).join("bin/worldwire-mods.js")),
        None => worldwire_mods::unpack(place).map_err(|error| Failure::io(place, &error)),
    }
}

/// The options that the hook and `mods check` share.
fn options(folder: &Path, data: &Data) -> Result<Vec<OsString>, Failure> {
    let metadata = std::fs::metadata(folder).map_err(|error| Failure::io(folder, &error))?;
    if !metadata.is_dir() {
        return Err(Failure::Run(format!("{}: not a directory", shown(folder))));
    }
    let mut options = vec!["--mods".into(), folder.as_os_str().to_owned()];
    for path in &data.paths {
        options.extend(["--data".into(), path.as_os_str().to_owned()]);
    }
    if let Some(revision) = data.revision {
        options.extend(["--revision".into(), revision.to_string().into()]);
    }
    if let Some(patch) = data.patch {
        options.extend(["--patch".into(), patch.to_string().into()]);
    }
    Ok(options)
}

/// Appends a word, quoted for the shell.
pub(super) fn push_quoted(word: &str, command: &mut String) {
    let quote = if cfg!(windows) { '"' } else { '\'' };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:\\".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) && (cfg!(windows) || !word.contains('\\')) {
        return command.push_str(word);
    }
    command.push(quote);
    // Paths on Windows cannot contain quotes.
    command.push_str(&word.replace('\'', if cfg!(windows) { "'" } else { r"'\''" }));
    command.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocked_mods_are_forgotten_when_a_run_begins() {
        let place = tempfile::tempdir().unwrap();
        let file = blocked(place.path()).unwrap();
        std::fs::write(&file, "\"a\"\n").unwrap();
        assert_eq!(blocked(place.path()).unwrap(), file);
        assert!(!file.exists());
    }

    #[test]
    #[cfg(unix)]
    fn words_are_quoted_for_the_shell() {
        let quoted = |word| {
            let mut command = String::new();
            push_quoted(word, &mut command);
            command
        };
        assert_eq!(quoted("/a-b/c_d.js"), "/a-b/c_d.js");
        assert_eq!(quoted("my mods"), "'my mods'");
        assert_eq!(quoted("it's $(x)\\"), r"'it'\''s $(x)\'");
        assert_eq!(quoted(""), "''");
    }
}
