//! Output that serves as input for other commands: keys, values in filters, single messages.

use std::process::Command;

use crate::samples::{bytes, packets, run, samples, tcp, worldwire};

/// Exported keys decrypt their own capture without the server's secret, and no other capture.
#[test]
fn exported_keys_decrypt_their_capture() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("sessions.toml");
    let path = keys.to_str().unwrap();
    let export = ["secrets", "export", "uru-login.pcapng", "--keys", "uru-keys.toml"];
    let (_, err, code) = worldwire(&[&export[..], &["-o", path]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("3 conversations with keys"), "{err}");
    let text = std::fs::read_to_string(&keys).unwrap();
    assert_eq!(text.matches("[[uru.session]]").count(), 3, "{text}");
    assert!(!text.contains("\na = ") && text.contains("# conversation 0, "), "{text}");
    let brief = |file: &str, keys: &str| worldwire(&["dissect", "--brief", file, "--keys", keys]);
    let (whole, _, _) = brief("uru-login.pcapng", "uru-keys.toml");
    let (again, err, code) = brief("uru-login.pcapng", path);
    assert_eq!((again, code), (whole, 0), "{err}");
    let (_, err, code) = brief("uru-age.pcapng", path);
    assert!(code == 1 && err.contains("problem"), "{err}");
    // The keys of one conversation; an unencrypted one has none.
    let (one, _, code) = worldwire(&[&export[..], &["--stream", "0"]].concat());
    assert_eq!((one.matches("[[uru.session]]").count(), code), (1, 0));
    let (_, err, code) = worldwire(&[&export[..], &["--stream", "1"]].concat());
    assert!(code == 2 && err.contains("no keys to export"), "{err}");
    // MxO: a key that decrypts nothing is omitted, and the hello supplies a missing ID.
    let (mxo, known) = (folder.path().join("mxo.toml"), folder.path().join("known.toml"));
    let key = "000102030405060708090a0b0c0d0e0f";
    let other = "ffffffffffffffffffffffffffffffff";
    let table = |key| format!("[[mxo.session]]\nkey = \"{key}\"\n");
    std::fs::write(&known, table(other) + &table(key)).unwrap();
    let [mxo, known] = [&mxo, &known].map(|path| path.to_str().unwrap());
    let export = ["secrets", "export", "mxo-world.pcapng", "--keys", known, "-o", mxo];
    let (_, err, code) = worldwire(&export);
    assert_eq!(code, 0, "{err}");
    let text = std::fs::read_to_string(mxo).unwrap();
    assert!(text.contains("id = 0x1f2e3d4c") && text.contains(key), "{text}");
    assert!(!text.contains(other), "{text}");
    let (whole, _, _) = brief("mxo-world.pcapng", "mxo-keys.toml");
    let (again, err, code) = brief("mxo-world.pcapng", mxo);
    assert_eq!((again, code), (whole, 0), "{err}");
    // TERA's keys are in the capture. Once exported, they decrypt a capture that lacks them.
    let tera = folder.path().join("tera.toml");
    let tera = tera.to_str().unwrap();
    let export = ["secrets", "export", "tera-login.pcapng", "--data", "tera", "-o", tera];
    let (_, err, code) = worldwire(&export);
    assert_eq!(code, 0, "{err}");
    let all = packets("tera-login.pcapng");
    let arguments = ["dissect", "--brief", "--data", "tera", "--as", "tera", "--keys", tera];
    let messages = |out: &str| out.lines().filter(|line| line.contains("  tera.")).count();
    let (whole, _, _) = run(&all, &arguments);
    // The client's first key is lost, then the server's second key, then all four.
    let keys: Vec<usize> = (0..all.len()).filter(|at| tcp(&all[*at]).1.len() == 128).collect();
    assert!(keys.len() >= 4, "{keys:?}");
    for lost in [&keys[..1], &keys[3..4], &keys[..4]] {
        let torn = all.iter().enumerate().filter(|(at, _)| !lost.contains(at));
        let torn: Vec<Vec<u8>> = torn.map(|(_, packet)| packet.clone()).collect();
        let (out, err, code) = run(&torn, &arguments);
        assert_eq!((messages(&out), code), (messages(&whole), 1), "{lost:?} {out}{err}");
    }
}

