//! Clients that walk in a world without logins.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use worldwire_client::mxo::{
    Client, ConnectError, Difference, ExpectedViews, Settings, compare, query,
};
use worldwire_core::Error;
use worldwire_core::json::Style;
use worldwire_dissect::MxoObjects;
use worldwire_mxo::crypt::SessionKey;
use worldwire_net::lossy::Conditions;
use worldwire_server::mxo::PORT;

use crate::cli::{ClientMxo, Common};
use crate::command::client::host_and_port;
use crate::command::serve::key_of;
use crate::command::system;
use crate::definitions;
use crate::output::{Failure, complain, counted, print, say};

/// The default port of a status page.
const STATUS_PORT: u16 = 10_080;
/// The pause before comparing again.
const PAUSE: Duration = Duration::from_millis(250);
/// The maximum number of clients that enter at the same time.
const MAX_JOINING: usize = 64;
/// The pause before trying to reconnect again.
const RECONNECT_AFTER: Duration = Duration::from_secs(1);
/// The maximum number of differences listed per client.
const MAX_LISTED: usize = 5;

pub(crate) fn run(arguments: &ClientMxo, common: &Common) -> Result<(), Failure> {
    let objects = definitions::load_from(&arguments.data, common)?.part::<MxoObjects>();
    let mut first = [0; 8];
    system::random(&mut first)?;
    // Many JSON parsers keep only 53 bits of a number.
    let first = arguments.character.unwrap_or_else(|| u64::from_le_bytes(first) >> 16);
    let mut config = Settings::new(first);
    config.objects = Arc::clone(objects.objects());
    config.session = arguments.session.unwrap_or(config.session);
    if let Some(key) = &arguments.key {
        config.key = SessionKey::new(&key_of(key)?);
    }
    if count(arguments) > 1 {
        system::raise_file_limit();
    }
    let runtime = system::runtime()?;
    runtime.block_on(visit(arguments, &config, common))
}

/// How long clients walk by default.
const SECONDS: u64 = 10;
/// The default server.
const SERVER: &str = "127.0.0.1";

fn server(arguments: &ClientMxo) -> &str {
    arguments.server.as_deref().unwrap_or(SERVER)
}

fn count(arguments: &ClientMxo) -> u32 {
    arguments.count.unwrap_or(1)
}

async fn visit(arguments: &ClientMxo, config: &Settings, common: &Common) -> Result<(), Failure> {
    let (host, port) = host_and_port(server(arguments), PORT)?;
    let page = match &arguments.compare {
        Some(page) => Some(page_of(page, &host).await?),
        None => None,
    };
    let (mut visits, mut errors) = (Vec::new(), Vec::new());
    for (uid, joined) in join(arguments, &host, port, config).await {
        match joined {
            Ok(visit) => visits.push(visit),
            Err(error) => errors.push((uid, error)),
        }
    }
    if let (true, Some((_, error))) = (visits.is_empty(), errors.first()) {
        return Err(Failure::Run(format!("{}: {error}", server(arguments))));
    }
    // Clients that are connected carry on.
    let mut is_whole = errors.is_empty();
    tell_alike(errors.into_iter().map(|(uid, error)| (uid, error.to_string())));
    let until = Instant::now() + Duration::from_secs(arguments.seconds.unwrap_or(SECONDS));
    let mut staying = JoinSet::new();
    for visit in visits.drain(..) {
        let config = settings(arguments, config, visit.uid());
        staying.spawn(stay(visit, host.clone(), port, config, !arguments.still, until));
    }
    let mut returns = 0;
    while let Some(stayed) = staying.join_next().await {
        let Ok((visit, returned)) = stayed else { continue };
        is_whole &= visit.is_some();
        visits.extend(visit);
        returns += returned;
    }
    visits.sort_by_key(Client::uid);
    visits.iter().for_each(|visit| visit.with_view(|view| view.set_walking(false)));
    let is_equal = match page {
        Some(address) => at_rest(arguments, address, &visits, common).await?,
        None => true,
    };
    if arguments.views {
        for visit in visits.iter().take(if arguments.json { usize::MAX } else { 1 }) {
            print(&shown(visit, arguments.json))?;
        }
    }
    if !common.quiet {
        summary(&visits, returns);
    }
    let mut problems = Vec::new();
    for visit in &mut visits {
        let uid = visit.uid();
        if visit.is_over() {
            problems.push((uid, format!("the connection ended: {}", visit.ended().await)));
        }
        problems.extend(visit.with_view(|view| view.unread().map(unread)).map(|why| (uid, why)));
    }
    is_whole &= problems.is_empty();
    tell_alike(problems);
    let mut leaving = JoinSet::new();
    for visit in visits.into_iter().filter(|visit| !visit.is_over()) {
        leaving.spawn(visit.leave());
    }
    leaving.join_all().await;
    if is_equal && is_whole { Ok(()) } else { Err(Failure::Input) }
}

