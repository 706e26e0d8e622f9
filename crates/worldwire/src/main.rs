//! worldwire: reads, writes and shows the wire protocols and data formats of preserved online
//! worlds.

mod cache;
mod cli;
mod command;
mod definitions;
mod input;
mod log;
mod output;
mod report;
mod settings;
mod types;

use std::process::ExitCode;

use crate::cli::Command;
use crate::input::guard::Guard;
use crate::output::Failure;

fn main() -> ExitCode {
    output::clean_up_when_interrupted();
    worldwire_dissect::quiet_defects();
    let outcome = Guard::requested().map_or_else(run, |guard| guard.run());
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Input) => ExitCode::from(1),
        // The reader of the output has closed it deliberately.
        Err(Failure::Pipe) => ExitCode::SUCCESS,
        Err(Failure::Run(message)) => {
            let lines: Vec<String> = message.lines().map(output::printable).collect();
            output::say(format_args!("worldwire: {}", lines.join("\n")));
            ExitCode::from(2)
        }
        // 128 plus the number of a signal.
        Err(Failure::Interrupted(code)) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
    }
}

/// Runs the command named on the command line.
fn run() -> Result<(), Failure> {
    let cli = cli::parse()?;
    log::start(&cli.common);
    tracing::debug!(profiles = ?cli.common.settings.profiles, "settings");
    match &cli.command {
        Command::Dissect(arguments) => command::dissect::run(arguments, &cli.common),
        Command::Capture(arguments) => command::live::run(arguments, &cli.common),
        Command::Export(arguments) => command::export::run(arguments, &cli.common),
        Command::Extcap(arguments) => command::extcap::run(arguments, &cli.common),
        Command::Filter(arguments) => command::filter::run(arguments, &cli.common),
        #[cfg(feature = "network")]
        Command::Inspect(arguments) => command::inspect::run(arguments, &cli.common),
        Command::Follow(arguments) => command::follow::run(arguments, &cli.common),
        Command::Diff(arguments) => command::diff::run(arguments, &cli.common),
        Command::Sanitize(arguments) => command::sanitize::run(arguments, &cli.common),
        Command::Secrets(arguments) => command::secrets::run(arguments, &cli.common),
        Command::Stats(arguments) => command::stats::run(arguments, &cli.common),
        Command::Doctor(arguments) => command::doctor::run(arguments, &cli.common),
        Command::Decode(arguments) => command::decode::run(arguments, &cli.common),
        Command::Encode(arguments) => command::encode::run(arguments, &cli.common),
        Command::Codecs(arguments) => command::codecs::run(arguments, &cli.common),
        Command::Conformance(arguments) => command::conformance::run(arguments, &cli.common),
        Command::Codegen(arguments) => command::codegen::run(arguments, &cli.common),
        #[cfg(feature = "network")]
        Command::Serve(arguments) => command::serve::run(arguments, &cli.common),
        #[cfg(feature = "network")]
        Command::Client(arguments) => command::client::run(arguments, &cli.common),
        #[cfg(feature = "network")]
        Command::Proxy(arguments) => command::proxy::run(arguments, &cli.common),
        #[cfg(feature = "network")]
        Command::Replay(arguments) => command::replay::run(arguments, &cli.common),
        Command::Ki(arguments) => command::ki::run(arguments, &cli.common),
        #[cfg(feature = "network")]
        Command::Mods(arguments) => command::mods::run(arguments, &cli.common),
        Command::Mxo(arguments) => command::mxo::run(arguments, &cli.common),
        Command::Tera(arguments) => command::tera::run(arguments, &cli.common),
        #[cfg(feature = "network")]
        Command::Uru(arguments) => command::uru::run(arguments, &cli.common),
        Command::Settings(arguments) => command::settings::run(arguments, &cli.common),
        Command::Man(arguments) => command::man::run(arguments),
        Command::Completions(arguments) => command::completions::run(arguments),
    }
}
