//! `worldwire serve mxo`.

use std::path::{PathBuf, absolute};
use std::sync::Arc;

use worldwire_dissect::MxoObjects;
use worldwire_net::Stop;
use worldwire_server::mxo::keys::PUBLIC_KEY_FILE;
use worldwire_server::mxo::realm::Realm;
use worldwire_server::mxo::{CONFIG, MxoConfig, MxoServer, Start};

use super::inspect::{Page, Shown};
use super::{rewritten, set, start};
use crate::cli::{Common, ServeMxo};
use crate::definitions;
use crate::output::{Failure, Interruption, complain, say, shown};

/// The data that the page of a server with logins shows.
const SHOWN: Shown = Shown {
    kind: "mxo",
    lists: &[("Accounts", r#"{"request":"accounts"}"#), ("Totals", r#"{"request":"census"}"#)],
    views: &[],
    allowed: &["kick"],
    kicked: "name",
    account: "name",
};

pub(super) fn run(arguments: &ServeMxo, common: &Common) -> Result<(), Failure> {
    refuse_open_world(arguments)?;
    let runtime = start(arguments.verbose, common)?;
    let objects = definitions::load_from(&arguments.data, common)?.part::<MxoObjects>();
    let full = |file: &Option<PathBuf>| {
        let file = file.as_ref();
        file.map(|file| absolute(file).map_err(|error| Failure::io(file, &error))).transpose()
    };
    let (scene, secrets) = (full(&arguments.scene)?, full(&arguments.secrets)?);
    let start = Start {
        change: Some(Box::new(changes(arguments, scene))),
        secrets,
        objects: Some(Arc::clone(objects.objects())),
    };
    runtime.block_on(serve(arguments, start, common))
}

/// Refuses options that apply only to an open world. The command line's parser does not refuse them
/// if a folder is given, because the folder and --open-world exclude each other.
fn refuse_open_world(arguments: &ServeMxo) -> Result<(), Failure> {
    let ServeMxo { listen, key, session, .. } = arguments;
    let listens = "; use --auth-listen, --margin-listen and --game-listen";
    let given = [
        ("--listen", listen.is_some(), listens),
        ("--key", key.is_some(), ""),
        ("--session", session.is_some(), ""),
    ];
    match given.iter().find(|(_, is_given, _)| *is_given) {
        Some((option, _, hint)) => {
            Err(Failure::Run(format!("{option} applies only to --open-world{hint}")))
        }
        None => Ok(()),
    }
}

/// The configuration given by the options.
fn changes(
    arguments: &ServeMxo,
    scene: Option<PathBuf>,
) -> impl FnOnce(&mut MxoConfig) + Send + use<> {
    let ServeMxo { auth_listen, margin_listen, game_listen, status, no_status, .. } = *arguments;
    let ServeMxo { key_id, always_send_key, tick, budget, reach, .. } = *arguments;
    let ServeMxo { clients, per_address, .. } = *arguments;
    let (name, sky) = (arguments.name.clone(), arguments.sky.clone());
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    move |config| {
        if let Some(status) = status {
            config.status = status.to_string();
        }
        if no_status {
            config.status.clear();
        }
        if always_send_key {
            config.keys.always_send = true;
        }
        set(&mut config.auth_listen, auth_listen);
        set(&mut config.margin_listen, margin_listen);
        set(&mut config.game_listen, game_listen);
        set(&mut config.name, name);
        set(&mut config.world.sky, sky);
        set(&mut config.keys.id, key_id);
        set(&mut config.limits.players, clients.map(number));
        set(&mut config.limits.players_per_address, per_address.map(number));
        set(&mut config.world.scene, scene);
        set(&mut config.world.tick_milliseconds, tick);
        set(&mut config.world.tick_bytes, budget.map(number));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "out of range, the result is the nearest number, which is checked"
        )]
        set(&mut config.world.reach, reach.map(|reach| reach.round() as u32));
    }
}

async fn serve(arguments: &ServeMxo, start: Start, common: &Common) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Run(error.to_string());
    let server = MxoServer::open(&arguments.folder, start).await.map_err(|error| failed(&error))?;
    // Handle Ctrl-C before printing anything: a script may treat the output as its signal to
    // continue.
    let stop = Stop::new();
    let signal = stop.signal();
    let interruption = Interruption::ask_first(move || stop.stop());
    let page = match arguments.inspect {
        Some(at) => {
            let (folder, status) = (&arguments.folder, server.status_address());
            Some(Page::open::<Realm>(at, folder, SHOWN, status, signal.clone()).await?)
        }
        None => None,
    };
    introduce(&server, arguments, common);
    let served = server.serve(signal).await;
    if let Some(page) = page {
        page.ended().await;
    }
    drop(interruption);
    served.map_err(|error| failed(&error))?;
    if !common.quiet {
        say("worldwire: the server stopped");
    }
    Ok(())
}

/// Prints the server's addresses and, on the first start, what to do next.
fn introduce(server: &MxoServer, arguments: &ServeMxo, common: &Common) {
    let folder = shown(&arguments.folder);
    if server.had_no_config() {
        complain(&folder, &rewritten(CONFIG, "a server for The Matrix Online"));
    }
    if common.quiet {
        return;
    }
    if server.is_new() {
        say(format_args!(
            "worldwire: created a server in {folder}, configured in {CONFIG}\n\
             worldwire: players need an account: worldwire mxo account add NAME --server {folder}"
        ));
    }
    if server.has_new_keys() {
        let file = shown(&arguments.folder.join(PUBLIC_KEY_FILE));
        say(format_args!("worldwire: clients need the new {file}"));
    }
    if let (Ok(auth), Ok(margin), Ok(game)) =
        (server.auth_address(), server.margin_address(), server.game_address())
    {
        say(format_args!(
            "worldwire: {}: auth on {auth}, margin on {margin}, the world on UDP {game}",
            server.config().name
        ));
    }
    if let Some(status) = server.status_address() {
        say(format_args!("worldwire: the status page is http://{status}/status"));
    }
    say("worldwire: Ctrl-C stops the server");
}
