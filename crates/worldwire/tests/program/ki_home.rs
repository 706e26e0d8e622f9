//! A folder in which the program works on archives and game objects.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::{TempDir, tempdir};
use worldwire_ki::file::wad::{BuildOptions, build};

use crate::samples::samples;

/// The folder, which is deleted on drop.
pub(crate) struct Home(TempDir);

/// Checks the exit code; returns both outputs.
#[track_caller]
pub(crate) fn ends(output: &Output, code: i32) -> (String, String) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

pub(crate) fn sample(name: &str) -> Vec<u8> {
    fs::read(samples().join(name)).unwrap()
}

impl Home {
    /// An empty folder.
    pub(crate) fn empty() -> Self {
        Self(tempdir().unwrap())
    }

    /// A folder with a type list and an object in a file.
    pub(crate) fn new() -> Self {
        let home = Self::empty();
        ["ki-types.json", "ki-pet.xml"].into_iter().for_each(|name| home.put(name, sample(name)));
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap()
    }

    pub(crate) fn archive(&self, name: &str, files: &[(&str, &[u8])]) {
        self.put(name, build(&BuildOptions::default(), files.iter().copied()).unwrap());
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs the program with the type list.
    pub(crate) fn typed(&self, arguments: &[&str]) -> Output {
        self.run(&[arguments, &["--types", "ki-types.json"]].concat())
    }

    /// Runs the program with data on standard input.
    pub(crate) fn fed(&self, input: &[u8], arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The program may stop reading before the end of its input.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.current_dir(self.path()).arg("ki").args(arguments);
        command
    }
}
