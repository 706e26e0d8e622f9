//! A `nats-server` for a test.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Debian installs it in a directory that is only on root's path.
const PROGRAMS: [&str; 2] = ["nats-server", "/usr/sbin/nats-server"];
/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// The server, which is killed when this is dropped.
pub(crate) struct NatsServer {
    program: &'static str,
    pub(crate) port: u16,
    /// A file with additional settings.
    settings: Option<PathBuf>,
    server: Option<Child>,
}

impl NatsServer {
    /// Starts a server. `None` if it is not installed, which is a failure in CI, because `.ci/run`
    /// installs it.
    pub(crate) fn start(settings: Option<PathBuf>) -> Option<Self> {
        let is_there = |program: &&str| {
            let version = Command::new(program).arg("--version").output();
            version.is_ok_and(|version| version.status.success())
        };
        let Some(program) = PROGRAMS.into_iter().find(is_there) else {
            let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
            assert!(!is_ci, "the tests over NATS cannot run, because there is no nats-server");
            let line = "SKIPPED: the tests over NATS, because there is no nats-server\n";
            // This bypasses the test harness, which hides the output of passing tests.
            std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
            return None;
        };
        let port =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let mut server = Self { program, port, settings, server: None };
        server.run();
        Some(server)
    }

    /// Starts the server on the same port as before.
    pub(crate) fn run(&mut self) {
        let mut command = Command::new(self.program);
        command.args(["--addr", "127.0.0.1", "--port", &self.port.to_string()]);
        command.args(self.settings.iter().flat_map(|file| [Path::new("--config"), file]));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(command.spawn().unwrap());
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(start.elapsed() < PATIENCE, "the bus does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let server = self.server.as_ref().unwrap();
        let sent = Command::new("kill").args([name, &server.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
