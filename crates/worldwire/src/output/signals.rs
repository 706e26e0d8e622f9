//! Signals that end the program.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::stages::settle_all;
use super::whole::{hold_still, remove_unfinished};

/// What the first signal does instead of ending the program. It takes the exit code of that signal.
type First = Box<dyn FnOnce(i32) + Send>;

static FIRST: Mutex<Option<First>> = Mutex::new(None);

/// As long as this lives, the first signal is for whoever asked for it; the second one ends the
/// program.
#[derive(Debug)]
pub(crate) struct Interruption(());

impl Interruption {
    /// Sets the action for the first signal, which must be short. The last call wins.
    pub(crate) fn ask_first(act: impl FnOnce() + Send + 'static) -> Self {
        *first() = Some(Box::new(|_| act()));
        Self(())
    }

    /// Keeps the exit code of the first signal, for who ends the program with it when that is safe.
    pub(crate) fn keep_first() -> (Self, Arc<OnceLock<i32>>) {
        let code = Arc::new(OnceLock::new());
        let kept = Arc::clone(&code);
        *first() = Some(Box::new(move |code| {
            // It is heard once.
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

/// A signal came.
fn interrupted(code: i32) {
    let act = first().take();
    match act {
        Some(act) => act(code),
        None => give_up(code),
    }
}

/// Takes the temporary files away, leaves what is whole, and ends the program.
fn give_up(code: i32) -> ! {
    let _still = hold_still();
    remove_unfinished();
    if settle_all() {
        tell(b"worldwire: interrupted; complete files are in place, others are missing\n");
    }
    std::process::exit(code)
}

/// The signal of a thread that read bytes of a mapped file that somebody made shorter meanwhile. It
/// is heard as the others are; the thread gets it again and again until the program ends.
#[cfg(target_os = "linux")]
fn of_cut_files() -> i32 {
    // What Rust does about this signal by itself ends the program at once; on Linux it is of no use
    // there, since a stack that is too deep gives another one.
    #[expect(unsafe_code, reason = "there is no safe way to the default action of a signal")]
    let _ = unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    libc::SIGBUS
}

/// Says that a file was cut.
#[cfg(target_os = "linux")]
fn cut() -> ! {
    tell(b"worldwire: a file was truncated while it was being read\n");
    give_up(2)
}

/// Says something without the lock of standard error, which a thread that stopped may have.
#[cfg(unix)]
fn tell(text: &[u8]) {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    if let Ok(stderr) = std::io::stderr().as_fd().try_clone_to_owned() {
        let _ = std::fs::File::from(stderr).write_all(text);
    }
}

/// Writes a message; here, threads that hold the lock of standard error continue.
#[cfg(not(unix))]
fn tell(text: &[u8]) {
    use std::io::Write as _;

    let _ = std::io::stderr().write_all(text);
}

/// Ctrl-C, a closed terminal and a polite kill leave no half-written file behind. The exit code is
/// 128 and the number of the signal, as shells have it; unless the signal was asked for, see
/// [`Interruption`].
///
/// So does a mapped file that somebody shortens meanwhile, with the exit code 2.
#[cfg(unix)]
pub(crate) fn clean_up_when_interrupted() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    // Where the system does not tell, it is better not to listen for what `nohup` keeps away.
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

/// Ctrl-C leaves no half-written file behind. The exit code is 130, unless it was asked for, see
/// [`Interruption`].
#[cfg(not(unix))]
pub(crate) fn clean_up_when_interrupted() {
    // Without a handler the default action ends the program, which is nearly as good.
    let _ = ctrlc::set_handler(|| interrupted(130));
}
