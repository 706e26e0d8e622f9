//! The destinations that `-o` accepts.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;

use tempfile::tempdir;

use super::*;

/// Creates a FIFO or device, if that is allowed.
fn mknod(path: &Path, what: &[&str]) -> bool {
    Command::new("mknod").arg(path).args(what).output().is_ok_and(|made| made.status.success())
}

/// Writes a result that is not empty to a destination.
fn write(home: &Path, more: &[&str]) -> Output {
    let encode = ["encode", "uru.auth", "--hex", "-"];
    let json = r#"{"name":"ClientRegisterRequest","fields":{"buildId":918}}"#;
    let mut command = program(home, &[&encode[..], more].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(json.as_bytes());
    child.wait_with_output().unwrap()
}

const RESULT: &str = "010096030000\n";

#[test]
fn a_fifo_is_written_through() {
    let home = tempdir().unwrap();
    let fifo = home.path().join("fifo");
    assert!(mknod(&fifo, &["p"]));
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).unwrap()
    });
    said(&write(home.path(), &["-o", "fifo"]), 0);
    assert!(fifo.symlink_metadata().unwrap().file_type().is_fifo());
    assert_eq!(reader.join().unwrap(), RESULT);
    // Archives are not written sequentially.
    put(&home.path().join("in"), &[("a", "a")]);
    for force in [&[][..], &["--force"]] {
        let outcome = wad(home.path(), &[&["create", "in", "-o", "fifo"], force].concat());
        assert_eq!(said(&outcome, 2), "worldwire: fifo: not a regular file\n");
    }
}

#[test]
fn a_device_stays_a_device() {
    let home = tempdir().unwrap();
    let device = home.path().join("null");
    if !mknod(&device, &["c", "1", "3"]) {
        // Only root can do this.
        return;
    }
    let link = home.path().join("link");
    symlink("null", &link).unwrap();
    for (name, force) in [("null", &[][..]), ("null", &["--force"]), ("link", &["--force"])] {
        said(&write(home.path(), &[&["-o", name], force].concat()), 0);
        assert!(device.symlink_metadata().unwrap().file_type().is_char_device());
        assert!(link.symlink_metadata().unwrap().is_symlink());
    }
    assert_eq!(names(home.path()), ["link", "null"]);
}

#[test]
fn links_to_the_output_stay_valid() {
    let home = tempdir().unwrap();
    put(home.path(), &[("far/file", "old")]);
    fs::create_dir(home.path().join("near")).unwrap();
    let link = home.path().join("near/link");
    symlink("../far/file", &link).unwrap();
    let refused = said(&write(home.path(), &["-o", "near/link"]), 2);
    assert_eq!(refused, "worldwire: near/link: already exists; use --force to overwrite it\n");
    said(&write(home.path(), &["-o", "near/link", "--force"]), 0);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(home.path().join("far/file")).unwrap(), RESULT);
    assert_eq!(
        (names(&home.path().join("near")), names(&home.path().join("far"))),
        (vec!["link".into()], vec!["file".into()])
    );
    // A dangling link and a link to a folder.
    fs::remove_file(home.path().join("far/file")).unwrap();
    for force in [&[][..], &["--force"]] {
        let refused = said(&write(home.path(), &[&["-o", "near/link"], force].concat()), 2);
        assert!(refused.contains("near/link: is a broken link"), "{refused}");
    }
    assert_eq!(names(&home.path().join("far")), [""; 0]);
    symlink("../far", home.path().join("near/folder")).unwrap();
    let refused = said(&write(home.path(), &["-o", "near/folder", "--force"]), 2);
    assert_eq!(refused, "worldwire: near/folder: is a directory\n");
}

#[test]
fn an_archive_is_written_to_the_target_of_a_link() {
    let home = tempdir().unwrap();
    put(home.path(), &[("in/a", "a"), ("far/a.wad", "old")]);
    symlink("far/a.wad", home.path().join("link.wad")).unwrap();
    said(&wad(home.path(), &["create", "in", "-o", "link.wad", "--force"]), 0);
    assert!(home.path().join("link.wad").symlink_metadata().unwrap().is_symlink());
    said(&wad(home.path(), &["test", "far/a.wad"]), 0);
}

#[test]
fn a_dash_is_standard_output() {
    let home = tempdir().unwrap();
    assert_eq!(told(&write(home.path(), &["-o", "-"]), 0), RESULT);
    assert_eq!(names(home.path()), [""; 0]);
    put(&home.path().join("in"), &[("a", "a")]);
    let outcome = wad(home.path(), &["create", "in", "-o", "-"]);
    assert_eq!(said(&outcome, 2), "worldwire: standard output: not a regular file\n");
}

#[test]
fn a_replaced_file_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempdir().unwrap();
    let path = home.path().join("out");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    said(&write(home.path(), &["-o", "out"]), 0);
    for wanted in [0o600, 0o640] {
        fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
        said(&write(home.path(), &["-o", "out", "--force"]), 0);
        assert_eq!(mode(), wanted);
    }
    fs::remove_file(&path).unwrap();
    // Only the owner can read secrets.
    said(&program(home.path(), &["uru", "keys", "generate", "-o", "out"]).output().unwrap(), 0);
    assert_eq!(mode(), 0o600);
}

#[cfg(target_os = "linux")]
#[test]
fn a_link_to_standard_output_is_standard_output() {
    let home = tempdir().unwrap();
    let script =
        "(echo head; \"$0\" encode uru.auth --hex m.json -o /proc/self/fd/1; echo tail) > all";
    let json = r#"{"name":"ClientRegisterRequest","fields":{"buildId":918}}"#;
    fs::write(home.path().join("m.json"), json).unwrap();
    let worldwire = env!("CARGO_BIN_EXE_worldwire");
    let outcome =
        Command::new("sh").args(["-c", script, worldwire]).current_dir(home.path()).output();
    said(&outcome.unwrap(), 0);
    let all = fs::read_to_string(home.path().join("all")).unwrap();
    assert_eq!(all, format!("head\n{RESULT}tail\n"));
}
