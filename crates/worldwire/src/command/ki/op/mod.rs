//! `worldwire ki op`.

mod decode;
mod encode;
pub(super) mod encoder;
mod guess;
pub(crate) mod inputs;
pub(super) mod show;
pub(super) mod stream;
mod types;

pub(super) use encode::encoded_name;

use crate::cli::{Common, KiOp};
use crate::output::Failure;

pub(crate) fn run(arguments: &KiOp, common: &Common) -> Result<(), Failure> {
    match arguments {
        KiOp::Types { list, class, used_in, merge, json } => {
            types::run(list, class.as_deref(), used_in, merge, *json, common)
        }
        KiOp::Decode(arguments) => decode::run(arguments, common),
        KiOp::Encode(arguments) => encode::run(arguments, common),
        KiOp::Guess(arguments) => guess::run(arguments, common),
    }
}
