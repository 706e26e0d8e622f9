//! `conformance`: the vectors, run against the example that uses this program and against other
//! programs.

use std::path::{Path, PathBuf};
use std::process::Command;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Standard output, standard error, exit code.
fn conformance(vectors: &str, program: &[&str], more: &[&str]) -> (String, String, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["conformance", "--vectors", vectors]).args(more).args(program);
    let output = command.current_dir(project()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

/// Without Python, the examples cannot run.
fn has_python() -> bool {
    let has = Command::new("python3").arg("--version").output().is_ok();
    assert!(has || std::env::var_os("CI").is_none(), "CI has python3");
    has
}

fn ours() -> [&'static str; 3] {
    ["python3", "docs/examples/conformance.py", env!("CARGO_BIN_EXE_worldwire")]
}

#[test]
fn the_example_passes() {
    if !has_python() {
        return;
    }
    for (vectors, passed) in [
        ("vectors/uru/vault_nodes.json", "11 vectors: 11 passed, 0 failed"),
        ("vectors/ki", "vectors: "),
        ("vectors/uru/connect_packets.json", "15 vectors: 15 passed, 0 failed"),
    ] {
        let (out, err, code) = conformance(vectors, &ours(), &[]);
        assert_eq!((out.as_str(), code), ("", 0), "{err}");
        assert!(err.contains(passed) && err.contains(" 0 failed"), "{err}");
    }
    // A program that accepts everything fails exactly the vectors that it must refuse.
    let program = "import json, sys\nfor line in sys.stdin:\n    it = json.loads(line)\n    print(json.dumps({'id': it['id'], 'message': {'hex': it.get('hex')}, 'hex': it.get('message', {}).get('hex')}), flush=True)";
    let vectors = "vectors/uru/connect_packets.json";
    let (out, err, code) = conformance(vectors, &["python3", "-c", program], &[]);
    assert_eq!((out.lines().count(), code), (5, 1), "{out} {err}");
    assert!(out.lines().all(|line| line.contains("must be refused")), "{out}");
}

#[test]
fn wrong_answers_are_listed_with_their_vectors() {
    if !has_python() {
        return;
    }
    let program = "import json, sys\nfor line in sys.stdin:\n    it = json.loads(line)\n    print(json.dumps({'id': it['id'], 'message': {}, 'hex': '00'}), flush=True)";
    let program = ["python3", "-c", program];
    let (out, err, code) = conformance("vectors/uru/vault_nodes.json", &program, &["--json"]);
    assert_eq!(code, 1, "{err}");
    let line = out.lines().nth(1).unwrap();
    assert!(line.contains("\"result\":\"failed\"") && line.contains(": missing"), "{line}");
    assert!(line.contains("uru/vault_nodes cases[1]"), "{line}");
}

#[test]
fn a_program_that_cannot_be_asked_ends_the_run() {
    let vectors = "vectors/uru/vault_nodes.json";
    let (_, err, code) = conformance(vectors, &["/no/such/program"], &[]);
    assert_eq!(code, 2, "{err}");
    if has_python() {
        let program = ["python3", "-c", "pass"];
        let (_, err, code) = conformance(vectors, &program, &[]);
        assert_eq!(code, 2, "{err}");
        let program = ["python3", "-c", "input(); print('no')"];
        let (_, err, code) = conformance(vectors, &program, &[]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("its response is not JSON"), "{err}");
    }
}
