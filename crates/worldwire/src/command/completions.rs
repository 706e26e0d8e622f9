//! `worldwire completions`.

use clap::CommandFactory;

use crate::cli::{Cli, Completions};
use crate::output::{Failure, print};

pub(crate) fn run(arguments: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    clap_complete::generate(arguments.shell, &mut command, "worldwire", &mut script);
    print(&String::from_utf8_lossy(&script))
}
