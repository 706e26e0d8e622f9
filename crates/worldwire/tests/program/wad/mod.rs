//! `worldwire ki wad` on real folders.

mod create;
mod decode;
mod extract;
mod look;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod signals;
mod update;

use std::borrow::Cow;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use worldwire_ki::file::wad::{Entry, STORED_SIZE, Table, crc};

fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

fn wad(folder: &Path, arguments: &[&str]) -> Output {
    program(folder, &[&["ki", "wad"], arguments].concat()).output().unwrap()
}

/// Like [`wad`], but with data on standard input.
fn wad_from(input: &[u8], folder: &Path, arguments: &[&str]) -> Output {
    let mut command = program(folder, &[&["ki", "wad"], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may stop reading before the end of its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Simulates a nearly full disk: no file can have more than this many blocks.
#[cfg(unix)]
fn limited(folder: &Path, blocks: u32, arguments: &[&str]) -> Command {
    let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_worldwire"), "ki", "wad"]);
    command.args(arguments).current_dir(folder);
    command
}

/// Checks the exit code; returns standard error.
#[track_caller]
fn said(outcome: &Output, code: i32) -> String {
    assert_eq!(outcome.status.code(), Some(code), "{outcome:?}");
    String::from_utf8(outcome.stderr.clone()).unwrap()
}

/// Checks the exit code; returns standard output.
#[track_caller]
fn told(outcome: &Output, code: i32) -> String {
    assert_eq!(outcome.status.code(), Some(code), "{outcome:?}");
    String::from_utf8(outcome.stdout.clone()).unwrap()
}

fn fill(folder: &Path) {
    fs::create_dir_all(folder.join("in/Data/a")).unwrap();
    for number in 0..40 {
        let text = format!("<Record>{number}</Record>\n").repeat(number);
        fs::write(folder.join(format!("in/Data/a/{number}.xml")), text).unwrap();
    }
    fs::write(folder.join("in/x.mp3"), [1, 2, 3]).unwrap();
}

/// Writes files and the folders that contain them.
fn put(folder: &Path, files: &[(&str, &str)]) {
    for (name, content) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// An archive of stored files with any names, in this order.
fn craft(files: &[(&str, &[u8])]) -> Vec<u8> {
    craft_with(files, |_| ())
}

fn entry<'f>((name, data): &(&'f str, &[u8])) -> Entry<'f> {
    Entry {
        name: Cow::Borrowed(name.as_bytes()),
        terminated: true,
        offset: 0,
        size: u32::try_from(data.len()).unwrap(),
        compressed_size: STORED_SIZE,
        compressed: 0,
        crc: crc(data),
    }
}

/// Like [`craft`], but with entries that contain false values.
fn craft_with(files: &[(&str, &[u8])], change: impl Fn(&mut [Entry<'_>])) -> Vec<u8> {
    let entries = files.iter().map(entry).collect();
    let mut table = Table { version: 2, flags: 0, entries };
    let mut end = u32::try_from(table.encoded_size()).unwrap();
    for entry in &mut table.entries {
        entry.offset = end;
        end += entry.size;
    }
    change(&mut table.entries);
    let mut bytes = table.to_bytes().unwrap();
    files.iter().for_each(|(_, data)| bytes.extend_from_slice(data));
    bytes
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
