//! The extension of an output file selects its format.

use std::fs;
use std::io::Read as _;

use crate::samples::{packets, packets_in, worldwire};

/// Runs `dissect` on the sample: standard output, standard error, exit code.
fn dissect(arguments: &[&str]) -> (String, String, i32) {
    run(&["dissect"], arguments)
}

/// Runs a command on the sample.
fn run(verb: &[&str], arguments: &[&str]) -> (String, String, i32) {
    let sample = ["uru-login.pcapng", "--keys", "uru-keys.toml"];
    worldwire(&[verb, &sample, arguments].concat())
}

#[test]
fn captures_are_written_in_the_format_of_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let all = packets("uru-login.pcapng");
    for (name, magic, is_gzip) in [
        ("a.pcapng", [0x0a, 0x0d, 0x0d, 0x0a], false),
        ("B.PCAPNG", [0x0a, 0x0d, 0x0d, 0x0a], false),
        ("c.pcapng.gz", [0x0a, 0x0d, 0x0d, 0x0a], true),
        ("d.pcap", [0x4d, 0x3c, 0xb2, 0xa1], false),
        ("e.pcap.GZ", [0x4d, 0x3c, 0xb2, 0xa1], true),
    ] {
        let path = folder.path().join(name);
        let (out, err, code) = dissect(&["-o", path.to_str().unwrap()]);
        assert_eq!((out.as_str(), code), ("", 0), "{name}: {err}");
        let file = fs::read(&path).unwrap();
        let mut plain = file.clone();
        if is_gzip {
            plain.clear();
            flate2::read::GzDecoder::new(&file[..]).read_to_end(&mut plain).unwrap();
        }
        assert_eq!(plain[..4], magic, "{name}");
        assert!(packets_in(&file) == all, "{name}");
    }
}

#[test]
fn tables_and_json_are_written_in_the_format_of_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let fields = ["--fields", "date,transId", "--filter", "auth.AcctLogin*"];
    for (name, options, same) in [
        ("a.CSV", &fields[..], &["--csv"][..]),
        ("b.csv", &[&fields[..], &["--csv"]].concat(), &["--csv"]),
        ("c.tsv", &fields, &[]),
        ("d.json", &[], &["--json"]),
        ("e.jsonl", &["--json-safe"], &["--json-safe"]),
        ("f.txt", &["--json"], &["--json"]),
        ("g", &["--brief"], &[]),
        // A message itself can be in any format.
        ("h.gz", &["--filter", "file.PingReply", "--first"], &[]),
    ] {
        let path = folder.path().join(name);
        let (out, err, code) = dissect(&[options, &["-o", path.to_str().unwrap()]].concat());
        assert_eq!((out.as_str(), code), ("", 0), "{name}: {err}");
        let options: Vec<&str> = options.iter().filter(|it| !same.contains(it)).copied().collect();
        let (printed, _, _) = dissect(&[&options[..], same].concat());
        assert_eq!(String::from_utf8_lossy(&fs::read(path).unwrap()), printed, "{name}");
    }
}

#[test]
fn contradictions_and_other_formats_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, options, wanted) in [
        ("a.csv", &[][..], "a table needs columns; choose them with --fields"),
        ("a.csv", &["--json"], "a table needs columns"),
        ("a.tsv", &["--fields", "date", "--csv"], "use the extension .csv"),
        ("a.json", &["--brief"], "JSON lines hold all fields"),
        ("a.json", &["--fields", "date"], "JSON lines hold all fields"),
        ("a.pcap", &["--secrets"], "needs -o NAME.pcapng"),
        ("a.pcap", &["--first"], "a capture holds packets"),
        ("a.cap", &[], "cannot write .cap files; use .txt, .json"),
        ("a.json.gz", &[], "cannot write .json.gz files"),
        ("a.XLSX", &[], "cannot write .xlsx files"),
    ] {
        let path = folder.path().join(name);
        let (_, err, code) = dissect(&[options, &["-o", path.to_str().unwrap()]].concat());
        assert!(code == 2 && err.contains(wanted), "{name} {options:?}: {err}");
        assert!(!path.exists(), "{name} {options:?}");
    }
    for (verb, more, wanted) in [
        (
            &["follow"][..],
            &["--stream", "1"][..],
            "writes the messages of a conversation, not packets",
        ),
        (
            &["follow"],
            &["--stream", "1", "--dump"],
            "writes the bytes of a conversation, not packets",
        ),
        (&["secrets", "export"], &[], "writes a key file, not packets"),
    ] {
        let path = folder.path().join("a.pcapng");
        let (_, err, code) = run(verb, &[more, &["-o", path.to_str().unwrap()]].concat());
        assert!(code == 2 && err.contains(wanted) && !path.exists(), "{verb:?}: {err}");
    }
}