/// Reports the clients' problems. Clients with the same problem share a line.
fn tell_alike(problems: impl IntoIterator<Item = (u64, String)>) {
    for (problem, uid, count) in alike(problems) {
        match count {
            1 => complain(&format!("client {uid}"), &problem),
            _ => complain(&format!("{count} clients (the first is {uid})"), &problem),
        }
    }
}

/// The distinct problems in order of first appearance, each with the first client that had it and
/// the number of clients that had it.
fn alike(problems: impl IntoIterator<Item = (u64, String)>) -> Vec<(String, u64, usize)> {
    let mut places = HashMap::new();
    let mut all: Vec<(String, u64, usize)> = Vec::new();
    for (uid, problem) in problems {
        let place = *places.entry(problem.clone()).or_insert(all.len());
        match all.get_mut(place) {
            Some((_, _, count)) => *count += 1,
            None => all.push((problem, uid, 1)),
        }
    }
    all
}

/// Lets all clients enter, many at a time. Returns the results in the order of their characters.
async fn join(
    arguments: &ClientMxo,
    host: &str,
    port: u16,
    config: &Settings,
) -> Vec<(u64, Result<Client, ConnectError>)> {
    let room = Arc::new(Semaphore::new(MAX_JOINING));
    let mut joining = JoinSet::new();
    for number in 0..u64::from(count(arguments)) {
        let config = settings(arguments, config, config.uid.wrapping_add(number));
        let (host, room, walks) = (host.to_owned(), Arc::clone(&room), !arguments.still);
        joining.spawn(async move {
            let _turn = room.acquire_owned().await;
            let uid = config.uid;
            (number, uid, enter((host.as_str(), port), config, walks).await)
        });
    }
    let mut joined = joining.join_all().await;
    joined.sort_by_key(|(number, ..)| *number);
    joined.into_iter().map(|(_, uid, outcome)| (uid, outcome)).collect()
}

async fn enter(server: (&str, u16), config: Settings, walks: bool) -> Result<Client, ConnectError> {
    Client::connect(server, Settings { walks, ..config }).await
}

/// Keeps a client in the world until the given time, and reports why it had to reconnect. Returns
/// the client, unless it could not reconnect, and the number of times it reconnected.
async fn stay(
    mut client: Client,
    host: String,
    port: u16,
    config: Settings,
    walks: bool,
    until: Instant,
) -> (Option<Client>, u64) {
    let (name, mut returns) = (format!("client {}", config.uid), 0);
    loop {
        let Ok(end) = timeout_at(until, client.ended()).await else {
            return (Some(client), returns);
        };
        complain(&name, &format!("the connection ended: {end}; reconnecting"));
        client = loop {
            match enter((host.as_str(), port), config.clone(), walks).await {
                Ok(client) => break client,
                Err(error) if Instant::now() >= until => {
                    complain(&name, &format!("cannot reconnect: {error}"));
                    return (None, returns);
                }
                Err(_) => sleep(RECONNECT_AFTER).await,
            }
        };
        returns += 1;
    }
}

/// A client's own settings.
fn settings(arguments: &ClientMxo, config: &Settings, uid: u64) -> Settings {
    let number = uid.wrapping_sub(config.uid);
    Settings { uid, conditions: conditions(arguments, number), ..config.clone() }
}

/// The address of the status page: as given, or on the server. Checks that it responds before any
/// client starts walking.
pub(super) async fn page_of(page: &str, server: &str) -> Result<SocketAddr, Failure> {
    let (host, port) = match page {
        "" => (server.to_owned(), STATUS_PORT),
        page => host_and_port(page, STATUS_PORT)?,
    };
    let failed = |error: &dyn std::fmt::Display| Failure::Run(format!("--compare: {error}"));
    let found = tokio::net::lookup_host((host.as_str(), port)).await;
    let mut found = found.map_err(|error| failed(&format_args!("{host}: {error}")))?;
    let none = || failed(&format_args!("{host}: no address found"));
    let address = found.next().ok_or_else(none)?;
    query(address, "GET", "/status").await.map_err(|error| failed(&error))?;
    Ok(address)
}

/// Describes the operations that a client could not decode.
fn unread((count, why): (u64, &Error)) -> String {
    let sections = if count == 1 { "1 section" } else { &format!("{count} sections") };
    format!("{sections} could not be read; the first: {why}; --data must name the server's tables")
}

