//! Databases for tests that use a store, in this crate and in others.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// The server that holds all databases of this process.
static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();

/// A test's private database, deleted when this is dropped.
pub(crate) struct Database {
    pub(crate) folder: TempDir,
    pub(crate) url: Option<String>,
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), url: None }
    }

    /// A new database on a private PostgreSQL server. Without PostgreSQL, prints that the test is
    /// skipped.
    pub(crate) fn postgres() -> Option<Self> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
        let server = SERVER.get_or_init(Postgres::start).as_ref()?;
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let url = server.make(&format!("shard{number}"));
        Some(Self { folder: tempfile::tempdir().unwrap(), url: Some(url) })
    }

    /// Ends the PostgreSQL server as a crash would, and starts it again.
    pub(crate) fn crash_server(&self) {
        let server = SERVER.get().and_then(Option::as_ref).unwrap();
        let [data, log] = ["data", "log"].map(|name| server.folder.join(name));
        let how = ["-m", "immediate", "-w", "restart"];
        server.run("pg_ctl", &[&["-D", path(&data), "-l", path(&log)], &how[..]].concat());
    }

    /// Runs SQL on a PostgreSQL server and returns the values of its rows, one row per line.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let mut command = Command::new(binaries().unwrap().join("psql"));
        command.arg(self.url.as_deref().unwrap()).args(["-qAtX", "-v", "ON_ERROR_STOP=1"]);
        let output = command.args(["-c", sql]).current_dir("/tmp").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Restores a dump of a PostgreSQL database into another database and returns the URL of that
    /// database.
    pub(crate) fn restore_dump(&self) -> String {
        let url = self.url.as_deref().unwrap();
        let dump = self.folder.path().join("dump.sql");
        let run = |program: &str, url: &str| {
            let mut command = Command::new(binaries().unwrap().join(program));
            let output = command.arg(url).arg("-f").arg(&dump).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program}: {said}");
        };
        run("pg_dump", url);
        self.sql(&format!("CREATE DATABASE {}_restored", self.name()));
        let restored = format!("{url}_restored");
        run("psql", &restored);
        restored
    }

    /// The socket of the PostgreSQL server.
    pub(crate) fn socket(&self) -> PathBuf {
        let host = self.url.as_deref().unwrap().split(['@', '/']).nth(3).unwrap();
        Path::new(&host.replace("%2F", "/")).join(".s.PGSQL.5432")
    }

    /// The name of the database on its server.
    pub(crate) fn name(&self) -> &str {
        self.url.as_deref().unwrap().rsplit('/').next().unwrap()
    }

    /// SQLite, and PostgreSQL if it is installed.
    pub(crate) fn all() -> Vec<Self> {
        [Some(Self::sqlite()), Self::postgres()].into_iter().flatten().collect()
    }
}

/// A PostgreSQL server in a private directory, with a socket there and no port. It ends with the
/// test, because its parent process ends then.
struct Postgres {
    folder: PathBuf,
    user: Option<&'static str>,
    bin: PathBuf,
}

impl Postgres {
    fn start() -> Option<Self> {
        let Some(bin) = binaries() else {
            skipped("there is no initdb");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("pg").tempdir_in("/tmp").unwrap().keep();
        let root = Command::new("id").arg("-u").output().unwrap().stdout.starts_with(b"0\n");
        let user = root.then_some("postgres");
        if root {
            let owner = Command::new("chown").args(["postgres"]).arg(&folder).status();
            if !owner.is_ok_and(|status| status.success()) {
                skipped("root cannot run it, and there is no user postgres");
                return None;
            }
        }
        let server = Self { folder, user, bin };
        let data = server.folder.join("data");
        server.run("initdb", &["-D", path(&data), "-U", "shard", "-A", "trust", "--no-sync"]);
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c max_connections=200",
            path(&server.folder)
        );
        let log = server.folder.join("log");
        server.run("pg_ctl", &["-D", path(&data), "-l", path(&log), "-w", "-o", &options, "start"]);
        // Ends the server and removes its directory when this process ends and closes the pipe.
        let watch = format!(
            "read nothing; '{}' -D '{}' -m immediate stop; rm -rf '{}'",
            path(&server.bin.join("pg_ctl")),
            path(&data),
            path(&server.folder),
        );
        let watcher = server
            .command("sh", &["-c", &watch])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .current_dir("/tmp")
            .spawn()
            .unwrap();
        std::mem::forget(watcher);
        Some(server)
    }

    fn make(&self, name: &str) -> String {
        self.run("createdb", &["-h", path(&self.folder), "-U", "shard", name]);
        let host = path(&self.folder).replace('/', "%2F");
        format!("postgres://shard@{host}/{name}")
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let program = self.bin.join(program);
        let output = self.command(path(&program), arguments);
        let output =
            { output }.current_dir("/tmp").stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", program.display());
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--clear-groups", program]);
                command
            }
            None => Command::new(program),
        };
        command.args(arguments);
        command
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// This bypasses the test harness, which hides the output of passing tests. In CI, where `.ci/run`
/// installs PostgreSQL, a skip is a failure.
fn skipped(reason: &str) {
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!is_ci, "the tests over PostgreSQL cannot run, because {reason}");
    let line = format!("SKIPPED: the tests over PostgreSQL, because {reason}\n");
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
}

/// The directory with PostgreSQL's programs.
fn binaries() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.extend(["/usr/local/bin", "/usr/bin"].map(PathBuf::from));
    folders.into_iter().find(|folder| folder.join("initdb").exists())
}
