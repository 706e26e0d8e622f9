//! Signals that end the program.

use super::whole::give_up;

/// Ctrl-C, a closed terminal and a polite kill leave no half-written file behind. The exit code is
/// 128 and the number of the signal, as shells have it.
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
            if let Some(signal) = signals.forever().next() {
                give_up(128 + signal);
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

/// Ctrl-C leaves no half-written file behind.
#[cfg(not(unix))]
pub(crate) fn clean_up_when_interrupted() {
    // Without a handler the default action ends the program, which is nearly as good.
    let _ = ctrlc::set_handler(|| give_up(130));
}
