//! `worldwire inspect`.

use std::io::IsTerminal;
use std::iter::once;
use std::path::Path;
use std::process::{Command, Stdio};

use worldwire_inspect::{InspectError, Inspector, Settings};
use worldwire_net::Stop;

use super::{capture, system};
use crate::cli::{Common, Inspect};
use crate::definitions;
use crate::output::{Failure, Interruption, complain, print, reason, say, shown};

pub(crate) fn run(arguments: &Inspect, common: &Common) -> Result<(), Failure> {
    if arguments.file == Path::new("-") {
        let problem = "-: the page reads the capture again and again; save it to a file first";
        return Err(Failure::Run(problem.to_owned()));
    }
    let definitions = definitions::load(&arguments.knowledge.data, common)?;
    let options = capture::options(once(&*arguments.file), &arguments.knowledge, definitions)?;
    let settings =
        Settings { listen: arguments.listen, follow: arguments.is_growing, ..Settings::default() };
    system::runtime()?.block_on(async {
        let inspector = Inspector::open(&arguments.file, options, settings).await;
        let inspector = inspector.map_err(|error| failed(&error))?;
        let stop = Stop::new();
        let signal = stop.signal();
        let interruption = Interruption::ask_first(move || stop.stop());
        let url = inspector.url();
        print(&format!("{url}\n"))?;
        if !common.quiet {
            if !arguments.listen.ip().is_loopback() {
                say("worldwire: the page is not encrypted: anyone on the network can read it");
            }
            say("worldwire: Ctrl-C stops the server");
        }
        if arguments.open && std::io::stdout().is_terminal() {
            open(&url, common);
        }
        let served = inspector.serve(signal).await;
        drop(interruption);
        served.map_err(|error| failed(&error))
    })
}

pub(super) fn failed(error: &InspectError) -> Failure {
    match error {
        InspectError::File { path, source } => {
            Failure::Run(format!("{}: {}", shown(path), reason(source)))
        }
        InspectError::Listen { address, source } => {
            Failure::Run(format!("--listen {address}: {}", reason(source)))
        }
        InspectError::NoCapture { path, source } => {
            complain(&path.display().to_string(), &source.to_string());
            Failure::Input
        }
        other => Failure::Run(other.to_string()),
    }
}

/// Opens the default browser.
fn open(url: &str, common: &Common) {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let mut browser = Command::new(program);
    browser.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = browser.spawn() {
        common.note(program, &format!("{}; open the address yourself", reason(&error)));
    }
}