/// Values from the output can be pasted into filters.
#[test]
fn printed_values_work_in_filters() {
    let file = samples().join("uru-login.pcapng");
    let said = |arguments: &[&str]| {
        let keys = ["--keys", "uru-keys.toml", "--quiet"];
        let (out, err, code) = bytes(&file, &[&["dissect"], arguments, &keys[..]].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
        String::from_utf8(out).unwrap()
    };
    let line = "auth.AcctLoginRequest";
    let filter = |text: &str| format!("AcctLoginRequest and {text}");
    for (form, field) in [("utc", "date"), ("local", "date"), ("relative", "time")] {
        let shown = said(&["--brief", "--time", form, "--filter", line]);
        let moment = shown.split("  #").next().unwrap().trim();
        let value = if form == "relative" { moment.to_owned() } else { format!("\"{moment}\"") };
        let again =
            said(&["--brief", "--time", form, "--filter", &filter(&format!("{field} == {value}"))]);
        assert!(
            !shown.is_empty() && again.starts_with(shown.lines().next().unwrap()),
            "{shown}{again}"
        );
    }
    let delta = said(&["--brief", "--time", "delta"]);
    assert!(delta.starts_with("    0.000000  #0"), "{delta}");
    assert_eq!(delta.lines().count(), said(&["--brief"]).lines().count());
    let json = said(&["--json", "--filter", line]);
    let json: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    for name in ["src", "srcport", "dst", "dstport", "packet", "stream"] {
        let all = filter(&format!("{name} == {}", json[name]));
        assert!(said(&["--json", "--filter", &all]).contains("AcctLoginRequest"), "{all}");
    }
    // Bytes, in the forms used by text and by JSON lines.
    let shown = said(&["--filter", line]);
    let hash = shown.lines().find_map(|line| line.trim().strip_prefix("challengeHash: ")).unwrap();
    let hash = hash.split(' ').next().unwrap();
    assert_eq!(json["fields"]["challengeHash"]["$hex"], *hash);
    for filter in
        [format!("challengeHash == {hash}"), format!("challengeHash startswith {}", &hash[..8])]
    {
        assert!(said(&["--brief", "--filter", &filter]).contains(line), "{filter}");
    }
    let date = filter(&format!("date == {}", json["time"]));
    assert!(said(&["--json", "--filter", &date]).contains("AcctLoginRequest"), "{date}");
}

#[test]
fn one_message_is_extracted() {
    let file = samples().join("uru-login.pcapng");
    let dissect = |arguments: &[&str]| {
        bytes(&file, &[&["dissect", "--keys", "uru-keys.toml"], arguments].concat())
    };
    let (blob, err, code) = dissect(&["--filter", "auth.VaultNodeFetched", "--first"]);
    assert_eq!(code, 0, "{err}");
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("reply.bin");
    std::fs::write(&cut, &blob).unwrap();
    // The suggested command decodes the bytes.
    let decode = err.split('`').nth(1).unwrap().strip_prefix("worldwire ").unwrap();
    assert_eq!(decode, "decode uru.auth --from server");
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(decode.split(' ')).arg("--json").arg(&cut);
    let decoded = command.output().unwrap();
    let decoded: serde_json::Value = serde_json::from_slice(&decoded.stdout).unwrap();
    let (line, _, _) = dissect(&["--filter", "auth.VaultNodeFetched", "--message", "1", "--json"]);
    let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(decoded["fields"], line["fields"]);
    let (second, _, _) = dissect(&["--filter", "auth.VaultNodeFetched", "--message", "2"]);
    assert!(!second.is_empty() && second != blob);
    let (none, err, code) = dissect(&["--filter", "auth.VaultNodeFetched", "--message", "999"]);
    assert_eq!((none.len(), code), (0, 1));
    assert!(err.contains("no message 999: only "), "{err}");
}
