//! `worldwire client mxo`.

mod session;
mod step;
mod walk;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use worldwire_client::mxo::{Client, LoginError};
use worldwire_dissect::MxoObjects;
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::schema::Objects;
use worldwire_net::lossy::Conditions;
use worldwire_server::mxo::config::AUTH_PORT;
use worldwire_server::mxo::keys::{PUBLIC_KEY_FILE, read_public};
use worldwire_server::mxo::{CONFIG, MxoConfig, PORT};
use zeroize::Zeroizing;

use super::load::conclude;
use super::{host_and_port, numbered, wrong};
use crate::cli::{ClientMxo, Common};
use crate::command::{password, system};
use crate::definitions;
use crate::input;
use crate::output::{Failure, complain, print, printable, shown};
use session::{Problem, Session};
use step::Step;
pub(crate) use step::emotes;

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
    /// The simulated network of the first client, if there is one.
    conditions: Option<Conditions>,
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
            conditions: walk::conditions(arguments, 0),
        });
        match arguments.count {
            Some(count) => many(&setup, arguments, count, common).await,
            None => one(&setup, &steps, arguments, common).await,
        }
    })
}

/// Runs the steps in order and prints their results immediately.
async fn one(
    setup: &Arc<Setup>,
    steps: &[Step],
    arguments: &ClientMxo,
    common: &Common,
) -> Result<(), Failure> {
    let page = page(arguments).await?;
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
            if matches!(step, Step::Leave) {
                common.note("leave", "waiting for the server to release the character");
            }
            show(&session.take(step).await.map_err(failed)?)?;
        }
    }
    let is_equal = compare(page, &mut [session], arguments, common).await?;
    if is_equal { Ok(()) } else { Err(Failure::Input) }
}

/// The address of the status page, if the clients' views will be compared.
async fn page(arguments: &ClientMxo) -> Result<Option<SocketAddr>, Failure> {
    let Some(page) = &arguments.compare else { return Ok(None) };
    let configured = folder(arguments).map(config).transpose()?.map(|config| config.status);
    let page = Some(page).filter(|page| !page.is_empty()).or(configured.as_ref());
    let host = match arguments.server.as_deref().filter(|_| configured.is_none()) {
        Some(server) => host_and_port(server, AUTH_PORT)?.0,
        None => "127.0.0.1".to_owned(),
    };
    walk::page_of(page.map_or("", String::as_str), &host).await.map(Some)
}

/// Compares the views of all clients that are in the world with the server's, if there is a status
/// page. Then the clients leave.
async fn compare(
    page: Option<SocketAddr>,
    sessions: &mut [Session],
    arguments: &ClientMxo,
    common: &Common,
) -> Result<bool, Failure> {
    let clients: Vec<_> = sessions.iter_mut().filter_map(Session::take_client).collect();
    let compared = match page {
        Some(page) => {
            clients.iter().for_each(|client| client.with_view(|view| view.set_walking(false)));
            walk::at_rest(arguments, page, &clients, common).await
        }
        None => Ok(true),
    };
    let leaving: JoinSet<_> = clients.into_iter().map(Client::leave).collect();
    leaving.join_all().await;
    compared
}

/// Runs the steps once with each of this many clients.
async fn many(
    setup: &Arc<Setup>,
    arguments: &ClientMxo,
    count: u32,
    common: &Common,
) -> Result<(), Failure> {
    system::raise_file_limit();
    let page = page(arguments).await?;
    let (sender, mut sessions) = mpsc::unbounded_channel();
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for number in 1..=count {
        let steps = step::sequence(&words(arguments, Some(number))).map_err(wrong)?;
        let mut session = Session::new(Arc::clone(setup), Some(number));
        let sender = sender.clone();
        clients.spawn(async move {
            let began = Instant::now();
            let mut outcome = Ok(());
            for step in &steps {
                if let Err(problem) = session.take(step).await {
                    outcome = Err(format!("{}: {problem}", step.name()));
                    break;
                }
            }
            let took = began.elapsed();
            match page {
                // The clients' views are compared once all clients have finished.
                Some(_) if outcome.is_ok() => drop(sender.send(session)),
                _ => session.close().await,
            }
            outcome.map(|()| took)
        });
    }
    drop(sender);
    let concluded = conclude(clients, began, arguments.json).await;
    let mut all = Vec::new();
    while let Some(session) = sessions.recv().await {
        all.push(session);
    }
    let is_equal = compare(page, &mut all, arguments, common).await?;
    concluded.and(if is_equal { Ok(()) } else { Err(Failure::Input) })
}

/// A refusal by the server counts as a problem of the input; a missing server is a failure to run.
fn failure(step: &Step, problem: &Problem) -> Failure {
    let said = printable(&problem.to_string());
    match problem {
        Problem::Login(LoginError::Connect { .. } | LoginError::Random(_)) => Failure::Run(said),
        _ => {
            complain(step.name(), &said);
            Failure::Input
        }
    }
}

/// The words of the steps, for one of many clients or for the only one.
fn words(arguments: &ClientMxo, number: Option<u32>) -> Vec<String> {
    let usual = ["login", "+", "list"].map(str::to_owned);
    let words = if arguments.steps.is_empty() { &usual[..] } else { &arguments.steps };
    words.iter().map(|word| numbered(word, number)).collect()
}

/// The server's directory, if one is given.
fn folder(arguments: &ClientMxo) -> Option<&Path> {
    arguments.server.as_deref().map(Path::new).filter(|server| server.is_dir())
}

/// The configuration in a server's directory.
fn config(folder: &Path) -> Result<MxoConfig, Failure> {
    let file = folder.join(CONFIG);
    let config = MxoConfig::parse(&input::read_text(&file)?);
    config.map_err(|error| Failure::Run(format!("{}: {error}", shown(&file))))
}

/// The addresses of the auth, margin and world servers, as given or from the configuration in the
/// server's directory.
async fn addresses(arguments: &ClientMxo) -> Result<(SocketAddr, SocketAddr, SocketAddr), Failure> {
    let (auth, margin, game) = match folder(arguments) {
        Some(folder) => {
            let config = config(folder)?;
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
