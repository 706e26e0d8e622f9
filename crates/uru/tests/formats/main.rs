//! Every format of the family: properties, vectors, and what is shown.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

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
