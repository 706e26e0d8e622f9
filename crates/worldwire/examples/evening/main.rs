//! A modder's evening: finds an object in a generated archive of 40,000 files, changes it, puts it
//! back, and shows that nothing else changed.
//!
//! ```sh
//! cargo build --release -p worldwire
//! cargo run --release -p worldwire --example evening -- target/release/worldwire
//! ```
//!
//! Optional arguments: the number of files in the archive, and a working directory, which is kept.

mod play;

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().unwrap_or_else(|| "target/release/worldwire".into());
    let program = PathBuf::from(program);
    let count = match arguments.next() {
        Some(count) => count.to_string_lossy().parse()?,
        None => 40_000,
    };
    match arguments.next() {
        Some(home) => play::evening(&program, &PathBuf::from(home), count, true)?,
        None => play::evening(&program, tempfile::tempdir()?.path(), count, true)?,
    }
    Ok(())
}
