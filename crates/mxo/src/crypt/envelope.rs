//! The length and the CRC at the start of every encrypted text, on both channels.

/// The total size of CRC, length and time, which the length field does not include.
pub(crate) const UNCOUNTED_BYTES: usize = 10;

/// Whether the length field matches decrypted bytes that still have their padding. If so, the key
/// was right, even if the bytes are damaged.
pub(super) fn has_right_length(padded: &[u8]) -> bool {
    let Some([low, high]) = padded.get(4..6).and_then(|length| length.first_chunk()) else {
        return false;
    };
    let wanted = UNCOUNTED_BYTES + usize::from(u16::from_le_bytes([*low, *high]));
    (1..=16).contains(&padded.len().saturating_sub(wanted)) && wanted < padded.len()
}

/// Whether the length field and the CRC match these bytes, without padding.
pub(crate) fn is_intact(plain: &[u8]) -> bool {
    let Some((crc, counted)) = plain.split_first_chunk() else { return false };
    let Some((length, _)) = counted.split_first_chunk() else { return false };
    let wanted = UNCOUNTED_BYTES + usize::from(u16::from_le_bytes(*length));
    wanted == plain.len() && u32::from_le_bytes(*crc) == crc32fast::hash(counted)
}
