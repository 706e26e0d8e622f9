//! Writes the captures in `samples/`: our client and server state machines, connected by generated
//! packets.
//!
//! `cargo run -p worldwire --example samples` regenerates them; the bytes are always the same.

mod ki;
mod ki_files;
mod ki_objects;
mod ki_server;
mod ki_wad;
mod mxo;
mod mxo_crowd;
mod mxo_login;
mod tera;
mod uru;
mod uru_age;
mod uru_games;
mod uru_walk;

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use worldwire_capture::{CaptureWriter, LinkType, Timestamp};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The date of the samples: 2026-01-01 00:00 UTC.
const DAY: i64 = 1_767_225_600;

fn main() -> Outcome<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    std::fs::create_dir_all(&folder)?;
    ki::write(&folder)?;
    ki_objects::write(&folder)?;
    ki_server::write(&folder)?;
    ki_files::write(&folder)?;
    mxo::write(&folder)?;
    mxo_crowd::write(&folder)?;
    mxo_login::write(&folder)?;
    tera::write(&folder)?;
    ki_wad::write(&folder)?;
    uru::write(&folder)
}

/// A capture being written and its clock.
struct Tape {
    writer: CaptureWriter<File>,
    interface: u32,
    clock: Duration,
    /// How long a packet takes to arrive.
    step: Duration,
}

impl Tape {
    fn new(path: &Path, step: Duration) -> Outcome<Self> {
        let about = "Made by this project: its client and server talk to each other.";
        let mut writer = CaptureWriter::new(File::create(path)?, &[about])?;
        let interface = writer.interface(LinkType::ETHERNET)?;
        Ok(Self { writer, interface, clock: Duration::ZERO, step })
    }

    fn capture(&mut self, packets: Vec<Vec<u8>>) -> Outcome<()> {
        for packet in packets {
            self.clock += self.step;
            let nanos = i64::try_from(self.clock.as_nanos())?;
            let length = u32::try_from(packet.len())?;
            let time = Timestamp::from_parts(DAY, nanos);
            self.writer.packet(self.interface, time, &packet, length)?;
        }
        Ok(())
    }
}
