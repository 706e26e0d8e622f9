//! `--limit` and `--last` of `dissect`.

use std::fs;
use std::process::Command;

/// Standard output, standard error, exit code.
fn dissect(arguments: &[&str]) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples"));
    command.args(["dissect", "uru-login.pcapng", "--keys", "uru-keys.toml", "--quiet"]);
    let output = command.args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

/// The output for individual items: lines, or lines with the indented ones below them.
fn items(text: &str, is_text: bool) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in text.lines() {
        match items.last_mut() {
            Some(last) if is_text && line.starts_with("        ") => {
                last.push('\n');
                last.push_str(line);
            }
            _ => items.push(line.to_owned()),
        }
    }
    items
}

#[test]
fn the_first_and_last_items_are_those_of_the_whole_output() {
    let forms: [(&[&str], bool); 6] = [
        (&[], true),
        (&["--brief"], false),
        (&["--names"], false),
        (&["--json"], false),
        (&["--brief", "--time", "utc"], false),
        (&["--fields", "name,transId"], false),
    ];
    for (form, is_text) in forms {
        for filter in [&[][..], &["--filter", "auth.*"], &["--stream", "1"]] {
            let run = |more: &[&str]| {
                let (out, err, code) = dissect(&[form, filter, more].concat());
                assert_eq!((err.as_str(), code), ("", 0), "{form:?} {filter:?} {more:?}");
                items(&out, is_text)
            };
            let mut whole = run(&[]);
            // A table begins with its columns.
            let head = usize::from(form.first() == Some(&"--fields"));
            let (mut first, mut last) = (run(&["--limit", "3"]), run(&["--last", "3"]));
            assert_eq!(first.len(), 3 + head, "{first:?}");
            assert_eq!(first, whole[..3 + head]);
            assert_eq!(last.drain(..head).collect::<Vec<_>>(), whole[..head]);
            assert_eq!(last, whole[whole.len() - 3..]);
            whole.drain(..head);
            first = run(&["--limit", "1000"]);
            assert_eq!(first[head..], whole);
            assert_eq!(run(&["--last", "1000"])[head..], whole);
        }
    }
}

#[test]
fn the_time_since_the_previous_line_is_that_of_shown_lines() {
    let (whole, ..) = dissect(&["--brief", "--time", "delta"]);
    let (first, ..) = dissect(&["--brief", "--time", "delta", "--limit", "4"]);
    assert_eq!(first.lines().collect::<Vec<_>>(), whole.lines().take(4).collect::<Vec<_>>());
    let (last, ..) = dissect(&["--brief", "--time", "delta", "--last", "2"]);
    let lines: Vec<&str> = last.lines().collect();
    assert!(lines[0].starts_with("    0.000000  #") && lines.len() == 2, "{last}");
    assert_eq!(lines[1], whole.lines().last().unwrap());
}

#[test]
fn files_get_the_same_items() {
    let folder = tempfile::tempdir().unwrap();
    for (name, form) in
        [("a.txt", &["--brief"][..]), ("b.json", &[]), ("c.csv", &["--fields", "name"])]
    {
        for limit in [["--limit", "2"], ["--last", "2"]] {
            let path = folder.path().join(format!("{}{name}", limit[0]));
            let path = path.to_str().unwrap();
            let (out, err, code) = dissect(&[form, &limit, &["-o", path]].concat());
            assert_eq!((out.as_str(), err.as_str(), code), ("", "", 0));
            let json: &[&str] = if name == "b.json" { &["--json"] } else { &[] };
            let csv: &[&str] = if name == "c.csv" { &["--csv"] } else { &[] };
            let (shown, ..) = dissect(&[form, json, csv, &limit].concat());
            assert_eq!(fs::read_to_string(path).unwrap(), shown, "{name} {limit:?}");
        }
    }
    let path = folder.path().join("d.pcapng");
    let (_, err, code) = dissect(&["--limit", "1", "-o", path.to_str().unwrap()]);
    assert!(code == 2 && err.contains("--limit and --last select messages"), "{err}");
    for wrong in [&["--limit", "0"][..], &["--last", "0"], &["--limit", "1", "--last", "1"]] {
        let (_, err, code) = dissect(wrong);
        assert_eq!(code, 2, "{wrong:?}: {err}");
    }
}

#[test]
fn a_limit_ends_reading_early() {
    let folder = tempfile::tempdir().unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/uru-login.pcapng");
    let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/uru-keys.toml");
    let broken = folder.path().join("broken.pcapng");
    let mut bytes = fs::read(sample).unwrap();
    // A second capture, whose end is missing, follows. Only reading to the end reveals this.
    let half = bytes[..bytes.len() / 2 + 1].to_vec();
    for _ in 0..40 {
        bytes.extend_from_within(..half.len() * 2 - 2);
    }
    bytes.extend(half);
    fs::write(&broken, bytes).unwrap();
    let run = |limit: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["dissect", broken.to_str().unwrap(), "--keys", keys, "--names"]);
        let output = command.args(limit).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code().unwrap())
    };
    let (_, err, code) = run(&[]);
    assert_eq!(code, 1, "{err}");
    let (out, err, code) = run(&["--limit", "2"]);
    assert_eq!((out.lines().count(), err.as_str(), code), (2, "", 0));
    // The exit code depends on the lines that were written.
    let (out, _, code) = run(&["--filter", "problem", "--limit", "1", "--keys", keys]);
    assert!(code == 1 && out.lines().count() <= 1, "{out}");
}
