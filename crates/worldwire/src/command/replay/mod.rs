//! `worldwire replay`.

mod lines;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use worldwire_core::Side;
use worldwire_dissect::filter::Filter;
use worldwire_dissect::{Definitions, Item, Keys, Scratch};
use worldwire_net::{Clock, Stop};
use worldwire_proxy::Rules;
use worldwire_proxy::replay::{
    Account, Carried, NoScript, Outcome, Pace, ReadRecording, RecordedItem, Recording,
    Replay as Replaying, ReplayListener, ReplaySetup, ReplaySocket, Script,
};

use super::decode::side;
use super::dissect::read_filter;
use super::{capture, password, system};
use crate::cli::{Capture, Common, PaceArg, Replay};
use crate::output::{Failure, Interruption, complain, printable, reason, say, shown};
use crate::{definitions, input, report};
use lines::Lines;

pub(crate) fn run(arguments: &Replay, common: &Common) -> Result<(), Failure> {
    let definitions = Arc::new(definitions::load(&arguments.data, common)?);
    let mut keys = input::keys(&arguments.keys, common)?;
    input::add_keys_inside(&mut keys, std::iter::once(&*arguments.file))?;
    let live = match &arguments.live_keys[..] {
        [] => keys.clone(),
        paths => input::keys(paths, common)?,
    };
    let ignored = ignored(arguments, &definitions, common)?;
    let rules = rules(arguments, &definitions)?;
    let account = match &arguments.account {
        Some(name) => {
            let password = password::known(arguments.password_file.as_deref())?;
            Some(Account { name: name.clone(), password })
        }
        None => None,
    };
    let scripts = scripts(arguments, common, &definitions, keys, ignored.as_ref())?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clock = Clock::start();
    let setup = |carried: Option<Carried>| ReplaySetup {
        own: side(arguments.own),
        definitions: Arc::clone(&definitions),
        keys: Arc::new(live.clone()),
        handlers: rules.iter().map(Rules::handler).collect(),
        account: account.clone(),
        token: arguments.token.clone(),
        carried,
        pace: match arguments.pace {
            PaceArg::Fast => Pace::Fast,
            PaceArg::Recorded => Pace::Recorded,
        },
        patience: arguments.patience,
        ignored: ignored.clone(),
        epoch: since_1970.saturating_sub(clock.now()),
    };
    system::runtime()?.block_on(play(arguments, common, scripts, &setup, clock))
}

/// The filters of `--ignore`, combined into one.
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
fn rules(arguments: &Replay, definitions: &Definitions) -> Result<Option<Rules>, Failure> {
    let Some(path) = &arguments.rules else { return Ok(None) };
    let text = input::read_text(path)?;
    let rules =
        Rules::parse(&path.display().to_string(), &text, definitions).map_err(|mistakes| {
            report::diagnostics(mistakes.iter());
            Failure::Input
        })?;
    report::diagnostics(rules.warnings().iter());
    Ok(Some(rules))
}

/// Reads the recorded conversations.
fn scripts(
    arguments: &Replay,
    common: &Common,
    definitions: &Arc<Definitions>,
    keys: Keys,
    ignored: Option<&Arc<Filter>>,
) -> Result<Vec<Script>, Failure> {
    let mut source = Capture::plain(&arguments.file, arguments.data.clone());
    source.knowledge.keys.clone_from(&arguments.keys);
    let reading = ReadRecording {
        streams: arguments.stream.clone(),
        definitions: Arc::clone(definitions),
        keys: Arc::new(keys),
        ignored: ignored.cloned(),
    };
    let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<RecordedItem>| {
        out.extend(reading.read(item));
    };
    let mut recording = Recording::default();
    let subject = shown(&arguments.file);
    let refused = |error: NoScript| Failure::Run(format!("{subject}: {error}"));
    let definitions = Definitions::clone(definitions);
    let (dissection, _) = capture::read(&source, common, definitions, show, |items| {
        recording.add(items.iter().cloned());
        if recording.is_full() { Err(refused(NoScript::TooLong)) } else { Ok(()) }
    })?;
    let overviews = dissection.overviews();
    if arguments.stream.is_empty() {
        return Ok(vec![recording.script(None, &overviews).map_err(refused)?]);
    }
    let streams = arguments.stream.iter();
    streams.map(|stream| recording.script(Some(*stream), &overviews).map_err(refused)).collect()
}

