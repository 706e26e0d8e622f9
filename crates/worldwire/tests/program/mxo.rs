//! Tables of game objects, given to commands.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Decodes a create of goobj 415 with these tables: the exit code, and both streams.
fn decode(tables: &[&Path]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["decode", "mxo.objects", "--from", "server", "--hex"]);
    command.arg("0301000c9f0101cdab0101050000000300000000");
    for table in tables {
        command.arg("--data").arg(table);
    }
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn tables_come_in_any_order_and_load_completely_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let [classes, map, bad] =
        [("classes.csv", "9000,0,P,4,0\n"), ("map.csv", "415,9000\n"), ("bad.csv", "415,9001\n")]
            .map(|(name, text)| {
                let path = folder.path().join(name);
                fs::write(&path, text).unwrap();
                path
            });
    for tables in [[&classes, &map], [&map, &classes]] {
        let (code, out, err) = decode(&tables.map(|it| it.as_path()));
        assert!(code == Some(0) && out.contains("class: 9000"), "{code:?} {out} {err}");
    }
    let (code, out, err) = decode(&[&classes, &bad]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("there is no class \"9001\""), "{err}");
}
