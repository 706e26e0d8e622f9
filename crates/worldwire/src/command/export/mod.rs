//! `worldwire export`.

mod files;
pub(super) mod pcapng;
mod plain;
mod wireshark;

use crate::cli::{Common, Export};
use crate::output::Failure;

pub(crate) fn run(command: &Export, common: &Common) -> Result<(), Failure> {
    match command {
        Export::Files(arguments) => files::run(arguments, common),
        Export::Pcapng(arguments) => pcapng::run(arguments, common),
        Export::Wireshark(arguments) => wireshark::run(arguments, common),
    }
}
