//! `worldwire serve ki`.

use std::path::{PathBuf, absolute};

use worldwire_net::Stop;
use worldwire_server::ki::realm::Realm;
use worldwire_server::ki::{KiConfig, LoginServer, Standby, Start};

use super::inspect::{Page, Shown};
use super::{rewritten, set};
use crate::cli::{Common, ServeKi};
use crate::output::{Failure, Interruption, complain, say, shown};

/// The data that a login server's page shows.
const SHOWN: Shown = Shown {
    kind: "ki",
    lists: &[("Accounts", r#"{"request":"accounts"}"#), ("Totals", r#"{"request":"census"}"#)],
    views: &[],
    allowed: &["kick"],
    kicked: "name",
    account: "name",
};

pub(super) async fn serve(arguments: &ServeKi, common: &Common) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Run(error.to_string());
    let secrets = match &arguments.secrets {
        Some(file) => Some(absolute(file).map_err(|error| Failure::io(file, &error))?),
        None => None,
    };
    let others = arguments
        .other_server
        .iter()
        .map(|folder| absolute(folder).map_err(|error| Failure::io(folder, &error)));
    let others: Vec<PathBuf> = others.collect::<Result<_, _>>()?;
    let start = Start { change: Some(Box::new(changes(arguments, others))), secrets };
    let folder = &arguments.folder;
    let stop = Stop::new();
    let signal = stop.signal();
    // Handle Ctrl-C before printing anything: a script may treat the output as its signal to
    // continue.
    let (server, interruption) = if arguments.standby {
        survive_refresh_signal();
        let standby = Standby::open(folder, start).await.map_err(|error| failed(&error))?;
        let interruption = Interruption::ask_first(move || stop.stop());
        if !common.quiet {
            say(
                "worldwire: this standby takes over the login server when the process that serves it fails \
                 or stops; Ctrl-C stops the standby",
            );
        }
        let server = standby.lead(signal.clone()).await.map_err(|error| failed(&error))?;
        let Some(server) = server else {
            if !common.quiet {
                say("worldwire: the standby stopped");
            }
            return Ok(());
        };
        (server, interruption)
    } else {
        let server = LoginServer::open(folder, start).await.map_err(|error| failed(&error))?;
        (server, Interruption::ask_first(move || stop.stop()))
    };
    let refreshing = tokio::spawn(refresh_on_signal(server.realm().clone()));
    let page = match arguments.inspect {
        Some(at) => {
            let status = server.status_address();
            Some(Page::open::<Realm>(at, folder, SHOWN, status, signal.clone()).await?)
        }
        None => None,
    };
    introduce(&server, arguments, common);
    let served = server.serve(signal).await;
    if let Some(page) = page {
        page.ended().await;
    }
    refreshing.abort();
    drop(interruption);
    served.map_err(|error| failed(&error))?;
    if !common.quiet {
        say(format_args!("worldwire: the login server stopped"));
    }
    Ok(())
}

/// The configuration given by the options.
fn changes(arguments: &ServeKi, others: Vec<PathBuf>) -> impl FnOnce(&mut KiConfig) + Send + use<> {
    let ServeKi { listen, status, players, per_address, accept_time, keep_alive, .. } = *arguments;
    let ServeKi { afk, ck2_life, no_status, udp_listen, .. } = *arguments;
    let public_address = arguments.public_address.clone();
    let machines = arguments.ban_machine.clone();
    move |config| {
        if let Some(status) = status {
            config.status = status.to_string();
        }
        if no_status {
            config.status.clear();
        }
        if let Some(udp_listen) = udp_listen {
            config.udp_listen = udp_listen.to_string();
        }
        for other in others {
            if !config.other_servers.contains(&other) {
                config.other_servers.push(other);
            }
        }
        config.login.banned_machines.extend(machines);
        set(&mut config.listen, listen);
        set(&mut config.public_address, public_address);
        set(&mut config.limits.players, players);
        set(&mut config.limits.connections_per_address, per_address);
        set(&mut config.session.accept_seconds, accept_time);
        set(&mut config.session.keep_alive_seconds, keep_alive);
        set(&mut config.session.afk_seconds, afk);
        set(&mut config.login.ck2_seconds, ck2_life);
    }
}

/// Ignores SIGUSR1, which would otherwise end a standby. A standby has no sessions to make stale.
#[cfg(unix)]
fn survive_refresh_signal() {
    use tokio::signal::unix::{SignalKind, signal};

    // The handler stays installed, even though nothing waits for the signal.
    let _ = signal(SignalKind::user_defined1());
}

#[cfg(not(unix))]
fn survive_refresh_signal() {}

/// Makes all sessions stale whenever SIGUSR1 arrives.
#[cfg(unix)]
async fn refresh_on_signal(realm: Realm) {
    use tokio::signal::unix::{SignalKind, signal};

    // Without a handler, the signal would end the program. The operators' socket offers the same
    // function.
    let Ok(mut signals) = signal(SignalKind::user_defined1()) else { return };
    while signals.recv().await.is_some() {
        let connections = realm.refresh(None).unwrap_or_default();
        tracing::info!(connections, "sessions are stale");
    }
}

#[cfg(not(unix))]
async fn refresh_on_signal(_: Realm) {}

/// Prints the server's addresses and, on the first start, what to do next.
fn introduce(server: &LoginServer, arguments: &ServeKi, common: &Common) {
    let folder = shown(&arguments.folder);
    if server.had_no_config() {
        complain(&folder, &rewritten("ki.toml", "a login server"));
    }
    if common.quiet {
        return;
    }
    if server.is_new() {
        say(format_args!(
            "worldwire: created a login server in {folder}, configured in ki.toml\n\
             worldwire: players need an account: worldwire ki account add NAME --server {folder}"
        ));
    }
    if let Ok(address) = server.address() {
        let (host, port) = (server.config().host(), address.port());
        say(format_args!(
            "worldwire: clients connect to {address}; start them with -L {host} {port}"
        ));
    }
    if let Some(address) = server.udp_address() {
        say(format_args!("worldwire: clients that use UDP connect to {address}"));
    }
    if server.config().misleads_others() {
        say(
            "worldwire: clients on other machines will be told to connect to 127.0.0.1 after selecting a \
             character; set --public-address, or public_address in ki.toml",
        );
    }
    if let Some(files) = server.files() {
        say(format_args!("worldwire: patch clients download from {}", files.url));
    }
    if let Some(status) = server.status_address() {
        say(format_args!("worldwire: the status page is http://{status}/status"));
    }
    say("worldwire: Ctrl-C stops the server");
}
