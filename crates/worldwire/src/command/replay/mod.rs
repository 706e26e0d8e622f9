//! `worldwire replay`.

mod lines;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use worldwire_core::Side;
use worldwire_dissect::filter::Filter;
use worldwire_dissect::{Definitions, Item, Keys, Scratch};
use worldwire_net::{Clock, Signal, Stop};
use worldwire_proxy::replay::{
    Account, NoScript, Outcome, Pace, ReadRecording, RecordedItem, Recording, Replay as Replaying,
    ReplayListener, ReplaySetup, ReplaySocket, Script, drive,
};
use worldwire_proxy::{Handler, Rules};

use super::decode::side;
use super::dissect::read_filter;
use super::{capture, password, system};
use crate::cli::{Capture, Common, PaceArg, Replay};
use crate::output::{Failure, Interruption, printable, reason, say, shown};
use crate::{definitions, input, report};
use lines::Lines;

pub(crate) fn run(arguments: &Replay, common: &Common) -> Result<(), Failure> {
    let own = side(arguments.own);
    let definitions = Arc::new(definitions::load(&arguments.data, common)?);
    let keys = match &arguments.keys[..] {
        [] => input::keys_inside(&arguments.file),
        paths => input::keys(paths)?,
    };
    let live = match &arguments.live_keys[..] {
        [] => keys.clone(),
        paths => input::keys(paths)?,
    };
    let ignored = ignored(arguments, &definitions, common)?;
    let handlers = rules(arguments, &definitions)?;
    let account = match &arguments.account {
        Some(name) => {
            let password = password::known(arguments.password_file.as_deref())?;
            Some(Account { name: name.clone(), password })
        }
        None => None,
    };
    let script = script(arguments, common, &definitions, keys, ignored.clone())?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clock = Clock::start();
    let setup = ReplaySetup {
        own,
        definitions,
        keys: Arc::new(live),
        handlers,
        account,
        token: arguments.token.clone(),
        pace: match arguments.pace {
            PaceArg::Fast => Pace::Fast,
            PaceArg::Recorded => Pace::Recorded,
        },
        patience: arguments.patience,
        ignored,
        epoch: since_1970.saturating_sub(clock.now()),
    };
    system::runtime()?.block_on(play(arguments, common, script, setup, clock))
}

/// The filters of `--ignore` as one.
fn ignored(
    arguments: &Replay,
    definitions: &Definitions,
    common: &Common,
) -> Result<Option<Arc<Filter>>, Failure> {
    if arguments.ignore.is_empty() {
        return Ok(None);
    }
    for text in &arguments.ignore {
        read_filter(text, definitions, common)?;
    }
    let parts: Vec<String> = arguments.ignore.iter().map(|text| format!("({text})")).collect();
    read_filter(&parts.join(" or "), definitions, common).map(|filter| Some(Arc::new(filter)))
}

/// The rules of `--rules`. Mistakes are reported with their lines.
fn rules(arguments: &Replay, definitions: &Definitions) -> Result<Vec<Box<dyn Handler>>, Failure> {
    let Some(path) = &arguments.rules else { return Ok(Vec::new()) };
    let text = input::read_text(path)?;
    let rules =
        Rules::parse(&path.display().to_string(), &text, definitions).map_err(|mistakes| {
            report::diagnostics(mistakes.iter());
            Failure::Input
        })?;
    report::diagnostics(rules.warnings().iter());
    Ok(vec![rules.handler()])
}

