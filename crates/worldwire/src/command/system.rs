//! Operating system services that commands need: files, threads, random numbers.

use tokio::runtime::Runtime;

use crate::output::{Failure, reason};

/// Raises the limit on open files, and therefore on connections, as far as an unprivileged process
/// is allowed to. The default is often 1,024.
pub(crate) fn raise_file_limit() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // If the limit stays as it was, excess connections are refused when they arrive.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Starts the async runtime of a server or client.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let cannot_start = |error| Failure::Run(format!("cannot start threads: {}", reason(&error)));
    Runtime::new().map_err(cannot_start)
}

/// Fills a buffer with random bytes from the system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), Failure> {
    let unavailable = |error| Failure::Run(format!("cannot get random numbers: {error}"));
    getrandom::fill(bytes).map_err(unavailable)
}
