//! Writes capture files record by record.

use std::io::Write;

use worldwire_core::Side;

use crate::error::CaptureError;
use crate::link::LinkType;
use crate::reader::SecretsKind;
use crate::time::Timestamp;

/// Writes a pcapng capture: little-endian, one section, times in nanoseconds.
///
/// The same calls produce the same bytes. Every record is written immediately and with one call, so
/// a file that is cut short by a crash contains all earlier records. Wrap a slow output in a
/// buffer.
///
/// ```
/// use worldwire_capture::{CaptureWriter, LinkType, Timestamp};
///
/// let mut file = Vec::new();
/// let mut writer = CaptureWriter::new(&mut file, &["an example"])?;
/// let interface = writer.interface(LinkType::ETHERNET)?;
/// writer.packet(interface, Timestamp::from_parts(12, 0), b"frame", 5)?;
/// # Ok::<(), worldwire_capture::CaptureError>(())
/// ```
#[derive(Debug)]
pub struct CaptureWriter<W> {
    output: W,
    interfaces: u32,
    /// The current block; its memory is reused.
    block: Vec<u8>,
}

impl<W: Write> CaptureWriter<W> {
    /// Starts a file with comments about it.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Unwritable`] for a comment over 65,535 bytes, or an I/O error.
    pub fn new(output: W, comments: &[&str]) -> Result<Self, CaptureError> {
        let mut writer = Self { output, interfaces: 0, block: Vec::new() };
        writer.begin(0x0A0D_0D0A);
        writer.block.extend_from_slice(&0x1A2B_3C4D_u32.to_le_bytes());
        writer.block.extend_from_slice(&[1, 0, 0, 0]);
        // The section's length is not known yet.
        writer.block.extend_from_slice(&[0xFF; 8]);
        for comment in comments {
            writer.option(1, comment.as_bytes())?;
        }
        writer.option(0, &[])?;
        writer.end()?;
        Ok(writer)
    }

    /// Describes the next interface and returns its number.
    ///
    /// # Errors
    ///
    /// An I/O error.
    pub fn interface(&mut self, link: LinkType) -> Result<u32, CaptureError> {
        self.named_interface(link, "")
    }

    /// Describes the next interface and names it. Wireshark shows the name for each of its packets.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Unwritable`] for a name over 65,535 bytes, or an I/O error.
    pub fn named_interface(&mut self, link: LinkType, name: &str) -> Result<u32, CaptureError> {
        self.begin(1);
        self.block.extend_from_slice(&link.0.to_le_bytes());
        // Two reserved bytes, and four for the maximum packet size: 0 is unlimited.
        self.block.extend_from_slice(&[0; 6]);
        if !name.is_empty() {
            self.option(2, name.as_bytes())?;
        }
        // Nanoseconds: ten to the power of -9.
        self.option(9, &[9])?;
        self.option(0, &[])?;
        self.end()?;
        let number = self.interfaces;
        self.interfaces = number.saturating_add(1);
        Ok(number)
    }

    /// Writes a packet. `original_length` is its length on the wire.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Unwritable`] for an undescribed interface, a time before 1970, or a packet
    /// that is too long; or an I/O error.
    pub fn packet(
        &mut self,
        interface: u32,
        time: Timestamp,
        data: &[u8],
        original_length: u32,
    ) -> Result<(), CaptureError> {
        self.packet_with_comments(interface, time, data, original_length, &[])
    }

    /// Writes a packet with comments about it, which Wireshark shows.
    ///
    /// # Errors
    ///
    /// Those of [`packet`](Self::packet), and [`CaptureError::Unwritable`] for a comment over
    /// 65,535 bytes.
    pub fn packet_with_comments(
        &mut self,
        interface: u32,
        time: Timestamp,
        data: &[u8],
        original_length: u32,
        comments: &[String],
    ) -> Result<(), CaptureError> {
        self.annotated_packet(interface, time, data, original_length, comments, None)
    }

    /// Writes a packet with comments and its direction, seen from the client.
    ///
    /// # Errors
    ///
    /// Those of [`packet_with_comments`](Self::packet_with_comments).
    pub fn packet_from(
        &mut self,
        from: Side,
        interface: u32,
        time: Timestamp,
        data: &[u8],
        comments: &[String],
    ) -> Result<(), CaptureError> {
        let length = length(data)?;
        self.annotated_packet(interface, time, data, length, comments, Some(from))
    }

    fn annotated_packet(
        &mut self,
        interface: u32,
        time: Timestamp,
        data: &[u8],
        original_length: u32,
        comments: &[String],
        from: Option<Side>,
    ) -> Result<(), CaptureError> {
        if interface >= self.interfaces {
            let what = "a packet on an interface that was not described";
            return Err(CaptureError::Unwritable { what, value: interface.into() });
        }
        let ticks = u64::try_from(time.nanos()).map_err(|_| too_early(time))?.to_le_bytes();
        let captured = length(data)?;
        self.begin(6);
        self.block.extend_from_slice(&interface.to_le_bytes());
        self.block.extend_from_slice(&ticks[4..]);
        self.block.extend_from_slice(&ticks[..4]);
        self.block.extend_from_slice(&captured.to_le_bytes());
        self.block.extend_from_slice(&original_length.to_le_bytes());
        self.padded(data);
        for comment in comments {
            self.option(1, comment.as_bytes())?;
        }
        if let Some(from) = from {
            // Flags: 1 is inbound, 2 is outbound.
            let flags: u32 = if from == Side::Client { 2 } else { 1 };
            self.option(2, &flags.to_le_bytes())?;
        }
        if !comments.is_empty() || from.is_some() {
            self.option(0, &[])?;
        }
        self.end()
    }

