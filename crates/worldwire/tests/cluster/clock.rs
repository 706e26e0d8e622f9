//! The clock that all processes of a machine share.

use std::time::Duration;

/// How long the machine has been running, including the time it was suspended.
#[cfg(target_os = "linux")]
pub(crate) fn now() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::Boottime).try_into().unwrap()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn now() -> Duration {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}
