//! The limit on open files, and therefore connections, of this process.

/// Raises the limit as far as unprivileged processes may; the default is often 1,024.
pub(crate) fn allow_most() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // With the old limit, excess connections are refused when they arrive.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
