//! Writes the captures in `samples/`: our client and server machines, joined by made-up packets.
//!
//! `cargo run -p worldwire --example samples` writes them anew; the bytes are always the same.

mod ki;
mod uru;

use std::error::Error;
use std::path::Path;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// When the samples are said to have been captured: 2026-01-01 00:00 UTC.
const DAY: i64 = 1_767_225_600;

fn main() -> Outcome<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    std::fs::create_dir_all(&folder)?;
    ki::write(&folder)?;
    uru::write(&folder)
}
