//! `worldwire client`.

mod ki;
mod load;
mod mxo;
mod uru;

use crate::cli::{Client, ClientCommand, Common};
use crate::output::{Failure, printable};
pub(crate) use mxo::emotes as mxo_emotes;
pub(crate) use uru::steps_help as uru_steps;

pub(crate) fn run(arguments: &Client, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        ClientCommand::Ki(ki) => ki::run(ki, common.quiet),
        ClientCommand::Uru(uru) => uru::run(uru, common),
        ClientCommand::Mxo(mxo) => mxo::run(mxo, common),
    }
}

/// A host and its port, or the default port.
fn host_and_port(server: &str, usual: u16) -> Result<(String, u16), Failure> {
    let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_owned();
    match server.rsplit_once(':') {
        Some((host, text)) if !host.contains(':') || host.ends_with(']') => {
            let port = text.parse().ok().filter(|port| *port > 0);
            let wanted = || Failure::Run(printable(&format!("{server}: {text:?} is not a port")));
            Ok((bare(host), port.ok_or_else(wanted)?))
        }
        _ => Ok((bare(server), usual)),
    }
}

/// A text with the number of a client inserted.
fn numbered(text: &str, number: Option<u32>) -> String {
    number.map_or_else(|| text.to_owned(), |number| text.replace("{}", &number.to_string()))
}

fn wrong(problem: String) -> Failure {
    Failure::Run(printable(&problem))
}
