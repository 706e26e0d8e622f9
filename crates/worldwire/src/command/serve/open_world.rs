//! `worldwire serve mxo --open-world`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use worldwire_dissect::MxoObjects;
use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::replicator;
use worldwire_net::{Capacity, Stop};
use worldwire_server::mxo::{OPEN_KEY, OpenWorld, PORT, Scene, SceneError, WorldConfig};

use super::start;
use crate::cli::{Common, ServeMxo};
use crate::command::system;
use crate::definitions;
use crate::output::{Failure, Interruption, complain, counted, print, say};

pub(super) fn run(arguments: &ServeMxo, common: &Common) -> Result<(), Failure> {
    let runtime = start(arguments.verbose, common)?;
    let (config, key) = config(arguments, common)?;
    warn(arguments, &key);
    let scene = match &arguments.scene {
        Some(path) => Scene::read(path, &config.objects),
        None => Scene::built_in(&config.objects),
    };
    let scene = scene.map_err(|error| match (&arguments.scene, &error) {
        (None, _) | (_, SceneError::Io { .. }) => Failure::Run(error.to_string()),
        (Some(path), _) => Failure::Run(format!("{}: {error}", path.display())),
    })?;
    if let Some(path) = &arguments.secrets {
        append(path, config.session, &key)?;
    }
    runtime.block_on(serve(arguments, config, &scene, &key, common))
}

/// The configuration given by the options, and the key.
fn config(arguments: &ServeMxo, common: &Common) -> Result<(WorldConfig, [u8; 16]), Failure> {
    let objects = definitions::load_from(&arguments.data, common)?.part::<MxoObjects>();
    let key = match arguments.key.as_deref() {
        Some("random") => {
            let mut key = [0; 16];
            system::random(&mut key)?;
            key
        }
        Some(digits) => key_of(digits)?,
        None if listen(arguments).ip().is_loopback() => OPEN_KEY,
        None => {
            let problem = "--listen: a session on other machines needs its own key";
            return Err(Failure::Run(format!("{problem}; --key random generates one")));
        }
    };
    let usual = WorldConfig::default();
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let reach = arguments.reach.unwrap_or(usual.replicator.enter);
    let config = WorldConfig {
        listen: listen(arguments),
        status: (!arguments.no_status).then(|| status(arguments)),
        session: arguments.session.unwrap_or(usual.session),
        key: SessionKey::new(&key),
        objects: Arc::clone(objects.objects()),
        tick: arguments.tick.map_or(usual.tick, |tick| Duration::from_millis(tick.into())),
        replicator: replicator::Config {
            enter: reach,
            leave: reach * 1.2,
            tick_bytes: number(arguments.budget.unwrap_or(BUDGET)),
            ..replicator::Config::default()
        },
        capacity: Capacity {
            total: arguments.clients.map_or(usual.capacity.total, number),
            per_address: arguments.per_address.map_or(usual.capacity.per_address, number),
        },
        ..usual
    };
    Ok((config, key))
}

/// Warns about what others could do to a world that is reachable from other machines.
fn warn(arguments: &ServeMxo, key: &[u8; 16]) {
    if !listen(arguments).ip().is_loopback() && *key == OPEN_KEY {
        complain("--key", "this key is well known: anyone can read the traffic");
    }
    if !arguments.no_status && !status(arguments).ip().is_loopback() {
        complain(
            "--status",
            "the page has no password: anyone who can reach it can freeze the world",
        );
    }
}

/// The default budget of a client per tick: two packets.
const BUDGET: u32 = 2_590;
/// The default port of the status page.
const STATUS_PORT: u16 = 10_080;

fn listen(arguments: &ServeMxo) -> SocketAddr {
    arguments.listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, PORT).into())
}

fn status(arguments: &ServeMxo) -> SocketAddr {
    arguments.status.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, STATUS_PORT).into())
}

pub(crate) fn key_of(digits: &str) -> Result<[u8; 16], Failure> {
    let bytes = worldwire_core::value::parse_hex(digits);
    let key = bytes.and_then(|bytes| bytes.try_into().ok());
    // The key itself is not repeated, because it is secret.
    key.ok_or_else(|| Failure::Run("--key: needs 32 hexadecimal digits".to_owned()))
}

fn append(path: &Path, session: u32, key: &[u8; 16]) -> Result<(), Failure> {
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines = format!("[[mxo.session]]\nid = {session:#x}\nkey = \"{digits}\"\n");
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path);
    file.and_then(|mut file| file.write_all(lines.as_bytes()))
        .map_err(|error| Failure::io(path, &error))
}

async fn serve(
    arguments: &ServeMxo,
    config: WorldConfig,
    scene: &Scene,
    key: &[u8; 16],
    common: &Common,
) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Run(error.to_string());
    let world = OpenWorld::open(config, scene).await.map_err(|error| failed(&error))?;
    // Handle Ctrl-C before printing anything: a script may treat the output as its signal to
    // continue.
    let stop = Stop::new();
    let signal = stop.signal();
    let interruption = Interruption::ask_first(move || stop.stop());
    if arguments.key.as_deref() == Some("random") && arguments.secrets.is_none() {
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        print(&format!("{digits}\n"))?;
    }
    if !common.quiet {
        let address = world.address().map_err(|error| failed(&error))?;
        let objects = counted(scene.len(), "object");
        say(format_args!("worldwire: {objects}; clients connect to {address}"));
        if let Some(status) = world.status_address() {
            say(format_args!("worldwire: the status page is http://{status}/status"));
        }
        say("worldwire: Ctrl-C stops the world");
    }
    let figures = world.figures();
    let served = world.serve(signal).await;
    drop(interruption);
    served.map_err(|error| failed(&error))?;
    if !common.quiet {
        let [median, slowest] = figures.tick_times();
        say(format_args!(
            "worldwire: the world stopped after {} ticks (recent ticks: median {median:.1?}, 99 % within \
             {slowest:.1?})",
            figures.ticks()
        ));
    }
    Ok(())
}