/// Plays conversations one after the other. All connections stay open until the end.
async fn play(
    arguments: &Replay,
    common: &Common,
    scripts: Vec<Script>,
    setup: &impl Fn(Option<Carried>) -> ReplaySetup,
    clock: Clock,
) -> Result<(), Failure> {
    let stop = Stop::new();
    let mut signal = stop.signal();
    let _interruption = Interruption::ask_first(move || stop.stop());
    let own = side(arguments.own);
    let mut listener = match (own, scripts.first()) {
        (Side::Server, Some(first)) => Some(listen(arguments, common, first).await?),
        _ => None,
    };
    let mut lines = Lines::new(arguments, common);
    let mut carried = None;
    let mut open: Vec<(Replaying, ReplaySocket)> = Vec::new();
    let mut outcome = Ok(());
    for script in scripts {
        let stream = script.stream();
        let mut socket = match &mut listener {
            Some(listener) => tokio::select! {
                accepted = listener.accept() => accepted.map_err(|error| {
                    Failure::Run(format!("cannot accept a client: {}", reason(&error)))
                })?,
                () = signal.stopping() => {
                    say("worldwire: the replay was stopped before a client connected");
                    outcome = Err(Failure::Input);
                    break;
                }
            },
            None => dial(arguments, &script).await?,
        };
        let mut failure = None;
        let mut random = |bytes: &mut [u8]| {
            if let Err(error) = getrandom::fill(bytes) {
                failure = Some(error);
            }
        };
        let replay = Replaying::new(script, setup(carried.take()), &mut random, clock.now());
        if let Some(error) = failure {
            return Err(Failure::Run(format!("cannot get random numbers: {error}")));
        }
        let mut replay = replay.map_err(|error| {
            let name = shown(&arguments.file);
            Failure::Run(format!("{name}: conversation {stream}: {error}"))
        })?;
        let mut report = |event| lines.event(&event);
        let ended = socket.drive(&mut replay, clock, signal.clone(), &mut report).await;
        lines.finish()?;
        carried = Some(replay.carried());
        open.push((replay, socket));
        match ended {
            Outcome::Complete(summary) => {
                lines.complete(stream, own, &summary)?;
                if summary.sent == 0 && summary.received == 0 {
                    let problem =
                        "nothing was compared: all of its messages can arrive at any time";
                    complain(&shown(&arguments.file), &format!("conversation {stream}: {problem}"));
                    outcome = Err(Failure::Input);
                    break;
                }
            }
            Outcome::Diverged(divergence) => {
                lines.diverged(stream, own, &divergence)?;
                outcome = Err(Failure::Input);
                break;
            }
        }
    }
    for (mut replay, socket) in open {
        socket.close(&mut replay, clock).await;
    }
    outcome
}

/// Connects to the server of a conversation.
async fn dial(arguments: &Replay, script: &Script) -> Result<ReplaySocket, Failure> {
    let to = with_port(arguments.to.as_deref().unwrap_or_default(), script.port());
    let dialed = ReplaySocket::dial(&to, script.is_datagrams(), arguments.patience).await;
    dialed.map_err(|error| Failure::Run(printable(&format!("--to {to}: {}", reason(&error)))))
}

/// Listens for clients.
async fn listen(
    arguments: &Replay,
    common: &Common,
    script: &Script,
) -> Result<ReplayListener, Failure> {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, script.port()));
    let listen = arguments.listen.unwrap_or(usual);
    let failed = |error: std::io::Error| {
        Failure::Run(format!("cannot listen on {listen}: {}", reason(&error)))
    };
    let listener = ReplayListener::bind(listen, script.is_datagrams()).await.map_err(failed)?;
    let address = listener.address().map_err(failed)?;
    if !common.quiet {
        say(format_args!("worldwire: clients connect to {address}; Ctrl-C stops the replay"));
        if !listen.ip().is_loopback() {
            say("worldwire: anyone who can reach this address can be the client");
        }
    }
    Ok(listener)
}

/// A host with its port, or with this default port if it has none.
fn with_port(host: &str, port: u16) -> String {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_bare = bare.parse::<std::net::Ipv6Addr>().is_ok();
    match host.rsplit_once(':') {
        Some(_) if !is_bare => host.to_owned(),
        _ if is_bare => format!("[{bare}]:{port}"),
        _ => format!("{host}:{port}"),
    }
}
