//! Changes single settings of a written configuration, and keeps the rest of the file as it is.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value as Json;

use super::ShardConfig;
use crate::config::{ConfigError, ServerConfig as _};
use crate::folder::{reason, write_secret};

/// Changes a setting in a shard's directory, in a section, or before all sections if that is empty.
/// The new file replaces the old one atomically. Does nothing if there is no file.
pub(in crate::uru) fn edit(
    folder: &Path,
    section: &str,
    name: &str,
    value: &Json,
) -> Result<(), ConfigError> {
    let failed = |error: io::Error| ConfigError::Unreadable(reason(&error));
    let file = folder.join(ShardConfig::FILE);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let edited = changed(&text, section, name, value);
    let set = |text: &str| {
        ShardConfig::from_text(text).ok().map(|config| {
            let json = serde_json::to_value(config).unwrap_or_default();
            if section.is_empty() { json[name].clone() } else { json[section][name].clone() }
        })
    };
    if set(&edited).as_ref() != Some(value) {
        let problem = format!("cannot change {name} here; edit the file");
        return Err(ConfigError::Unreadable(problem));
    }
    let temporary = file.with_extension("toml.new");
    let _ = fs::remove_file(&temporary);
    write_secret(&temporary, edited.as_bytes()).map_err(failed)?;
    fs::rename(&temporary, &file).map_err(failed)
}

/// The text with a setting on its own line changed or added.
fn changed(text: &str, section: &str, name: &str, value: &Json) -> String {
    // A JSON string is also a valid TOML string, and fits on one line.
    let line = format!("{name} = {value}");
    let mut lines: Vec<&str> = text.lines().collect();
    let is_header = |line: &str| line.trim_start().starts_with('[');
    let is_own = |line: &str| {
        let (header, _) = line.split_once('#').unwrap_or((line, ""));
        header.trim().strip_prefix('[').and_then(|it| it.strip_suffix(']')) == Some(section)
    };
    let begin = match section {
        "" => Some(0),
        _ => lines.iter().position(|line| is_own(line)).map(|at| at + 1),
    };
    let header = format!("[{section}]");
    let Some(begin) = begin else {
        lines.extend(["", &header, &line]);
        return lines.join("\n") + "\n";
    };
    let own = lines[begin..].iter().take_while(|line| !is_header(line)).count();
    let is_setting =
        |line: &&str| line.split_once('=').is_some_and(|(before, _)| before.trim() == name);
    match lines[begin..begin + own].iter().position(is_setting) {
        Some(at) => lines[begin + at] = &line,
        None => lines.insert(begin, &line),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_setting_changes() {
        let text = "# Ours.\nwelcome = \"x\" # old\n[auth]\n# Staff.\nrestricted = false\n";
        let wanted = "# Ours.\nwelcome = \"y\"\n[auth]\n# Staff.\nrestricted = false\n";
        assert_eq!(changed(text, "", "welcome", &json!("y")), wanted);
        let wanted = "# Ours.\nwelcome = \"x\" # old\n[auth]\n# Staff.\nrestricted = true\n";
        assert_eq!(changed(text, "auth", "restricted", &json!(true)), wanted);
        assert_eq!(changed("[game]\n", "", "welcome", &json!("y")), "welcome = \"y\"\n[game]\n");
        let wanted = "build = 1\n\n[auth]\nrestricted = true\n";
        assert_eq!(changed("build = 1\n", "auth", "restricted", &json!(true)), wanted);
    }

    #[test]
    fn a_file_that_would_mean_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(ShardConfig::FILE);
        edit(folder.path(), "", "welcome", &json!("y")).unwrap();
        assert!(!file.exists());
        for text in ["welcome = \"\"\"\nwelcome = \"\"\"\n", "nonsense\n"] {
            fs::write(&file, text).unwrap();
            assert!(edit(folder.path(), "", "welcome", &json!("y")).is_err());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        fs::write(&file, ShardConfig::default().to_text()).unwrap();
        for text in ["one\ntwo", "\"Shorah\"\n"] {
            edit(folder.path(), "", "welcome", &json!(text)).unwrap();
        }
        edit(folder.path(), "auth", "restricted", &json!(true)).unwrap();
        let config = ShardConfig::read(folder.path()).unwrap().unwrap();
        assert!(config.auth.restricted && config.welcome == "\"Shorah\"\n");
    }
}
