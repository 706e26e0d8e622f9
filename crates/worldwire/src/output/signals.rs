//! Signals that end the program.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::stages::settle_all;
use super::whole::{hold_still, remove_unfinished};

/// The action to run on the first signal instead of ending the program. Its argument is the
/// signal's exit code.
type First = Box<dyn FnOnce(i32) + Send>;

static FIRST: Mutex<Option<First>> = Mutex::new(None);

/// While this value exists, the first signal runs the requested action; the second one ends the
/// program.
#[derive(Debug)]
pub(crate) struct Interruption(());

impl Interruption {
    /// Sets the action for the first signal. The action must be short. The last call wins.
    pub(crate) fn ask_first(act: impl FnOnce() + Send + 'static) -> Self {
        *first() = Some(Box::new(|_| act()));
        Self(())
    }

    /// Keeps the exit code of the first signal, so that the caller can end the program with it when
    /// that is safe.
    pub(crate) fn keep_first() -> (Self, Arc<OnceLock<i32>>) {
        let code = Arc::new(OnceLock::new());
        let kept = Arc::clone(&code);
        *first() = Some(Box::new(move |code| {
            // The action runs only once.
            let _ = kept.set(code);
        }));
        (Self(()), code)
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        *first() = None;
    }
}

fn first() -> std::sync::MutexGuard<'static, Option<First>> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles a signal.
fn interrupted(code: i32) {
    let act = first().take();
    match act {
        Some(act) => act(code),
        None => give_up(code),
    }
}

/// Deletes temporary files, keeps complete ones, and ends the program.
fn give_up(code: i32) -> ! {
    let _still = hold_still();
    remove_unfinished();
    if settle_all() {
        tell(b"worldwire: interrupted; complete files are in place, others are missing\n");
    }
    std::process::exit(code)
}

/// The signal raised in a thread that reads a mapped file after somebody has truncated it. It is
/// handled like the other signals; the thread receives it repeatedly until the program ends.
#[cfg(target_os = "linux")]
fn of_cut_files() -> i32 {
    // Rust's own handler ends the program immediately. Linux does not need it: a stack overflow
    // raises a different signal there.
    #[expect(unsafe_code, reason = "there is no safe way to the default action of a signal")]
    let _ = unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    libc::SIGBUS
}

/// Reports that a file was truncated.
#[cfg(target_os = "linux")]
fn cut() -> ! {
    tell(b"worldwire: a file was truncated while it was being read\n");
    give_up(2)
}

/// Prints without locking standard error, because a stopped thread may hold the lock.
#[cfg(unix)]
fn tell(text: &[u8]) {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    if let Ok(stderr) = std::io::stderr().as_fd().try_clone_to_owned() {
        let _ = std::fs::File::from(stderr).write_all(text);
    }
}

/// Prints a message. On these systems, threads that hold the lock on standard error keep running.
#[cfg(not(unix))]
fn tell(text: &[u8]) {
    use std::io::Write as _;

    let _ = std::io::stderr().write_all(text);
}

/// Ensures that Ctrl-C, a closed terminal or SIGTERM leaves no half-written file. The exit code is
/// 128 plus the signal number, as in shells, unless an [`Interruption`] handles the signal.
///
/// A mapped file that is truncated while in use is handled the same way, with exit code 2.
#[cfg(unix)]
pub(crate) fn clean_up_when_interrupted() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    // If the system does not report ignored signals, do not handle those that `nohup` blocks.
    let ignored = ignored();
    let is_heard = |signal: &i32| match ignored {
        Some(set) => set & (1 << (signal - 1)) == 0,
        None => *signal != SIGHUP,
    };
    #[cfg_attr(not(target_os = "linux"), expect(unused_mut, reason = "only Linux has one more"))]
    let mut wanted: Vec<i32> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(is_heard).collect();
    #[cfg(target_os = "linux")]
    wanted.push(of_cut_files());
    // Without a handler the default action ends the program, which is nearly as good.
    if let Ok(mut signals) = Signals::new(wanted) {
        std::thread::spawn(move || {
            for signal in signals.forever() {
                #[cfg(target_os = "linux")]
                if signal == libc::SIGBUS {
                    cut();
                }
                interrupted(128 + signal);
            }
        });
    }
}

/// A bit for each signal that the parent process chose to ignore: a program started with `nohup` or
/// in the background must survive it.
#[cfg(unix)]
fn ignored() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(ignored.trim(), 16).ok()
}

/// Ensures that Ctrl-C leaves no half-written file. The exit code is 130, unless an
/// [`Interruption`] handles it.
#[cfg(not(unix))]
pub(crate) fn clean_up_when_interrupted() {
    // Without a handler the default action ends the program, which is nearly as good.
    let _ = ctrlc::set_handler(|| interrupted(130));
}
