//! Changes individual settings in an existing configuration file and leaves the rest of the file as
//! it is.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value as Json;
use toml_edit::{DocumentMut, Item, TableLike, Value};

use super::ShardConfig;
use crate::config::{ConfigError, ServerConfig as _, toml_value};
use crate::folder::{reason, write_secret};

/// A setting with its new value: the section, or an empty text before all sections; the name; and
/// the value.
pub(super) type Change<'c> = (&'c str, &'c str, Json);

/// Changes a setting in the configuration in a shard's directory. The setting is in the given
/// section or, if that is empty, before all sections. The new file replaces the old one atomically.
/// Does nothing if there is no file.
pub(in crate::uru) fn edit(
    folder: &Path,
    section: &str,
    name: &str,
    value: Json,
) -> Result<(), ConfigError> {
    let failed = |error: io::Error| ConfigError::Unreadable(reason(&error));
    let file = folder.join(ShardConfig::FILE);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let edited = changed(&text, &[(section, name, value)])?;
    let temporary = file.with_extension("toml.new");
    let _ = fs::remove_file(&temporary);
    write_secret(&temporary, edited.as_bytes()).map_err(failed)?;
    fs::rename(&temporary, &file).map_err(failed)
}

/// The text of a configuration with settings changed or added. Everything else, including comments,
/// stays as it is. A setting can have any form: several lines, a section, an inline table.
pub(super) fn changed(text: &str, changes: &[Change<'_>]) -> Result<String, ConfigError> {
    let before = ShardConfig::from_text(text)?;
    let mut wanted = serde_json::to_value(before).unwrap_or_default();
    // The text is valid TOML, so this fails only if the two parsers disagree.
    let mut document: DocumentMut = text.parse().map_err(|_| cannot_change("the settings"))?;
    // In a file that has only comments, the comments would end up after the new settings.
    let comments = match document.is_empty() {
        true => core::mem::take(&mut document).to_string(),
        false => String::new(),
    };
    for (section, name, value) in changes {
        let root = document.as_table_mut();
        let table: &mut dyn TableLike = match *section {
            "" => root,
            section => root
                .entry(section)
                .or_insert_with(toml_edit::table)
                .as_table_like_mut()
                .ok_or_else(|| cannot_change(name))?,
        };
        let mut new: Value = toml_value(value).parse().map_err(|_| cannot_change(name))?;
        match table.get_mut(name) {
            Some(old) => {
                if let Some(value) = old.as_value() {
                    *new.decor_mut() = value.decor().clone();
                }
                *old = Item::Value(new);
            }
            None => drop(table.insert(name, Item::Value(new))),
        }
        let known = if section.is_empty() { &mut wanted } else { &mut wanted[section] };
        known[name] = value.clone();
    }
    let mut text = document.to_string();
    if !comments.trim().is_empty() {
        text = format!("{}\n\n{text}", comments.trim_end());
    }
    let found = ShardConfig::from_text(&text)?;
    match serde_json::to_value(found).is_ok_and(|found| found == wanted) {
        true => Ok(text),
        false => Err(cannot_change("the settings")),
    }
}

fn cannot_change(what: &str) -> ConfigError {
    ConfigError::Unreadable(format!("cannot change {what} here; edit the file"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_setting_changes() {
        let one = |text: &str, section: &str, name: &str, value: Json| {
            changed(text, &[(section, name, value)]).unwrap()
        };
        let text = "# Ours.\nwelcome = \"x\" # old\n[auth]\n# Staff.\nrestricted = false\n";
        let wanted = "# Ours.\nwelcome = \"y\" # old\n[auth]\n# Staff.\nrestricted = false\n";
        assert_eq!(one(text, "", "welcome", json!("y")), wanted);
        let wanted = "# Ours.\nwelcome = \"x\" # old\n[auth]\n# Staff.\nrestricted = true\n";
        assert_eq!(one(text, "auth", "restricted", json!(true)), wanted);
        assert_eq!(one("[game]\n", "", "welcome", json!("y")), "welcome = \"y\"\n[game]\n");
        let wanted = "build = 1\n\n[auth]\nrestricted = true\n";
        assert_eq!(one("build = 1\n", "auth", "restricted", json!(true)), wanted);
    }

    #[test]
    fn settings_of_any_form_change() {
        for (text, wanted) in [
            ("welcome = \"\"\"\nwelcome = \"\"\"\n", "welcome = \"y\"\n"),
            ("welcome = '''a\n[game]\n'''\nbuild = 7\n", "welcome = \"y\"\nbuild = 7\n"),
        ] {
            assert_eq!(changed(text, &[("", "welcome", json!("y"))]).unwrap(), wanted);
        }
        for (text, wanted) in [
            ("auth = { restricted = false }\n", "auth = { restricted = true }\n"),
            ("auth.restricted = false\nbuild = 7\n", "auth.restricted = true\nbuild = 7\n"),
        ] {
            assert_eq!(changed(text, &[("auth", "restricted", json!(true))]).unwrap(), wanted);
        }
        let text = "[ages]\nopen = true # yes\nfixed = [\n  { filename = \"a\" }, # mine\n]\n";
        let one = json!([{ "filename": "b", "instance_name": "" }]);
        let text = changed(text, &[("ages", "fixed", one.clone())]).unwrap();
        assert!(text.contains("open = true # yes\nfixed = [") && !text.contains("mine"), "{text}");
        let text = "[[ages.fixed]]\nfilename = \"a\"\n[game]\n# Ours.\nrefuse_full = true\n";
        let text = changed(text, &[("ages", "fixed", one)]).unwrap();
        assert!(text.ends_with("[game]\n# Ours.\nrefuse_full = true\n"), "{text}");
    }

    #[test]
    fn files_are_replaced_only_if_they_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(ShardConfig::FILE);
        edit(folder.path(), "", "welcome", json!("y")).unwrap();
        assert!(!file.exists());
        for text in ["nonsense\n", "welcome = 5\n"] {
            fs::write(&file, text).unwrap();
            assert!(edit(folder.path(), "", "welcome", json!("y")).is_err());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        fs::write(&file, ShardConfig::default().to_text()).unwrap();
        assert!(edit(folder.path(), "limits", "connections", json!(0)).is_err());
        for text in ["one\ntwo", "\"Shorah\"\n"] {
            edit(folder.path(), "", "welcome", json!(text)).unwrap();
        }
        edit(folder.path(), "auth", "restricted", json!(true)).unwrap();
        let config = ShardConfig::read(folder.path()).unwrap().unwrap();
        assert!(config.auth.restricted && config.welcome == "\"Shorah\"\n");
    }
}
