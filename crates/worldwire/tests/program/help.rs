//! The examples in `--help`, and the commands that results suggest, can be copied and run.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The output of `--help` on a narrow terminal.
fn help(command: &[String]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    let output = program.args(command).arg("--help").env("COLUMNS", "80").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{command:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\u{a0}'), "{command:?}: {text}");
    text
}

/// The names of a command's subcommands.
fn below(help: &str) -> Vec<String> {
    // The top-level help has several groups.
    let first = if help.contains("\nCommands:\n") { "Commands:" } else { "Captures:" };
    let lines = help.lines().skip_while(|line| *line != first).skip(1);
    let is_end = |line: &str| match first {
        "Commands:" => line.is_empty(),
        _ => line == "Options:",
    };
    let lines = lines.take_while(|line| !is_end(line));
    // Descriptions continue on lines that are indented further.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// All examples that need only the samples.
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
        // Some examples report a difference or a problem.
        let is_fine = match outcome.status.code() {
            Some(0) => true,
            Some(1) => !outcome.stdout.is_empty(),
            _ => false,
        };
        assert!(is_fine, "{example}: {outcome:?}");
    }
}

/// The commands suggested for opcodes that a map leaves unresolved, and those suggested by
/// `dissect` and `tera integrity`.
#[test]
fn suggested_commands_can_be_pasted() {
    let home = tempfile::tempdir().unwrap();
    let samples =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").canonicalize().unwrap();
    symlink(samples.join("tera"), home.path().join("all data")).unwrap();
    symlink(samples.join("tera/definitions"), home.path().join("no map")).unwrap();
    symlink(samples.join("tera-login.pcapng"), home.path().join("it's new.pcapng")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_worldwire")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let shell = |line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(home.path()).env("PATH", &path);
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    let behind = |text: &str, words: &str| {
        let line = text.lines().find(|line| line.contains(words));
        let line = line.unwrap_or_else(|| panic!("{words}: {text}"));
        line[line.find(words).unwrap()..].to_owned()
    };

    let map = "'all data/map/protocol.999001.map'";
    let carry = format!(
        "worldwire tera map carry --old \"it's new.pcapng\" --old-map {map} --new \"it's new.pcapng\" \
         --data 'all data'"
    );
    let rank = behind(&shell(&carry).0, "worldwire tera def rank ");
    let (ranked, _) = shell(&rank);
    assert!(ranked.contains(" S_PARTY_MEMBER_LIST.1"), "{rank}: {ranked}");

    let (_, said) = shell("worldwire tera integrity \"it's new.pcapng\" --data 'no map'");
    let rank = behind(&said, "worldwire tera def rank ");
    let (ranked, _) = shell(&rank);
    assert!(ranked.contains("   12  C_START_SKILL.1"), "{rank}: {ranked}");

    let dissect = "worldwire dissect \"it's new.pcapng\" --data 'all data' --brief";
    let (_, said) = shell(dissect);
    let doctor = behind(&said, "worldwire doctor ");
    let (found, _) = shell(&doctor);
    assert!(found.contains("write S_WEATHER_INFO.1.def"), "{doctor}: {found}");
    // Programs that read JSON need no suggestions.
    assert_eq!(shell(&dissect.replace("brief", "json")).1, "1 conversation, 20 messages\n");
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    for words in ["--help", "--version", "dissect --help"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(words.split(' ')).stdout(Stdio::from(full));
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let problem = "worldwire: standard output: no space left on device\n";
        assert_eq!((output.status.code(), &*said), (Some(2), problem), "{words}");
    }
}
