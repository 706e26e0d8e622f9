//! Tests of all formats: properties, vectors, and display.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod age_properties;
mod crypt_properties;
mod game_properties;
mod game_shown;
mod game_vectors;
mod properties;
mod real_sdl;
mod sdl_blobs;
mod sdl_properties;
mod sdl_states;
mod sdl_vectors;
mod shown;

/// A `plNetMsgGameMessage` with this payload, not compressed.
fn game_message(payload: &[u8]) -> Vec<u8> {
    let mut message = vec![0x6b, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    message.extend(u32::try_from(payload.len()).unwrap_or_default().to_le_bytes());
    message.extend(payload);
    // There is no delivery time.
    message.push(0);
    message
}
