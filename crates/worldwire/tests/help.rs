//! The examples of `--help`, as people copy them.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What `--help` prints on a narrow terminal.
fn help(command: &[String]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    let output = program.args(command).arg("--help").env("COLUMNS", "80").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{command:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\u{a0}'), "{command:?}: {text}");
    text
}

/// The names of the commands below one.
fn below(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // Behind a name its description goes on in lines that begin further right.
    let names = lines.filter(|line| !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// All examples that need nothing but samples.
fn examples(command: &[String], found: &mut Vec<String>) {
    let help = help(command);
    let own = help.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| {
        line.contains("worldwire ") && line.contains("samples/") && !line.contains("...")
    });
    found.extend(own.map(str::to_owned));
    for name in below(&help).into_iter().filter(|name| name != "help") {
        examples(&[command, &[name]].concat(), found);
    }
}

#[test]
fn examples_with_samples_can_be_pasted() {
    let mut found = Vec::new();
    examples(&[], &mut found);
    assert!(found.len() > 30, "{found:#?}");
    let home = tempfile::tempdir().unwrap();
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    symlink(project.join("samples"), home.path().join("samples")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_worldwire")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for example in found {
        let mut shell = Command::new("sh");
        shell.args(["-c", &example]).current_dir(home.path()).env("PATH", &path);
        let outcome: Output = shell.stdin(Stdio::null()).output().unwrap();
        // Some show that there is a difference, or a problem.
        let is_fine = match outcome.status.code() {
            Some(0) => true,
            Some(1) => !outcome.stdout.is_empty(),
            _ => false,
        };
        assert!(is_fine, "{example}: {outcome:?}");
    }
}
