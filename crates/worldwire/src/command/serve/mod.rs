//! `worldwire serve`.

mod inspect;
mod ki;
mod mxo;
mod open_world;
mod uru;

use tokio::runtime::Runtime;

use crate::cli::{Common, Serve, ServeCommand};
use crate::command::system;
use crate::log;
use crate::output::Failure;
pub(crate) use open_world::key_of;

pub(crate) fn run(arguments: &Serve, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        ServeCommand::Ki(ki) => start(ki.verbose, common)?.block_on(ki::serve(ki, common)),
        ServeCommand::Uru(uru) => start(uru.verbose, common)?.block_on(uru::serve(uru, common)),
        ServeCommand::Mxo(mxo) if mxo.open_world => open_world::run(mxo, common),
        ServeCommand::Mxo(mxo) => mxo::run(mxo, common),
    }
}

/// Changes a setting if its option is given.
fn set<T>(value: &mut T, option: Option<T>) {
    if let Some(option) = option {
        *value = option;
    }
}

/// The warning that a server's configuration was missing and has been rewritten.
fn rewritten(file: &str, server: &str) -> String {
    format!(
        "{file} was missing, although this folder already holds {server}; the file has been \
         rewritten with default settings. Check them, or stop the server and restore your own file"
    )
}

/// Prepares the process for a server.
pub(super) fn start(verbose: bool, common: &Common) -> Result<Runtime, Failure> {
    log::start_of_server(verbose, common);
    system::raise_file_limit();
    system::runtime()
}
