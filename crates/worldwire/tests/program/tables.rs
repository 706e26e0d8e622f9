//! Tables of fields and of conversations.

use std::process::Command;

/// Standard output, standard error, exit code.
fn run(arguments: &[&str]) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples"));
    let output = command.args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

const DISSECT: [&str; 5] = ["dissect", "uru-login.pcapng", "--keys", "uru-keys.toml", "--quiet"];

#[test]
fn fields_are_written_as_a_table() {
    let table = |arguments: &[&str]| {
        let (out, err, code) = run(&[&DISSECT[..], arguments].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
        out
    };
    let csv = table(&["--fields", "time,auth.AcctLoginRequest.accountName", "--csv"]);
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("time,auth.AcctLoginRequest.accountName"));
    let rows: Vec<_> = lines.collect();
    assert_eq!(rows.len(), 1, "only messages with such a field: {csv}");
    // Every message has these fields, so there is a row for each.
    let all = table(&["--fields", "packet,name,from,srcport"]);
    let json = table(&["--json"]);
    let messages = json.lines().filter(|line| !line.contains("\"name\":\"opened\""));
    assert_eq!(all.lines().count(), 1 + messages.count());
    assert!(all.starts_with("packet\tname\tfrom\tsrcport\n"), "{all}");
    // The columns match the JSON lines.
    let one = table(&[
        "--fields",
        "date,transId,result",
        "--csv",
        "--filter",
        "*Reply and exists(result)",
        "--stream",
        "2",
    ]);
    let line = table(&["--json", "--filter", "*Reply and exists(result)", "--stream", "2"]);
    let line: serde_json::Value = serde_json::from_str(line.lines().next().unwrap()).unwrap();
    let row: Vec<_> = one.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(row[1], line["fields"]["transId"].to_string(), "{one}");
    assert_eq!(row[2], line["fields"]["result"].as_str().unwrap());
    for (wrong, said) in [
        ("auth.AcctLoginRequest.acountName", "did you mean `accountName`?"),
        ("transId ==", "--fields transId ==:"),
    ] {
        let (out, err, code) = run(&[&DISSECT[..], &["--fields", wrong]].concat());
        assert_eq!((out.as_str(), code), ("", 2), "{err}");
        assert!(err.contains(said), "{err}");
    }
}

/// Dates are shown as seconds since 1970 unless the user requests a different form.
#[test]
fn dates_in_tables_have_the_form_of_times() {
    let folder = tempfile::tempdir().unwrap();
    let table = |time: &[&str], target: &[&str]| {
        let fields = ["--fields", "date,elapsed,from", "--filter", "auth.AcctLoginRequest"];
        let (out, err, code) = run(&[&DISSECT[..], &fields, time, target].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{time:?}");
        out
    };
    let head = "date\telapsed\tfrom\n";
    for (time, date) in [
        (&[][..], "1767225600.383100000"),
        (&["--time", "delta"], "1767225600.383100000"),
        (&["--time", "utc"], "2026-01-01 00:00:00.383100"),
    ] {
        assert_eq!(table(time, &[]), format!("{head}{date}\t0.38275\tclient\n"));
    }
    let path = folder.path().join("a.csv");
    let target = ["-o", path.to_str().unwrap()];
    assert_eq!(table(&["--time", "utc"], &target), "");
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written.lines().nth(1), Some("2026-01-01 00:00:00.383100,0.38275,client"));
    // Filters accept dates in this form.
    let filter = "date == \"2026-01-01 00:00:00.383100\"";
    let (out, ..) = run(&[&DISSECT[..], &["--filter", filter, "--fields", "name"]].concat());
    assert_eq!(out, "name\nauth.AcctLoginRequest\n");
}

#[test]
fn a_followed_conversation_has_times_in_all_forms() {
    let follow = |more: &[&str]| {
        let follow = ["follow", "uru-login.pcapng", "--keys", "uru-keys.toml", "--quiet"];
        let (out, err, code) = run(&[&follow[..], &["--stream", "1"], more].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{more:?}");
        out
    };
    let line = "client  file.PingRequest  pingTimeMs=140";
    let heading = "uru  192.0.2.10:49154 > 192.0.2.1:14617";
    for (time, start) in [
        ("relative", "    0.140150"),
        ("utc", "2026-01-01 00:00:00.140500"),
        ("delta", "    0.000700"),
    ] {
        let out = follow(&["--time", time]);
        let mut lines = out.lines();
        assert_eq!(lines.next(), Some(heading), "{time}");
        assert_eq!(lines.nth(1), Some(&*format!("{start}  {line}")), "{time}");
    }
    let out = follow(&["--time", "utc", "--fields", "date,pingTimeMs", "--limit", "1"]);
    assert_eq!(out, "date\tpingTimeMs\n2026-01-01 00:00:00.140500\t140\n");
}

#[test]
fn conversations_are_listed_in_a_table() {
    let stats = ["stats", "uru-login.pcapng", "--keys", "uru-keys.toml", "--quiet"];
    let table = |sort: &str| {
        let (out, err, code) = run(&[&stats[..], &["--conversations", "--sort", sort]].concat());
        assert_eq!((code, err.as_str()), (0, ""));
        out
    };
    let numbers = |table: &str| -> Vec<u64> {
        let first = |line: &str| line.split_whitespace().next().unwrap().parse().unwrap();
        table.lines().skip(1).map(first).collect()
    };
    assert_eq!(numbers(&table("number")), [0, 1, 2, 3]);
    let column = |table: &str, at: usize| -> Vec<f64> {
        // Each conversation's ends take up three words.
        let cell = |line: &str| line.split_whitespace().nth(at).unwrap().parse().unwrap();
        table.lines().skip(1).map(cell).collect()
    };
    for (sort, at) in [("duration", 7), ("rate", 8), ("messages", 9)] {
        let values = column(&table(sort), at);
        assert!(values.is_sorted_by(|a, b| a >= b), "{sort} {values:?}");
    }
    let bytes = table("bytes");
    let sums: Vec<f64> =
        column(&bytes, 5).iter().zip(column(&bytes, 6)).map(|(a, b)| a + b).collect();
    assert!(sums.is_sorted_by(|a, b| a >= b), "{bytes}");
    assert_eq!(column(&bytes, 9).iter().sum::<f64>(), 59.0);
}
