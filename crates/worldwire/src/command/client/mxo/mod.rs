//! `worldwire client mxo`.

mod session;
mod step;
mod walk;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tokio::task::JoinSet;
use worldwire_client::mxo::LoginError;
use worldwire_dissect::MxoObjects;
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::schema::Objects;
use worldwire_server::mxo::config::AUTH_PORT;
use worldwire_server::mxo::keys::{PUBLIC_KEY_FILE, read_public};
use worldwire_server::mxo::{CONFIG, MxoConfig, PORT};
use zeroize::Zeroizing;

use super::host_and_port;
use super::load::conclude;
use crate::cli::{ClientMxo, Common};
use crate::command::{password, system};
use crate::definitions;
use crate::input;
use crate::output::{Failure, complain, print, printable, shown};
use session::{Problem, Session};
use step::Step;

/// Settings shared by all clients.
#[derive(Debug)]
struct Setup {
    auth: SocketAddr,
    margin: SocketAddr,
    game: SocketAddr,
    account: String,
    password: Zeroizing<String>,
    public_key: Option<PublicKeyFile>,
    objects: Arc<Objects>,
    patience: Duration,
    walks: bool,
}

pub(crate) fn run(arguments: &ClientMxo, common: &Common) -> Result<(), Failure> {
    let Some(account) = &arguments.account else { return walk::run(arguments, common) };
    let steps = step::sequence(&words(arguments, None)).map_err(wrong)?;
    let password = password::known(arguments.password_file.as_deref())?.into();
    let objects = definitions::load_from(&arguments.data, common)?.part::<MxoObjects>();
    let runtime = system::runtime()?;
    runtime.block_on(async {
        let (auth, margin, game) = addresses(arguments).await?;
        let setup = Arc::new(Setup {
            auth,
            margin,
            game,
            account: account.clone(),
            password,
            public_key: public_key(arguments)?,
            objects: Arc::clone(objects.objects()),
            patience: Duration::from_secs(arguments.patience.max(1)),
            walks: !arguments.still,
        });
        match arguments.count {
            Some(count) => many(&setup, arguments, count).await,
            None => one(&setup, &steps, arguments).await,
        }
    })
}

/// Runs the steps in order, and prints their results immediately.
async fn one(setup: &Arc<Setup>, steps: &[Step], arguments: &ClientMxo) -> Result<(), Failure> {
    let mut session = Session::new(Arc::clone(setup), None);
    for step in steps {
        let failed = |problem: Problem| failure(step, &problem);
        let show = |values: &[Json]| print(&session::shown(step, values, arguments.json));
        if let Step::Wait(seconds) = step {
            let until = tokio::time::Instant::now() + Duration::from_secs_f64(*seconds);
            while let Some(values) = session.happenings(until).await.map_err(failed)? {
                show(&values)?;
            }
        } else {
            show(&session.take(step).await.map_err(failed)?)?;
        }
    }
    session.close().await;
    Ok(())
}

/// Runs the steps once with each of this many clients.
async fn many(setup: &Arc<Setup>, arguments: &ClientMxo, count: u32) -> Result<(), Failure> {
    system::raise_file_limit();
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for number in 1..=count {
        let steps = step::sequence(&words(arguments, Some(number))).map_err(wrong)?;
        let mut session = Session::new(Arc::clone(setup), Some(number));
        clients.spawn(async move {
            let began = Instant::now();
            let mut outcome = Ok(());
            for step in &steps {
                if let Err(problem) = session.take(step).await {
                    outcome = Err(format!("{}: {problem}", step.name()));
                    break;
                }
            }
            session.close().await;
            outcome.map(|()| began.elapsed())
        });
    }
    conclude(clients, began, arguments.json).await
}

/// A refusal by the server is a problem of the input; a missing server is a failure to run.
fn failure(step: &Step, problem: &Problem) -> Failure {
    let said = printable(&problem.to_string());
    match problem {
        Problem::Login(LoginError::Io(_) | LoginError::Random(_)) => Failure::Run(said),
        _ => {
            complain(step.name(), &said);
            Failure::Input
        }
    }
}

/// The words of the steps, for one of many clients or for a single one.
fn words(arguments: &ClientMxo, number: Option<u32>) -> Vec<String> {
    let usual = ["login", "+", "list"].map(str::to_owned);
    let words = if arguments.steps.is_empty() { &usual[..] } else { &arguments.steps };
    words.iter().map(|word| numbered(word, number)).collect()
}

/// A text with the number of a client inserted.
fn numbered(text: &str, number: Option<u32>) -> String {
    number.map_or_else(|| text.to_owned(), |number| text.replace("{}", &number.to_string()))
}

fn wrong(problem: String) -> Failure {
    Failure::Run(printable(&problem))
}

/// The server's directory, if one is given.
fn folder(arguments: &ClientMxo) -> Option<&Path> {
    arguments.server.as_deref().map(Path::new).filter(|server| server.is_dir())
}

/// The addresses of auth, margin and world, as given or from the configuration in the server's
/// directory.
async fn addresses(arguments: &ClientMxo) -> Result<(SocketAddr, SocketAddr, SocketAddr), Failure> {
    let (auth, margin, game) = match folder(arguments) {
        Some(folder) => {
            let file = folder.join(CONFIG);
            let config = MxoConfig::parse(&input::read_text(&file)?);
            let config =
                config.map_err(|error| Failure::Run(format!("{}: {error}", shown(&file))))?;
            let of = |address: SocketAddr| (address.ip().to_string(), address.port());
            (of(config.auth_listen), of(config.margin_listen), of(config.game_listen))
        }
        None => {
            let server = arguments.server.as_deref().unwrap_or("127.0.0.1");
            let auth = host_and_port(server, AUTH_PORT)?;
            let margin = (auth.0.clone(), PORT);
            (auth, margin.clone(), margin)
        }
    };
    let given = |option: &Option<String>, usual: (String, u16)| match option {
        Some(address) => host_and_port(address, PORT),
        None => Ok(usual),
    };
    let has_margin = arguments.margin.is_some();
    let margin = given(&arguments.margin, margin)?;
    let game = given(&arguments.game, if has_margin { margin.clone() } else { game })?;
    Ok((resolved(auth).await?, resolved(margin).await?, resolved(game).await?))
}

async fn resolved((host, port): (String, u16)) -> Result<SocketAddr, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Run(format!("{host}: {error}"));
    let mut found =
        tokio::net::lookup_host((host.as_str(), port)).await.map_err(|error| failed(&error))?;
    found.next().ok_or_else(|| failed(&"no address found"))
}

/// The server's public key, if there is one.
fn public_key(arguments: &ClientMxo) -> Result<Option<PublicKeyFile>, Failure> {
    let read = |file: &Path| read_public(file).map_err(|error| Failure::Run(error.to_string()));
    match (&arguments.pubkey, folder(arguments)) {
        (Some(file), _) => {
            let missing = || Failure::Run(format!("{}: file not found", shown(file)));
            read(file)?.ok_or_else(missing).map(Some)
        }
        (None, Some(folder)) => read(&folder.join(PUBLIC_KEY_FILE)),
        (None, None) => Ok(None),
    }
}
