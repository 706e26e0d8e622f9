//! `worldwire client ki`.

mod load;
mod session;
mod step;

use std::path::Path;
use std::time::Duration;

use worldwire_client::ki::{ClientError, Settings};
use worldwire_ki::crypt::login::{Secret, password_hash};
use worldwire_server::ki::config::PORT;
use worldwire_server::ki::{CONFIG, KiConfig};

use super::{host_and_port, numbered, wrong};
use crate::cli::ClientKi;
use crate::command::{password, system};
use crate::input;
use crate::output::{Failure, complain, print, printable, shown};
use session::Session;
use step::Step;

/// Settings shared by all clients.
#[derive(Debug)]
struct Setup {
    /// The server: host and port.
    host: String,
    port: u16,
    settings: Settings,
    account: Option<(String, Secret)>,
    quiet: bool,
}

pub(crate) fn run(arguments: &ClientKi, quiet: bool) -> Result<(), Failure> {
    let steps = step::sequence(&words(arguments, None)).map_err(wrong)?;
    let logs_in = steps.iter().any(|step| matches!(step, Step::Login));
    if logs_in && arguments.account.is_none() {
        return Err(Failure::Run("step `login` needs --account NAME".into()));
    }
    let (host, port) = place(&arguments.server, arguments.udp)?;
    let account = match &arguments.account {
        Some(account) if logs_in => {
            let password = password::known(arguments.password_file.as_deref())?;
            Some((account.clone(), password_hash(&password)))
        }
        _ => None,
    };
    let settings = Settings {
        machine: arguments.machine,
        patience: Duration::from_secs(arguments.patience.max(1)),
        udp: arguments.udp,
        ..Settings::default()
    };
    let setup = Setup { host, port, settings, account, quiet };
    let runtime = system::runtime()?;
    match arguments.count {
        Some(count) => {
            system::raise_file_limit();
            runtime.block_on(load::run(setup, arguments, count))
        }
        None => runtime.block_on(script(&setup, &steps, arguments)),
    }
}

/// Runs the steps in order and prints their results immediately.
async fn script(setup: &Setup, steps: &[Step], arguments: &ClientKi) -> Result<(), Failure> {
    let mut session = Session::new(setup, None);
    for step in steps {
        let values = session.take(step).await.map_err(|error| failure(step, &error))?;
        print(&session::shown(step, &values, arguments.json))?;
    }
    session.close().await;
    Ok(())
}

/// A refusal by the server counts as a problem of the input; a missing server is a failure to run.
fn failure(step: &Step, error: &session::Problem) -> Failure {
    let said = printable(&error.to_string());
    match error {
        session::Problem::Client(
            ClientError::Connect { .. }
            | ClientError::NoOffer { .. }
            | ClientError::NoSession { .. },
        ) => Failure::Run(said),
        _ => {
            complain(step.name(), &said);
            Failure::Input
        }
    }
}

/// The words of the steps, for one of many clients or for the only one.
fn words(arguments: &ClientKi, number: Option<u32>) -> Vec<String> {
    let usual = ["login", "+", "validate", "+", "list", "+", "args"].map(str::to_owned);
    let words = if arguments.steps.is_empty() { &usual[..] } else { &arguments.steps };
    words.iter().map(|word| numbered(word, number)).collect()
}

/// The server's address, as given or from the configuration in its directory.
fn place(server: &str, udp: bool) -> Result<(String, u16), Failure> {
    let folder = Path::new(server);
    if folder.is_dir() {
        let file = folder.join(CONFIG);
        let text = input::read_text(&file)?;
        let wrong =
            |problem: &dyn std::fmt::Display| Failure::Run(format!("{}: {problem}", shown(&file)));
        let config = KiConfig::parse(&text).map_err(|error| wrong(&error))?;
        if !udp {
            return Ok((config.host(), config.listen.port()));
        }
        let address = config.udp_address().map_err(|error| wrong(&error))?;
        let address =
            address.ok_or_else(|| wrong(&"udp_listen is empty, so --udp cannot be used"))?;
        let host = match address.ip() {
            ip if ip.is_unspecified() => config.host(),
            ip => ip.to_string(),
        };
        return Ok((host, address.port()));
    }
    host_and_port(server, PORT)
}
