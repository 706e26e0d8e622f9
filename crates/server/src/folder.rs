//! Files that the first start writes to a server's directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use tokio::task::spawn_blocking;
pub(crate) use worldwire_net::reason;

/// Writes a new file that only its owner can read. Fails if the file exists.
pub(crate) fn write_secret(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(file)?;
    out.write_all(bytes)?;
    out.sync_all()
}

/// Writes a file atomically, whether it exists or not.
pub(crate) fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = file.with_extension("part");
    std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, file))
}

/// Opens a file for writing. If it does not exist, creates one that only its owner can access.
pub(crate) fn private_file(file: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)
}

/// Runs file I/O on a thread for blocking work, so that it does not hold up the runtime.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))
}

/// The mode of a file if users other than its owner can read it. `None` on systems other than Unix,
/// where users' directories are private by default.
pub(crate) fn open_mode(file: &Path) -> Option<u32> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(file).ok()?.permissions().mode() & 0o7777;
        (mode & 0o077 != 0).then_some(mode)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}
