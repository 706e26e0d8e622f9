//! Catches panics, so that a bug in worldwire affects only the message in which it occurs.

use core::cell::{Cell, RefCell};
use core::fmt;
use std::any::Any;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use worldwire_core::value::push_hex;

/// A caught panic. Whatever the input, it is a bug in worldwire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// The panic message, in one line.
    message: String,
    /// File and line, if [`quiet_defects`] was called.
    location: Option<String>,
}

/// The start of every report.
pub(crate) const REPORT: &str = "this is a bug in worldwire; please report it";
/// The maximum number of message bytes shown in a report.
const MAX_BYTES: usize = 256;
/// The maximum number of characters of the panic message shown in a report.
const MAX_TEXT: usize = 300;

thread_local! {
    /// The number of calls of [`catch_defect`] that are active on this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The location of the panic that is being caught.
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `act` and turns a panic into a [`Defect`]. The panic can leave data that `act` was changing
/// in an inconsistent state, so callers drop such data.
pub fn catch_defect<R>(act: impl FnOnce() -> R) -> Result<R, Defect> {
    DEPTH.set(DEPTH.get() + 1);
    let outcome = catch_unwind(AssertUnwindSafe(act));
    DEPTH.set(DEPTH.get() - 1);
    outcome.map_err(|panic| Defect::new(&*panic))
}

/// Silences panics that [`catch_defect`] catches and adds their source location to the report.
/// Other panics are handled as before. This changes the global panic hook, so only programs should
/// call it.
pub fn quiet_defects() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if DEPTH.get() == 0 {
                return usual(info);
            }
            LOCATION.set(
                info.location().map(|location| format!("{}:{}", location.file(), location.line())),
            );
        }));
    });
}

impl Defect {
    fn new(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message").chars().take(MAX_TEXT);
        // A panic message can quote the input. Escaping keeps it on one line.
        let message = text.flat_map(char::escape_debug).collect();
        Self { message, location: LOCATION.take() }
    }

    /// The line to report, which names `what` was being read and shows its bytes.
    #[must_use]
    pub fn report(&self, what: &str, bytes: &[u8]) -> String {
        let mut report = format!("{REPORT}: {what}: {self}");
        if !bytes.is_empty() {
            let shown = bytes.get(..MAX_BYTES).unwrap_or(bytes);
            report.push_str("; its bytes (possibly secret): ");
            push_hex(&mut report, shown);
            if shown.len() < bytes.len() {
                report.push_str(&format!("... ({} bytes)", bytes.len()));
            }
        }
        report
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(location) => write!(f, "panic at {location}: {}", self.message),
            None => write!(f, "panic: {}", self.message),
        }
    }
}

impl std::error::Error for Defect {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_report_of_bounded_length() {
        quiet_defects();
        let defect = catch_defect(|| panic!("odd\n{}", "x".repeat(1000))).unwrap_err();
        let report = defect.report("message uru.auth", &[0xAB; 1000]);
        assert!(report.contains("message uru.auth: panic at crates"), "{report}");
        assert!(report.contains("defect.rs:"), "{report}");
        assert!(report.contains("odd\\nxxx") && report.ends_with("abab... (1000 bytes)"));
        assert!(report.len() < 1200 && !report.contains('\n'));
        assert_eq!(catch_defect(|| 7), Ok(7));
    }
}
