//! Only one server can use a database, whichever path leads to it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use tempfile::TempDir;

/// A family of servers.
struct Family {
    name: &'static str,
    database: &'static str,
    /// How commands name the server's directory.
    folder_option: &'static str,
}

const FAMILIES: [Family; 2] = [
    Family { name: "uru", database: "shard.sqlite", folder_option: "--shard" },
    Family { name: "ki", database: "login.sqlite", folder_option: "--server" },
];

/// A server, which is killed when the test ends, however it ends.
struct Server {
    child: Child,
    errors: BufReader<ChildStderr>,
    said: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(family: &Family, folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.args(["serve", family.name, "--listen", "127.0.0.1:0", "--no-status"]).arg(folder);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { child, errors, said: String::new() }
    }

    /// Waits until the server runs. Returns false if it ends instead.
    fn runs(&mut self) -> bool {
        while !self.said.contains("Ctrl-C") {
            if self.errors.read_line(&mut self.said).unwrap() == 0 {
                assert_eq!(self.child.wait().unwrap().code(), Some(2), "{}", self.said);
                return false;
            }
        }
        true
    }

    /// Checks that the server does not start, because another one has the database.
    fn refused_by(mut self, other: u32) {
        assert!(!self.runs(), "{}", self.said);
        let wanted = format!("in use by process {other} on ");
        assert!(self.said.contains(&wanted), "{wanted}in {}", self.said);
        assert!(self.said.contains("stop that process first"), "{}", self.said);
    }
}

/// Two directories of a server, of which only the first has a database.
fn two_folders(family: &Family) -> (TempDir, [PathBuf; 2]) {
    let home = tempfile::tempdir().unwrap();
    let folders = ["one", "two"].map(|name| home.path().join(name));
    fs::create_dir(&folders[0]).unwrap();
    if family.name == "uru" {
        // Generating keys takes a long time.
        let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/uru-keys.toml");
        fs::copy(keys, folders[0].join("keys.toml")).unwrap();
    }
    let mut first = Server::start(family, &folders[0]);
    assert!(first.runs(), "{}", first.said);
    drop(first);
    fs::create_dir(&folders[1]).unwrap();
    for file in ["keys.toml", "server.key"] {
        if folders[0].join(file).exists() {
            fs::copy(folders[0].join(file), folders[1].join(file)).unwrap();
        }
    }
    (home, folders)
}

#[test]
fn a_second_server_is_refused_whichever_path_leads_to_the_database() {
    for family in FAMILIES {
        let (home, [one, two]) = two_folders(&family);
        let link = home.path().join("link");
        symlink(&one, &link).unwrap();
        let (file, other) = (one.join(family.database), two.join(family.database));
        symlink(&file, &other).unwrap();
        let mut first = Server::start(&family, &one);
        assert!(first.runs(), "{}", first.said);
        let id = first.child.id();
        for folder in [&one, &link, &two] {
            Server::start(&family, folder).refused_by(id);
        }
        fs::remove_file(&other).unwrap();
        fs::hard_link(&file, &other).unwrap();
        Server::start(&family, &two).refused_by(id);
        // A command cannot open the database either.
        let mut list = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        if family.name == "ki" {
            fs::write(two.join("ki.toml"), "").unwrap();
        }
        list.args([family.name, "account", "list", family.folder_option]).arg(&two);
        let output = list.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let wanted = format!("the database is in use by process {id} on ");
        assert!(output.status.code() == Some(2) && said.contains(&wanted), "{said}");
        fs::remove_file(&other).unwrap();

        // A killed server no longer holds the database.
        symlink(&file, &other).unwrap();
        drop(first);
        let mut second = Server::start(&family, &two);
        assert!(second.runs(), "{}", second.said);
        let id = second.child.id();
        Server::start(&family, &one).refused_by(id);
    }
}

#[test]
fn of_two_servers_that_start_at_once_one_runs() {
    for family in FAMILIES {
        let (_home, [one, two]) = two_folders(&family);
        symlink(one.join(family.database), two.join(family.database)).unwrap();
        for _ in 0..5 {
            let mut servers = [&one, &two].map(|folder| Server::start(&family, folder));
            let runs = servers.each_mut().map(Server::runs);
            let said = servers.each_ref().map(|server| &server.said);
            assert_eq!(runs.iter().filter(|runs| **runs).count(), 1, "{said:?}");
            assert!(said.iter().any(|said| said.contains("in use by process ")), "{said:?}");
        }
    }
}

/// SQLite would look for the latest changes beside the other name.
#[test]
fn a_database_with_two_names_refused_by() {
    for family in FAMILIES {
        let (_home, [one, two]) = two_folders(&family);
        fs::hard_link(one.join(family.database), two.join(family.database)).unwrap();
        for folder in [&one, &two] {
            let mut server = Server::start(&family, folder);
            assert!(!server.runs(), "{}", server.said);
            assert!(server.said.contains("the database has 2 names"), "{}", server.said);
        }
        fs::remove_file(two.join(family.database)).unwrap();
        assert!(Server::start(&family, &one).runs());
    }
}