/// Reads the recorded conversation.
fn script(
    arguments: &Replay,
    common: &Common,
    definitions: &Arc<Definitions>,
    keys: Keys,
    ignored: Option<Arc<Filter>>,
) -> Result<Script, Failure> {
    let mut source = Capture::plain(&arguments.file, arguments.data.clone());
    source.knowledge.keys = arguments.keys.clone();
    let stream = arguments.stream;
    let reading = ReadRecording {
        stream,
        definitions: Arc::clone(definitions),
        keys: Arc::new(keys),
        ignored,
    };
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<RecordedItem>| {
        out.extend(reading.read(item));
    };
    let mut recording = Recording::default();
    let subject = shown(&arguments.file);
    let refused = |error: &NoScript| Failure::Run(format!("{subject}: {error}"));
    let definitions = Definitions::clone(definitions);
    let (dissection, _) = capture::read(&source, common, definitions, show, |items| {
        recording.add(items.iter().cloned());
        if recording.is_full() { Err(refused(&NoScript::TooLong)) } else { Ok(()) }
    })?;
    recording.script(stream, &dissection.overviews()).map_err(|error| refused(&error))
}

async fn play(
    arguments: &Replay,
    common: &Common,
    script: Script,
    setup: ReplaySetup,
    clock: Clock,
) -> Result<(), Failure> {
    let (own, stream) = (setup.own, script.stream());
    let (is_datagrams, port) = (script.is_datagrams(), script.port());
    let stop = Stop::new();
    let mut signal = stop.signal();
    let _interruption = Interruption::ask_first(move || stop.stop());
    let socket = match own {
        Side::Client => {
            let to = with_port(arguments.to.as_deref().unwrap_or_default(), port);
            let dialed = ReplaySocket::dial(&to, is_datagrams, setup.patience).await;
            dialed.map_err(|error| {
                Failure::Run(printable(&format!("--to {to}: {}", reason(&error))))
            })?
        }
        Side::Server => {
            let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let Some(socket) = wait_for_client(
                arguments.listen.unwrap_or(usual),
                is_datagrams,
                &mut signal,
                common,
            )
            .await?
            else {
                say("worldwire: the replay was stopped before a client came");
                return Err(Failure::Input);
            };
            socket
        }
    };
    let refused = |error: worldwire_core::Error| {
        Failure::Run(format!("{}: conversation {stream}: {error}", shown(&arguments.file)))
    };
    let mut failure = None;
    let mut random = |bytes: &mut [u8]| {
        if let Err(error) = getrandom::fill(bytes) {
            failure = Some(error);
        }
    };
    let replay = Replaying::new(script, setup, &mut random, clock.now());
    if let Some(error) = failure {
        return Err(Failure::Run(format!("cannot get random numbers: {error}")));
    }
    let mut replay = replay.map_err(refused)?;
    let mut lines = Lines::new(arguments, common);
    let outcome = drive(&mut replay, socket, clock, signal, &mut |event| lines.event(&event)).await;
    lines.finish()?;
    match outcome {
        Outcome::Complete(summary) => lines.complete(stream, own, &summary),
        Outcome::Diverged(divergence) => {
            lines.diverged(stream, own, &divergence)?;
            Err(Failure::Input)
        }
    }
}

/// Listens until a client comes. `None` if the user does not want to wait any longer.
async fn wait_for_client(
    listen: SocketAddr,
    is_datagrams: bool,
    signal: &mut Signal,
    common: &Common,
) -> Result<Option<ReplaySocket>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::Run(format!("cannot listen at {listen}: {}", reason(&error)))
    };
    let listener = ReplayListener::bind(listen, is_datagrams).await.map_err(failed)?;
    let address = listener.address().map_err(failed)?;
    if !common.quiet {
        say(format_args!("worldwire: the client connects to {address}; Ctrl-C stops the replay"));
        if !listen.ip().is_loopback() {
            say("worldwire: anyone who can reach this address can be the client");
        }
    }
    tokio::select! {
        accepted = listener.accept() => accepted.map(Some).map_err(failed),
        () = signal.stopping() => Ok(None),
    }
}

/// A host with its port, or this one.
fn with_port(host: &str, port: u16) -> String {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_bare = bare.parse::<std::net::Ipv6Addr>().is_ok();
    match host.rsplit_once(':') {
        Some(_) if !is_bare => host.to_owned(),
        _ if is_bare => format!("[{bare}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}
