//! The totals of `stats`.

use std::process::Command;

use serde_json::Value;

/// Standard output, standard error, exit code.
fn stats(arguments: &[&str]) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples"));
    let output = command.arg("stats").args(arguments).arg("--quiet").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

const LOGIN: [&str; 3] = ["uru-login.pcapng", "--keys", "uru-keys.toml"];

fn object(more: &[&str]) -> Value {
    let (out, err, code) = stats(&[&LOGIN[..], more, &["--json"]].concat());
    assert_eq!((err.as_str(), code), ("", 0));
    assert_eq!(out.lines().count(), 1);
    serde_json::from_str(&out).unwrap()
}

fn sum(list: &Value, keys: &[&str]) -> u64 {
    let list = list.as_array().unwrap().iter();
    list.flat_map(|row| keys.iter().map(|key| row[key].as_u64().unwrap())).sum()
}

#[test]
fn totals_are_those_of_the_conversations() {
    let all = object(&[]);
    let (each, ..) = stats(&[&LOGIN[..], &["--conversations", "--json"]].concat());
    let each: Vec<Value> = each.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(all["conversations"], each.len());
    assert_eq!(all["families"]["uru"], each.len());
    let messages: u64 = each.iter().map(|it| sum(&it["messages"], &["client", "server"])).sum();
    assert_eq!(all["messages"], messages);
    for side in ["client", "server"] {
        let bytes: u64 = each.iter().map(|it| it["bytes"][side].as_u64().unwrap()).sum();
        assert_eq!(all["captured"][side], bytes);
        let sent: u64 = each.iter().map(|it| sum(&it["messages"], &[side])).sum();
        assert_eq!(all[side]["messages"], sent);
    }
    assert_eq!(sum(&all["names"], &["client", "server"]), messages);
    assert_eq!(sum(&all["names"], &["bytes"]), all["bytes"].as_u64().unwrap());
    let intervals = all["intervals"].as_array().unwrap();
    let counted: u64 =
        intervals.iter().flat_map(|it| it.as_array().unwrap()).map(|it| it.as_u64().unwrap()).sum();
    assert_eq!(counted, messages);
    let login = all["replies"].as_array().unwrap().iter();
    let login = login.clone().find(|row| row["request"] == "auth.AcctLoginRequest").unwrap();
    let longest = login["longest"].as_f64().unwrap();
    assert!(login["count"] == 1 && (0.02..0.03).contains(&longest), "{login}");
    assert!(login["median"].as_f64().unwrap() <= longest);
}

#[test]
fn filters_and_numbers_select() {
    let auth = object(&["--filter", "auth.*"]);
    let names = auth["names"].as_array().unwrap();
    assert!(
        names.len() > 10
            && names.iter().all(|row| row["name"].as_str().unwrap().starts_with("auth."))
    );
    let (first, all) = (object(&["--stream", "0"]), object(&[]));
    assert_eq!(first["conversations"], 1);
    assert!(first["messages"].as_u64() < all["messages"].as_u64());
    let parts: u64 = (0..4)
        .map(|stream| object(&["--stream", &stream.to_string()])["messages"].as_u64().unwrap())
        .sum();
    assert_eq!(all["messages"], parts);
    // This is the same selection, conversation by conversation.
    let (each, ..) =
        stats(&[&LOGIN[..], &["--conversations", "--json", "--filter", "auth.*"]].concat());
    let each: Vec<Value> = each.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(each.len(), 1);
    assert_eq!(auth["messages"], sum(&each[0]["messages"], &["client", "server"]));
    let (out, err, code) = stats(&[&LOGIN[..], &["--stream", "9"]].concat());
    assert_eq!((out.as_str(), code), ("", 1));
    assert!(err.contains("no conversation 9; the capture has 4"), "{err}");
}

#[test]
fn lists_are_as_long_as_requested() {
    let rows = |top: &str| {
        let (out, _, code) = stats(&[&LOGIN[..], &["--top", top]].concat());
        assert_eq!(code, 0);
        out.lines().filter(|line| line.contains('%') && line.contains('.')).count()
    };
    assert!(rows("0") > 50 && rows("3") < 8, "{} {}", rows("0"), rows("3"));
    let (out, ..) = stats(&LOGIN);
    assert!(out.lines().count() < 45, "one screen: {out}");
}

#[test]
fn what_was_not_decoded_is_counted() {
    let (out, _, _) = stats(&["tera-login.pcapng", "--json"]);
    let all: Value = serde_json::from_str(&out).unwrap();
    assert!(all["undefined"]["messages"].as_u64().unwrap() > 10, "{out}");
    let (out, _, code) = stats(&["uru-login.pcapng", "--json"]);
    let all: Value = serde_json::from_str(&out).unwrap();
    assert!(code == 1 && all["problems"].as_u64().unwrap() > 0, "{out}");
}
