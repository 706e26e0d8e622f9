//! `worldwire serve`.

mod uru;

use crate::cli::{Common, Serve, ServeCommand};
use crate::output::Failure;

pub(crate) fn run(arguments: &Serve, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        ServeCommand::Uru(uru) => uru::run(uru, common),
    }
}
