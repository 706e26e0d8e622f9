//! Tests of all formats: properties, vectors, and display.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod age_properties;
mod crypt_properties;
mod game_properties;
mod game_shown;
mod game_vectors;
mod properties;
mod real_sdl;
mod sdl_properties;
mod sdl_states;
mod sdl_vectors;
mod shown;
