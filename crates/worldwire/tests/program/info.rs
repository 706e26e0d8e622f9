//! The values on brief lines.

use std::process::Command;

fn dissect(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples"));
    let output = command.arg("dissect").args(arguments).arg("--quiet").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Every sample, with its keys and definitions.
const SAMPLES: [&[&str]; 9] = [
    &["uru-login.pcapng", "--keys", "uru-keys.toml"],
    &["uru-age.pcapng", "--keys", "uru-keys.toml", "--data", "sdl"],
    &["uru-games.pcapng", "--keys", "uru-keys.toml"],
    &["ki-login.pcapng", "--keys", "ki-keys.toml", "--data", "ki-types.json"],
    &["ki-server.pcapng", "--keys", "ki-server-keys.toml"],
    &["mxo-world.pcapng", "--keys", "mxo-keys.toml"],
    &["mxo-crowd.pcapng", "--keys", "mxo-crowd-keys.toml"],
    &["mxo-login.pcapng", "--keys", "mxo-login-keys.toml"],
    &["tera-login.pcapng", "--data", "tera"],
];

#[test]
fn brief_lines_are_names_with_values() {
    for sample in SAMPLES {
        let lines = |form: &[&str]| dissect(&[sample, form].concat());
        let (names, brief) = (lines(&["--names"]), lines(&["--brief"]));
        assert_eq!(names.lines().count(), brief.lines().count(), "{sample:?}");
        let mut with_values = 0;
        for (name, brief) in names.lines().zip(brief.lines()) {
            let values = brief.strip_prefix(name).unwrap();
            assert!(values.is_empty() || values.starts_with("  "), "{brief}");
            with_values += usize::from(values.contains('='));
        }
        assert!(with_values * 4 > brief.lines().count(), "{sample:?}: {with_values}\n{brief}");
        for width in ["40", "60", "80", "100"] {
            let narrow = lines(&["--brief", "--width", width]);
            let width = width.parse().unwrap();
            for (name, line) in names.lines().zip(narrow.lines()) {
                let count = line.chars().count();
                assert!(count <= width || line == name, "{width}: {line}");
            }
        }
        let utc = lines(&["--brief", "--width", "90", "--time", "utc"]);
        let delta = lines(&["--brief", "--width", "90", "--time", "delta"]);
        let mut cut = 0;
        for line in utc.lines().chain(delta.lines()).filter(|line| line.contains('=')) {
            assert!(line.chars().count() <= 90, "{line}");
            cut += usize::from(line.ends_with("..."));
        }
        assert!(cut > 0 || sample[0] != "uru-login.pcapng");
    }
}

/// The name of a secret never precedes a value, and values that are known to be secret do not
/// occur.
#[test]
fn secrets_are_not_on_brief_lines() {
    for sample in SAMPLES {
        let brief = dissect(&[sample, &["--brief"][..]].concat());
        for name in
            ["Hash=", "token=", "oken=", "ticket=", "PassKey", "LoginKey=", " Key=", "Rec1="]
        {
            assert!(!brief.contains(name), "{sample:?}: {name}");
        }
        for secret in ["a made-up key", "3f6c9b0d5e7a41c28b1f0e6d9a4c7b52", "a9132248bb2c6ebb"] {
            assert!(!brief.contains(secret), "{sample:?}: {secret}");
        }
    }
    // The last value does occur in a sample, so the test can fail.
    assert!(dissect(&[SAMPLES[0], &["--full"]].concat()).contains("a9132248bb2c6ebb"));
}
