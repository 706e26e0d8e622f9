//! The primitive types of TERA's messages.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`scalar`] | the names and sizes of all fixed-size types |
//! | [`angle`] | angles in units of pi/32768, alone and in vectors |
//! | [`skill`] | skill identifiers, in 64 and in 32 bits |
//! | [`text`] | UTF-16 text, including unpaired surrogates |

pub mod angle;
pub mod scalar;
pub mod skill;
pub mod text;

pub use angle::Angle;
pub use scalar::Scalar;
pub use skill::{Skill, SkillForm};
pub use text::{Text, TextView};
