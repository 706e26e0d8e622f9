//! `tera def check --watch`: changed files are checked again.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Ends the program when the test ends, even if the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn changed_files_are_checked_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("S_A.1.def"), "int32 a\n").unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_worldwire"))
        .args(["tera", "def", "check", "--watch", "--quiet"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    // Waits for the result of every change. A program that misses a change prints no result for it.
    let mut says = |wanted: &str| {
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains(wanted), "{line}");
    };
    says("1 file, 1 definition of 1 message, dialect toolbox: 0 warnings, 0 errors");
    std::fs::write(file("S_A.1.def"), "int33 a\n").unwrap();
    says("1 file, 0 definitions of 0 messages, dialect toolbox: 0 warnings, 1 error");
    // Editors replace the old file with a new one.
    std::fs::write(file("S_A.1.def.new"), "int64 a\n").unwrap();
    std::fs::rename(file("S_A.1.def.new"), file("S_A.1.def")).unwrap();
    says("1 file, 1 definition of 1 message");
    std::fs::write(file("S_B.1.def"), "@include S_A.1.def\n").unwrap();
    says("2 files, 2 definitions of 2 messages, dialect proto: 0 warnings, 0 errors");
    std::fs::remove_file(file("S_A.1.def")).unwrap();
    says("1 file, 0 definitions of 0 messages, dialect proto: 0 warnings, 1 error");
}
