//! The groups of commands in the top-level help.

use std::fmt::Write as _;

use clap::Command;

/// Headings, and the commands below them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Captures", &["dissect", "inspect", "follow", "stats", "doctor", "diff", "filter", "capture"]),
    ("Exports from captures", &["export", "extcap", "sanitize", "secrets"]),
    ("Single messages and files", &["decode", "encode", "codecs", "codegen", "conformance"]),
    ("Live traffic", &["serve", "client", "proxy", "replay", "mods"]),
    ("Worlds", &["ki", "mxo", "tera", "uru"]),
];

/// The last group, which also holds every command that no other group lists.
const REST: &str = "This program";

/// Lists a program's commands in groups, in place of clap's own list.
pub(super) fn grouped(command: Command, width: usize) -> Command {
    let mut built = command.clone();
    built.build();
    let text = list(&built, width);
    let styles = command.get_styles();
    let (header, usage) = (*styles.get_header(), *styles.get_usage());
    let template = format!(
        "{{about-with-newline}}\n{usage}Usage:{usage:#} {{usage}}\n\n{text}{header}Options:{header:#}\n\
         {{options}}{{after-help}}"
    );
    command.help_template(template)
}

fn list(command: &Command, width: usize) -> String {
    let is_shown = |name: &&str| {
        let found = command.find_subcommand(name);
        found.is_some_and(|inner| !inner.is_hide_set())
    };
    let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let rest: Vec<&str> = command
        .get_subcommands()
        .map(Command::get_name)
        .filter(|name| !grouped.contains(name))
        .collect();
    let longest = command.get_subcommands().map(|inner| inner.get_name().len()).max();
    let column = longest.unwrap_or(0) + 4;
    let (header, literal) =
        (*command.get_styles().get_header(), *command.get_styles().get_literal());
    let mut out = String::new();
    for (heading, names) in GROUPS.iter().copied().chain([(REST, &*rest)]) {
        let names: Vec<&str> = names.iter().copied().filter(is_shown).collect();
        if names.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{header}{heading}:{header:#}");
        for name in names {
            let Some(inner) = command.find_subcommand(name) else { continue };
            let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
            let blanks = column.saturating_sub(2 + name.len());
            let _ = write!(out, "  {literal}{name}{literal:#}{:blanks$}", "");
            let mut at = column;
            for (index, word) in about.split(' ').enumerate() {
                let length = word.chars().count();
                if index > 0 && at + 1 + length > width {
                    let _ = write!(out, "\n{:column$}", "");
                    at = column;
                } else if index > 0 {
                    out.push(' ');
                    at += 1;
                }
                out.push_str(word);
                at += length;
            }
            out.push('\n');
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[cfg(feature = "network")]
    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let names: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        for name in &names {
            assert!(command.find_subcommand(name).is_some(), "{name}");
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
        let rest = command.get_subcommands().map(Command::get_name);
        let rest: Vec<&str> = rest.filter(|name| !names.contains(name)).collect();
        assert_eq!(rest, ["settings", "completions", "man"], "give new commands a group");
    }

    #[test]
    fn descriptions_are_wrapped() {
        let mut command = Cli::command();
        command.build();
        let text = anstream::adapter::strip_str(&list(&command, 60)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.starts_with("Captures:\n  dissect"), "{text}");
    }
}
