//! Generated Rust: nothing is written unless all definitions are valid.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The exit code and standard error of `codegen`, run in the root of the repository.
fn generate(family: &str, source: &Path, target: &Path) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.args(["codegen", family]).arg(source).arg("--force").arg("-o").arg(target);
    let output = command.output().unwrap();
    assert!(output.stdout.is_empty());
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn bad_input_leaves_no_module() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let empty = write("empty", "");
    let neither = write("neither.json", r#"{"a": [1]}"#);
    let broken = write("S_BROKEN.1.def", "uint id\n");
    let mixed = folder.path().join("mixed");
    fs::create_dir(&mixed).unwrap();
    write("mixed/S_GOOD.1.def", "int32 id\n");
    write("mixed/S_BROKEN.1.def", "uint id\n");
    let good = mixed.join("S_GOOD.1.def");
    let unreadable = write("unreadable.xml", "<_ProtocolInfo><RECORD>");
    let sdl = Path::new("samples/sdl");
    let xml = Path::new("samples/ki-messages");
    for (family, source, code, problem) in [
        ("tera", &*empty, 2, "empty: contains no TERA definitions"),
        ("tera", &neither, 2, "neither.json: contains no TERA definitions"),
        ("tera", sdl, 2, "samples/sdl: contains no definitions"),
        ("tera", &broken, 1, "S_BROKEN.1.def:1:1: error: "),
        ("tera", &mixed, 1, "S_BROKEN.1.def:1:1: error: "),
        ("ki", &empty, 2, "empty: contains no definitions of messages"),
        ("ki", sdl, 2, "samples/sdl: contains no KI message definitions"),
        ("ki", &unreadable, 1, "error: "),
        ("tera", &good, 0, ""),
        ("ki", xml, 0, ""),
    ] {
        let target = folder.path().join("messages.rs");
        let (found, said) = generate(family, source, &target);
        assert_eq!((found, target.exists()), (code, code == 0), "{family} {source:?}: {said}");
        assert!(said.contains(problem), "{family} {source:?}: {said}");
        // An earlier module stays as it was.
        fs::write(&target, "earlier").unwrap();
        generate(family, source, &target);
        let text = fs::read_to_string(&target).unwrap();
        assert_eq!(text == "earlier", code != 0, "{family} {source:?}: {text}");
        fs::remove_file(&target).unwrap();
    }
}
