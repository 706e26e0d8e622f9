//! Child processes of a test. A child runs another test of the same executable and prints lines.

#![allow(dead_code, reason = "children and tests use their parts")]

use std::future::Future;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use worldwire_net::{Signal, Stop};

/// The content of `server.key` in the directories of processes that share a database.
const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707\n";

/// A command that runs this test in a child.
pub(crate) fn command(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The lines that a child prints until it ends.
pub(crate) fn lines(child: &mut Child) -> impl Iterator<Item = String> + Send + use<> {
    BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok)
}

/// The items that a thread reads from a child's lines.
pub(crate) fn listen<T: Send + 'static>(
    child: &mut Child,
    read: impl FnMut(String) -> Option<T> + Send + 'static,
) -> Receiver<T> {
    let lines = lines(child);
    let (sender, receiver) = channel();
    std::thread::spawn(move || lines.filter_map(read).try_for_each(|line| sender.send(line)));
    receiver
}

/// Sends a signal, such as `-STOP`.
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Writes the key that all processes share into a directory.
pub(crate) fn write_key(folder: &Path) {
    let key = folder.join("server.key");
    std::fs::write(&key, KEY).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

/// In a child: prints a line. The first one continues a line that the test harness has already
/// started.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may be gone.
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}

/// In a child: does the work on a runtime.
pub(crate) fn run(work: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(work);
}

/// In a child: works until the parent closes the child's standard input. Lines from the parent are
/// orders.
pub(crate) fn serve(obey: impl FnMut(String) + Send + 'static, work: impl AsyncFnOnce(Signal)) {
    let stop = Stop::new();
    let signal = stop.signal();
    // The thread ends with the process.
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).for_each(obey);
        stop.stop();
    });
    run(work(signal));
}
