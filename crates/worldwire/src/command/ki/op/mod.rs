//! `worldwire ki op`.

mod batch;
mod decode;
mod encode;
pub(super) mod encoder;
mod guess;
pub(crate) mod inputs;
pub(super) mod show;
pub(super) mod stream;
mod types;

pub(super) use encode::encoded_name;

use std::path::Path;

use crate::cli::{Common, KiOp};
use crate::output::Failure;

pub(crate) fn run(arguments: &KiOp, common: &Common) -> Result<(), Failure> {
    match arguments {
        KiOp::Types { action: Some(action), .. } => super::type_lists::run(action, common),
        KiOp::Types { list, class, used_in, merge, json, .. } => {
            let list = list.as_deref().unwrap_or_else(|| Path::new("-"));
            types::run(list, class.as_deref(), used_in, merge, *json, common)
        }
        KiOp::Decode(arguments) => decode::run(arguments, common),
        KiOp::Encode(arguments) => encode::run(arguments, common),
        KiOp::Guess(arguments) => guess::run(arguments, common),
    }
}
