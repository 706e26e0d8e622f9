//! The ends of the program that others choose.

use super::whole::give_up;

/// Ctrl-C, a closed terminal and a polite kill leave no half-written file behind. The exit code is
/// 128 and the number of the signal, as shells have it.
#[cfg(unix)]
pub(crate) fn clean_up_when_interrupted() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let mut wanted = vec![SIGINT, SIGTERM];
    if is_heard(SIGHUP) {
        wanted.push(SIGHUP);
    }
    // Without a handler the default action ends the program, which is nearly as good.
    if let Ok(mut signals) = Signals::new(wanted) {
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                give_up(128 + signal);
            }
        });
    }
}

/// Whether a signal would end the program: what was started with `nohup` is to live on when the
/// terminal is closed. Where the system does not tell, it is better not to listen.
#[cfg(unix)]
fn is_heard(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    ignored.is_some_and(|set| set & (1 << (signal - 1)) == 0)
}

/// Ctrl-C leaves no half-written file behind.
#[cfg(not(unix))]
pub(crate) fn clean_up_when_interrupted() {
    // Without a handler the default action ends the program, which is nearly as good.
    let _ = ctrlc::set_handler(|| give_up(130));
}