    /// Writes keys. They should precede the packets that they decrypt.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Unwritable`] for keys of 4 GiB, or an I/O error.
    pub fn secrets(&mut self, kind: SecretsKind, data: &[u8]) -> Result<(), CaptureError> {
        let count = length(data)?;
        self.begin(10);
        self.block.extend_from_slice(&kind.0.to_le_bytes());
        self.block.extend_from_slice(&count.to_le_bytes());
        self.padded(data);
        self.end()
    }

    /// Flushes the output.
    ///
    /// # Errors
    ///
    /// An I/O error.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        self.output.flush().map_err(CaptureError::Write)
    }

    /// Returns the output.
    #[must_use]
    pub fn into_inner(self) -> W {
        self.output
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend_from_slice(&kind.to_le_bytes());
        self.block.extend_from_slice(&[0; 4]);
    }

    fn end(&mut self) -> Result<(), CaptureError> {
        let total = u32::try_from(self.block.len() + 4).map_err(|_| too_long(&self.block))?;
        if let Some(place) = self.block.get_mut(4..8) {
            place.copy_from_slice(&total.to_le_bytes());
        }
        self.block.extend_from_slice(&total.to_le_bytes());
        self.output.write_all(&self.block).map_err(CaptureError::Write)
    }

    fn padded(&mut self, data: &[u8]) {
        self.block.extend_from_slice(data);
        let padded = self.block.len().next_multiple_of(4);
        self.block.resize(padded, 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) -> Result<(), CaptureError> {
        let count = u16::try_from(value.len()).map_err(|_| CaptureError::Unwritable {
            what: "text longer than 65,535 bytes",
            value: i64::try_from(value.len()).unwrap_or(i64::MAX),
        })?;
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&count.to_le_bytes());
        self.padded(value);
        Ok(())
    }
}

/// Writes a classic pcap capture: little-endian, times in nanoseconds.
///
/// The format has no place for comments, secrets or a second interface: see [`CaptureWriter`].
#[derive(Debug)]
pub struct ClassicWriter<W> {
    output: W,
    record: Vec<u8>,
}

impl<W: Write> ClassicWriter<W> {
    /// Starts a file whose packets all have this link type.
    pub fn new(mut output: W, link: LinkType) -> Result<Self, CaptureError> {
        let mut header = Vec::with_capacity(24);
        header.extend_from_slice(&0xA1B2_3C4D_u32.to_le_bytes());
        header.extend_from_slice(&[2, 0, 4, 0]);
        header.extend_from_slice(&[0; 8]);
        header.extend_from_slice(&LONGEST.to_le_bytes());
        header.extend_from_slice(&u32::from(link.0).to_le_bytes());
        output.write_all(&header).map_err(CaptureError::Write)?;
        Ok(Self { output, record: Vec::new() })
    }

    /// Writes a packet. `original_length` is its length on the wire.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Unwritable`] for a time before 1970 or after 2106, or a packet that is too
    /// long; or an I/O error.
    pub fn packet(
        &mut self,
        time: Timestamp,
        data: &[u8],
        original_length: u32,
    ) -> Result<(), CaptureError> {
        let nanos = time.nanos();
        let seconds =
            u32::try_from(nanos.div_euclid(1_000_000_000)).map_err(|_| too_early(time))?;
        let nanos = u32::try_from(nanos.rem_euclid(1_000_000_000)).map_err(|_| too_early(time))?;
        self.record.clear();
        for number in [seconds, nanos, length(data)?, original_length] {
            self.record.extend_from_slice(&number.to_le_bytes());
        }
        self.record.extend_from_slice(data);
        self.output.write_all(&self.record).map_err(CaptureError::Write)
    }

    /// Returns the output.
    #[must_use]
    pub fn into_inner(self) -> W {
        self.output
    }
}

fn length(data: &[u8]) -> Result<u32, CaptureError> {
    u32::try_from(data.len()).map_err(|_| too_long(data))
}

#[cold]
fn too_long(data: &[u8]) -> CaptureError {
    let value = i64::try_from(data.len()).unwrap_or(i64::MAX);
    CaptureError::Unwritable { what: "a record of 4 GiB or more", value }
}

#[cold]
fn too_early(time: Timestamp) -> CaptureError {
    let what = "a time before 1970 or after the format's last second";
    CaptureError::Unwritable { what, value: time.nanos() }
}

/// The maximum packet size in the header, which Wireshark treats as unlimited.
const LONGEST: u32 = 262_144;
