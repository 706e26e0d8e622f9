//! Signals that end the program.

use std::sync::{Mutex, PoisonError};

use super::whole::give_up;

/// What the first signal does instead of ending the program.
static FIRST: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// As long as this lives, the first signal ends the input rather than the program; the second one
/// ends the program.
#[derive(Debug)]
pub(crate) struct Interruption(());

impl Interruption {
    /// Chooses what the first signal does: something short. One at a time; the last one counts.
    pub(crate) fn ask_first(act: impl FnOnce() + Send + 'static) -> Self {
        *first() = Some(Box::new(act));
        Self(())
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        *first() = None;
    }
}

fn first() -> std::sync::MutexGuard<'static, Option<Box<dyn FnOnce() + Send>>> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A signal came.
fn interrupted(code: i32) {
    let act = first().take();
    match act {
        Some(act) => act(),
        None => give_up(code),
    }
}

/// Ctrl-C, a closed terminal and a polite kill leave no half-written file behind. The exit code is
/// 128 and the number of the signal, as shells have it; unless the signal ended the input only, see
/// [`Interruption`].
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
    let wanted: Vec<i32> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(is_heard).collect();
    // Without a handler the default action ends the program, which is nearly as good.
    if let Ok(mut signals) = Signals::new(wanted) {
        std::thread::spawn(move || {
            for signal in signals.forever() {
                interrupted(128 + signal);
            }
        });
    }
}

/// The signals that whoever started the program wants it to ignore, a bit each: what was started
/// with `nohup` or in the background is to live on.
#[cfg(unix)]
fn ignored() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(ignored.trim(), 16).ok()
}

/// Ctrl-C leaves no half-written file behind. The exit code is 130, unless it ended the input only,
/// see [`Interruption`].
#[cfg(not(unix))]
pub(crate) fn clean_up_when_interrupted() {
    // Without a handler the default action ends the program, which is nearly as good.
    let _ = ctrlc::set_handler(|| interrupted(130));
}
