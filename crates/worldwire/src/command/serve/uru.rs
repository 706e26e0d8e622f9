//! `worldwire serve uru`.

use std::io::{IsTerminal as _, stdout};
use std::path::absolute;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use worldwire_net::{Signal, Stop};
use worldwire_server::StartError;
use worldwire_server::uru::admin::Control;
use worldwire_server::uru::config::Role;
use worldwire_server::uru::{Shard, ShardConfig, ShardError, Standby};
use worldwire_uru::crypt::key::PrimeKind;

use super::inspect::{Page, Shown};
use super::{rewritten, set};
use crate::cli::{Common, ServeUru};
use crate::output::{Failure, Interruption, complain, print, say, shown};

/// How long a process that has handed over its shard gives another process to take over.
const HEAD_START: Duration = Duration::from_secs(1);
/// How long such a process waits for its folder, which a `worldwire uru` command may use as soon as
/// the shard has released it.
const FOLDER_WITHIN: Duration = Duration::from_secs(30);
/// How often the process tries to lock the folder.
const TRY_EVERY: Duration = Duration::from_millis(100);

/// The data that a shard's page shows.
const SHOWN: Shown = Shown {
    kind: "uru",
    lists: &[
        ("Players", r#"{"request":"online"}"#),
        ("Ages", r#"{"request":"ages","all":false,"running":true}"#),
        ("Games", r#"{"request":"games"}"#),
    ],
    views: &["vault"],
    allowed: &["kick", "message", "tree", "show", "find", "set", "ages", "online"],
    kicked: "who",
    account: "account",
};

pub(super) async fn serve(arguments: &ServeUru, common: &Common) -> Result<(), Failure> {
    let stop = Stop::new();
    let signal = stop.signal();
    let (mut stop, mut interruption) = (Some(stop), None);
    // Handle Ctrl-C before printing anything: a script may treat the output as its signal to
    // continue.
    let mut handle = || {
        if let Some(stop) = stop.take() {
            interruption = Some(Interruption::ask_first(move || stop.stop()));
        }
    };
    let mut has_led = false;
    let stopped = loop {
        let opened = open(arguments, has_led, &signal, &mut handle, common).await?;
        let Some(shard) = opened else {
            break "the standby stopped";
        };
        let page = match arguments.inspect {
            Some(at) => {
                let (folder, status) = (&arguments.folder, shard.status_address());
                Some(Page::open::<Control>(at, folder, SHOWN, status, signal.clone()).await?)
            }
            None => None,
        };
        introduce(&shard, arguments, common);
        let handover = shard.handover();
        let served = shard.serve(signal.clone()).await;
        if handover.is_requested() {
            served.map_err(|error| Failure::Run(error.to_string()))?;
            if let Some(page) = page {
                page.close().await;
            }
            if !common.quiet {
                say("worldwire: the shard was handed over; this process becomes a standby");
            }
            sleep(HEAD_START).await;
            has_led = true;
            continue;
        }
        if let Some(page) = page {
            page.ended().await;
        }
        served.map_err(|error| Failure::Run(error.to_string()))?;
        break "the shard stopped";
    };
    drop(interruption);
    if !common.quiet {
        say(format_args!("worldwire: {stopped}"));
    }
    Ok(())
}

/// Opens the shard; with `--standby`, only once this process has taken it over. Returns `None`
/// after the signal. A process that has already led the shard waits for its folder.
async fn open(
    arguments: &ServeUru,
    has_led: bool,
    signal: &Signal,
    handle: &mut impl FnMut(),
    common: &Common,
) -> Result<Option<Shard>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Run(error.to_string());
    let folder = &arguments.folder;
    if !arguments.standby {
        let shard = Shard::open_with(folder, PrimeKind::Safe, changes(arguments)?).await;
        let shard = shard.map_err(|error| failed(&error))?;
        handle();
        return Ok(Some(shard));
    }
    let start = Instant::now();
    let standby = loop {
        match Standby::open(folder, changes(arguments)?).await {
            Err(ShardError::Start(StartError::Taken { .. }))
                if has_led && start.elapsed() < FOLDER_WITHIN =>
            {
                if timeout(TRY_EVERY, signal.clone().stopping()).await.is_ok() {
                    return Ok(None);
                }
            }
            opened => break opened.map_err(|error| failed(&error))?,
        }
    };
    handle();
    if !common.quiet {
        say(
            "worldwire: this standby takes over the shard when the process that serves it fails or \
             stops; Ctrl-C stops the standby",
        );
    }
    standby.lead(signal.clone()).await.map_err(|error| failed(&error))
}

/// The configuration given by the options.
fn changes(arguments: &ServeUru) -> Result<impl FnOnce(&mut ShardConfig) + use<>, Failure> {
    // The configuration's own paths are relative to the shard's directory, not to the current one.
    let data = match &arguments.data {
        Some(data) => Some(absolute(data).map_err(|error| Failure::io(data, &error))?),
        None => None,
    };
    let ServeUru { listen, status, no_status, .. } = *arguments;
    let public_address = arguments.public_address.clone();
    Ok(move |config: &mut ShardConfig| {
        set(&mut config.listen, listen);
        set(&mut config.status, status.map(|status| status.to_string()));
        if no_status {
            config.status.clear();
        }
        set(&mut config.public_address, public_address);
        set(&mut config.data, data);
    })
}

/// Prints the shard's addresses and, on the first start, what to do next. The lines for a server.ini
/// are printed on the first start, and on later ones if a file or another program receives them.
fn introduce(shard: &Shard, arguments: &ServeUru, common: &Common) {
    let folder = shown(&arguments.folder);
    if shard.is_new() && !common.quiet {
        say(format_args!(
            "worldwire: created a shard in {folder}, configured in shard.toml\n\
             worldwire: players need an account: worldwire uru account add NAME --server {folder}\n\
             worldwire: clients need these lines in their server.ini:"
        ));
    }
    if shard.is_new() || !stdout().is_terminal() {
        // Players can still connect, so this is not a reason to stop.
        if print(&shard.server_ini()).is_err() {
            complain("standard output", "cannot write the lines for server.ini");
        }
    }
    if shard.had_no_config() {
        complain(&folder, &rewritten("shard.toml", "a shard"));
    }
    if !common.quiet {
        let (host, port) = shard.public_address();
        say(format_args!("worldwire: clients connect to {host}:{port}"));
        let cluster = &shard.config().cluster;
        if !cluster.has(Role::Vault) {
            let kind = match (cluster.has(Role::Front), cluster.has(Role::Age)) {
                (true, true) => "front and age node",
                (true, false) => "front",
                (false, _) => "age node",
            };
            say(format_args!(
                "worldwire: {kind} `{}`: the leader of `{}`, which has the vault, must be running",
                cluster.node_name(),
                cluster.name
            ));
        }
        if shard.vault().is_restricted() {
            say(format_args!(
                "worldwire: the shard is closed: only administrators, developers and testers can log in; \
                 to open it: worldwire uru open --server {folder}"
            ));
        }
        if shard.config().misleads_others() {
            say(
                "worldwire: clients on other machines will be told to connect to 127.0.0.1; set --public-address, \
                 or public_address in shard.toml",
            );
        }
        if let Some(status) = shard.status_address() {
            say(format_args!("worldwire: the status page is http://{status}/status"));
            match shard.public_status() {
                Some(page) => say(format_args!(
                    "worldwire: launchers get the welcome message from http://{page}/welcome"
                )),
                None => say(
                    "worldwire: clients on other machines cannot reach the status page, so server.ini names \
                     none; to let launchers show the welcome message, set --status, or status in \
                     shard.toml, to 0.0.0.0:14680",
                ),
            }
        }
        let missing = shard.missing();
        for part in &missing {
            say(format_args!("worldwire: {part}"));
        }
        if !missing.is_empty() {
            say(format_args!(
                "worldwire: to fill it: worldwire uru files import CLIENT_FOLDER --server {folder}"
            ));
        }
        say("worldwire: Ctrl-C stops the shard");
    }
}
