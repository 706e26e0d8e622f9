//! `worldwire serve`.

mod ki;
mod mxo;
mod uru;

use tracing::level_filters::LevelFilter;

use crate::cli::{Common, Serve, ServeCommand};
use crate::output::Failure;
pub(crate) use mxo::key_of;

pub(crate) fn run(arguments: &Serve, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        ServeCommand::Ki(ki) => ki::run(ki, common),
        ServeCommand::Uru(uru) => uru::run(uru, common),
        ServeCommand::Mxo(mxo) => mxo::run(mxo, common),
    }
}

/// Starts a server's log on standard error.
fn begin_log(verbose: bool, common: &Common) {
    let level = match (verbose, common.quiet) {
        (true, _) => LevelFilter::DEBUG,
        (false, true) => LevelFilter::WARN,
        (false, false) => LevelFilter::INFO,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        // A log that cannot be written, for example on a full disk, must not end the server.
        .log_internal_errors(false)
        .init();
}
