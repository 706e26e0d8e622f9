//! Commands that write many files, stopped in the middle.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::tempdir;
use worldwire_ki::file::wad::{BuildOptions, build};

const FILES: usize = 3_000;
const SIZE: usize = 16_000;

/// Extracts an archive into a new folder until some files are written, and ends the program with a
/// signal. Gives its exit code, how many files are in the folder, and how many folders of no name
/// there are beside it. Every file that has its name is whole.
fn extract_until(signal: &str) -> (Option<i32>, usize, usize) {
    let home = tempdir().unwrap();
    let content = |index: usize| vec![u8::try_from(index % 251).unwrap(); SIZE];
    let files: Vec<(String, Vec<u8>)> = (0..FILES)
        .map(|index| (format!("Data/{}/{index}.bin", index % 7), content(index)))
        .collect();
    let files = files.iter().map(|(name, content)| (&**name, &**content));
    let options = BuildOptions { level: 1, ..BuildOptions::default() };
    fs::write(home.path().join("a.wad"), build(&options, files).unwrap()).unwrap();
    let unfinished = || -> Vec<_> {
        let entries = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap());
        entries.filter(|it| it.file_name().to_string_lossy().starts_with(".worldwire-")).collect()
    };
    let mut program = Command::new(env!("CARGO_BIN_EXE_worldwire"))
        .args(["ki", "wad", "extract", "a.wad", "-C", "out"])
        .current_dir(home.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while program.try_wait().unwrap().is_none()
        && !unfinished().iter().any(|stage| stage.path().join("Data/6/6.bin").exists())
    {
        std::thread::yield_now();
    }
    let id = program.id().to_string();
    let _ = Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status().unwrap();
    let code = program.wait().unwrap().code();
    let mut whole = 0;
    let data = home.path().join("out/Data");
    let folders = if data.exists() { fs::read_dir(data).unwrap().collect() } else { Vec::new() };
    for folder in folders {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let index: usize = Path::file_stem(&path).unwrap().to_str().unwrap().parse().unwrap();
            assert!(fs::read(&path).unwrap() == content(index), "{}", path.display());
            whole += 1;
        }
    }
    (code, whole, unfinished().len())
}

#[test]
fn what_was_written_before_ctrl_c_stays() {
    let (code, whole, unfinished) = extract_until("-INT");
    assert!(
        code == Some(130) && whole > 0 || code == Some(0) && whole == FILES,
        "{code:?} {whole}"
    );
    assert_eq!(unfinished, 0);
}

#[test]
fn a_killed_program_leaves_no_file_that_is_not_whole() {
    let (code, whole, unfinished) = extract_until("-KILL");
    match code {
        None => assert!(whole == 0 && unfinished == 1 || whole == FILES, "{whole} {unfinished}"),
        ended => assert_eq!((ended, whole, unfinished), (Some(0), FILES, 0)),
    }
}