/// The requested network impairments, if any.
pub(super) fn conditions(arguments: &ClientMxo, number: u64) -> Option<Conditions> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "they are from 0 to 100"
    )]
    let [loss, duplication, reordering] =
        [arguments.loss, arguments.duplicate, arguments.reorder].map(|part| (part * 10.0) as u64);
    let delay = Duration::from_millis(arguments.delay);
    let is_bad = loss + duplication + reordering > 0 || !delay.is_zero();
    let seed = arguments.character.unwrap_or_default().wrapping_add(number);
    is_bad.then_some(Conditions { delay, loss, duplication, reordering, seed })
}

/// Waits until the world has settled and reports whether all clients see what they should.
pub(super) async fn at_rest(
    arguments: &ClientMxo,
    address: SocketAddr,
    visits: &[Client],
    common: &Common,
) -> Result<bool, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Run(error.to_string());
    let start = Instant::now();
    let patience = Duration::from_secs(arguments.patience);
    let mut is_equal = true;
    for visit in visits {
        loop {
            // Freezes objects for a minute.
            query(address, "POST", "/hold").await.map_err(|error| failed(&error))?;
            let truth =
                ExpectedViews::fetch(address, visit.uid()).await.map_err(|error| failed(&error))?;
            let (is_told, differences) = differences(visit, &truth)?;
            if is_told && truth.is_settled && differences.is_empty() {
                break;
            }
            if start.elapsed() > patience {
                is_equal = false;
                let client = format!("client {}", visit.uid());
                if differences.is_empty() {
                    complain(
                        &client,
                        "sees everything it should, but the server cannot confirm it",
                    );
                }
                for difference in differences {
                    complain(&client, &difference.to_string());
                }
                break;
            }
            sleep(PAUSE).await;
        }
    }
    query(address, "POST", "/go").await.map_err(|error| failed(&error))?;
    if is_equal && !common.quiet {
        let (count, took) = (visits.len(), start.elapsed().as_secs_f64());
        let clients =
            if count == 1 { "1 client sees".to_owned() } else { format!("{count} clients see") };
        say(format_args!(
            "worldwire: {clients} exactly what the server has, {took:.1} s after the last step"
        ));
    }
    Ok(is_equal)
}

/// Compares the client's view of the other objects with the server's. Also returns whether the
/// server knows the character's position.
fn differences(visit: &Client, truth: &ExpectedViews) -> Result<(bool, Vec<Difference>), Failure> {
    let mut text = String::new();
    let is_told = visit.with_view(|view| {
        view.replica().write_json(Style::default(), &mut text);
        view.is_acknowledged()
    });
    let own = serde_json::from_str(&text).map_err(|error| Failure::Run(error.to_string()))?;
    Ok((is_told, compare(&truth.views, &own, MAX_LISTED)))
}

fn shown(visit: &Client, is_json: bool) -> String {
    let mut text = String::new();
    visit.with_view(|view| {
        let replica = view.replica();
        if is_json {
            let _ = write!(text, "{{\"character\":{},\"views\":", visit.uid());
            replica.write_json(Style::default(), &mut text);
            text.push_str("}\n");
        } else {
            replica.write_text(&mut text);
        }
    });
    text
}

fn summary(visits: &[Client], returns: u64) {
    let (mut views, mut sections, mut bytes, mut odd) = (0, 0, 0, 0);
    let (mut arrived, mut lost, mut again, mut late) = (0, 0, 0, 0);
    for visit in visits {
        visit.with_view(|view| {
            let (more_sections, more_bytes) = view.received();
            (sections, bytes) = (sections + more_sections, bytes + more_bytes);
            (views, odd) = (views + view.replica().len(), odd + view.notices());
        });
        if let Some(counts) = visit.counts() {
            arrived += counts.arrived();
            lost += counts.lost();
            again += counts.duplicated();
            late += counts.late();
        }
    }
    say(format_args!(
        "worldwire: {}, {}, {}, {} of objects",
        counted(visits.len(), "client"),
        counted(views, "view"),
        counted(sections, "section"),
        counted(bytes, "byte"),
    ));
    if odd > 0 {
        say(format_args!("worldwire: {odd} invalid operations"));
    }
    if returns > 0 {
        say(format_args!("worldwire: {}", counted(returns, "reconnection")));
    }
    if arrived + lost > 0 {
        say(format_args!(
            "worldwire: {arrived} datagrams arrived, {again} of them twice and {late} late; \
             {lost} were lost"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::alike;

    #[test]
    fn clients_with_the_same_problem_share_a_line() {
        let problems = [(7, "full"), (8, "closed"), (9, "full"), (3, "full")];
        let problems = problems.map(|(uid, problem)| (uid, problem.to_owned()));
        let wanted = [("full".to_owned(), 7, 3), ("closed".to_owned(), 8, 1)];
        assert_eq!(alike(problems), wanted);
    }
}
