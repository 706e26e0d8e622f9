//! How many files, and so connections, this process may have open.

/// Raises the limit as far as the system lets anybody: many systems begin with 1,024.
pub(crate) fn allow_most() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // With the old limit, the rest is refused when it comes.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
