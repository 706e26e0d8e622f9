//! `worldwire proxy`.

mod control;
mod inspect;
mod mxo;
mod paused;
mod rules;
mod shown;
mod status;
mod tera;
mod uru;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use worldwire_dissect::Families;
use worldwire_net::{Options, Signal, Stop};
use worldwire_proxy::{
    HookCommand, HookOptions, HookSocket, Hooks, KiWorld, Proxy, Recorder, Setup, World,
};
use worldwire_server::operators::Listener;
use worldwire_server::store::lock::FolderLock;

use super::mods::push_quoted;
use super::serve::start;
use crate::cli::{Common, ProxyArguments, ProxyCommand, ProxyCommon, ProxyKi};
use crate::output::{Failure, Interruption, reason, say};
use crate::{definitions, input};
use control::Operators;
use mxo::LoginServers;
use paused::Paused;
use rules::Watched;
use shown::Shown;
use status::Status;
use tera::ListToServe;

pub(crate) fn run(arguments: &ProxyArguments, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        ProxyCommand::Uru(arguments) => uru::run(arguments, common),
        ProxyCommand::Ctl(arguments) => control::run(arguments),
        ProxyCommand::Ki(arguments) => {
            let ProxyKi { listen, to, public_address, common: shared } = arguments;
            let own = public_address.unwrap_or_else(|| listen.ip());
            if own.is_unspecified() {
                let problem =
                    "--listen: clients would be sent to an address that they cannot reach";
                return Err(Failure::Run(format!("{problem}; add --public-address")));
            }
            let world = Box::new(KiWorld::new(to.clone(), own));
            Relaying::new("ki", shared, common)?.run(world, *listen, to)
        }
        ProxyCommand::Tera(arguments) => tera::run(arguments, common),
        ProxyCommand::Mxo(arguments) => mxo::run(arguments, common),
    }
}

/// A proxy that is being set up.
struct Relaying<'a> {
    family: &'static str,
    keys: worldwire_dissect::Keys,
    definitions: Arc<worldwire_dissect::Definitions>,
    shown: Option<Shown>,
    paused: Paused,
    rules: Option<Watched>,
    /// TERA's list of servers.
    list: Option<ListToServe>,
    /// The login servers of The Matrix Online.
    logins: Option<LoginServers>,
    /// Commands to run as hooks.
    hooks: Vec<HookCommand>,
    /// Kept for as long as the proxy runs.
    lock: FolderLock,
    arguments: &'a ProxyCommon,
    common: &'a Common,
}

impl<'a> Relaying<'a> {
    fn new(
        family: &'static str,
        arguments: &'a ProxyCommon,
        common: &'a Common,
    ) -> Result<Self, Failure> {
        let keys = input::keys(&arguments.keys, common)?;
        let definitions = Arc::new(definitions::load(&arguments.data, common)?);
        let shown = match &arguments.show {
            Some(filter) => Some(Shown::new(filter, &definitions, common)?),
            None => None,
        };
        let paused = Paused::new(&arguments.pause, &definitions, common)?;
        let rules = match &arguments.rules {
            Some(file) => Some(Watched::read(file, &definitions)?),
            None => None,
        };
        let lock = taken(&arguments.folder)?;
        let (list, logins) = (None, None);
        Ok(Self {
            family,
            keys,
            definitions,
            shown,
            paused,
            rules,
            list,
            logins,
            hooks: arguments.hook.iter().map(|hook| hook_command(hook).into()).collect(),
            lock,
            arguments,
            common,
        })
    }

    /// Relays until Ctrl-C.
    fn run(self, world: Box<dyn World>, listen: SocketAddr, to: &str) -> Result<(), Failure> {
        let runtime = start(self.arguments.verbose, self.common)?;
        runtime.block_on(self.relay(world, listen, to))
    }

    async fn relay(
        self,
        world: Box<dyn World>,
        listen: SocketAddr,
        to: &str,
    ) -> Result<(), Failure> {
        let Self { family, keys, definitions, shown, paused, rules, list, .. } = self;
        let Self { logins, hooks: commands, lock, arguments, common, .. } = self;
        let unknown = |error: worldwire_core::Error| Failure::Run(error.to_string());
        let family = Families::standard().named(family).map_err(unknown)?;
        let recording = match (&arguments.record, arguments.inspect) {
            (None, None) => None,
            (named, _) => Some(inspect::Recording::new(named.as_deref())?),
        };
        let recorder = match &recording {
            Some(recording) => {
                let file = &recording.path;
                let failed =
                    |error| Failure::Run(format!("{}: {error}", crate::output::shown(file)));
                Some(Recorder::append(file).map_err(failed)?)
            }
            None => None,
        };
        let known = (keys.clone(), Arc::clone(&definitions));
        // Handle Ctrl-C before starting hooks and printing anything: a script may treat the output
        // as its signal to continue.
        let stop = Stop::new();
        let interruption = {
            let stop = stop.clone();
            Interruption::ask_first(move || stop.stop())
        };
        if !commands.is_empty() && !common.quiet {
            say("worldwire: waiting for hooks");
        }
        let hooks = hooks(commands, arguments, &definitions, stop.signal()).await?;
        let mut running = hooks.clone();
        let following = rules.clone().map(|rules| tokio::spawn(rules.follow()));
        let file = rules.as_ref().map(|rules| Arc::clone(&rules.file));
        let counting = file.clone();
        let has_breakpoints = !arguments.pause.is_empty() || arguments.inspect.is_some();
        let handled = paused.clone();
        let handlers = move |_| {
            let paused = has_breakpoints.then(|| handled.handler());
            let rules = file.iter().map(|file| file.handler());
            shown.iter().map(Shown::handler).chain(rules).chain(paused).collect()
        };
        let setup = Setup {
            family,
            world,
            definitions,
            keys: Arc::new(keys),
            handlers: Box::new(handlers),
            hooks,
            recorder,
            options: Options::default(),
        };
        let is_mxo = family.name() == "mxo";
        let proxy = Proxy::bind(setup, listen, is_mxo, stop.signal()).await;
        let proxy = proxy.map_err(|error| {
            Failure::Run(format!("cannot listen on {listen}: {}", reason(&error)))
        })?;
        let control = proxy.control();
        let operators = Operators { control: control.clone(), rules, paused, stop: stop.clone() };
        let page = match (&recording, arguments.inspect) {
            (Some(recording), Some(at)) => {
                let (keys, definitions) = &known;
                let data = &arguments.data;
                let copied = definitions::options(data) + &definitions::pins(data);
                let operators = operators.clone();
                let page = inspect::open(recording, at, (keys, definitions), copied, operators);
                let page = page.await?;
                say(format_args!("worldwire: the page is {}", page.url()));
                Some(tokio::spawn(page.serve(stop.signal())))
            }
            _ => None,
        };
        let operators = Listener::bind(&arguments.folder, operators).await;
        let operators = operators.map_err(|error| Failure::io(&arguments.folder, &error))?;
        let operators = tokio::spawn(operators.run());
        let status = match arguments.status {
            Some(address) => {
                let (family, to) = (family.name(), to.to_owned());
                let status = Status { family, to, control, rules: counting };
                Some(status.serve(address, stop.signal()).await?)
            }
            None => None,
        };
        let logins = match logins {
            Some(logins) => logins.listen(&proxy, listen).await?,
            None => Vec::new(),
        };
        let list = match list {
            Some(list) => Some(list.serve(&proxy, to, stop.signal()).await?),
            None => None,
        };
        if !common.quiet {
            say(format_args!(
                "worldwire: clients connect to {}; relaying to {to}",
                proxy.address()
            ));
            if !listen.ip().is_loopback() {
                say("worldwire: anyone who can reach this address can use the proxy");
            }
            for line in logins {
                say(format_args!("worldwire: {line}"));
            }
            if let Some(list) = list {
                say(format_args!("worldwire: launchers find the servers at http://{list}/"));
            }
            if let Some(status) = status {
                say(format_args!("worldwire: the status page is http://{status}/status"));
                if !status.ip().is_loopback() {
                    say("worldwire: anyone who can reach the status page can read it");
                }
            }
            say("worldwire: Ctrl-C stops the proxy");
        }
        let recorded = proxy.run().await;
        stop.stop();
        if let Some(hooks) = &mut running {
            hooks.ended().await;
        }
        if let Some(page) = page {
            let _ = page.await;
        }
        drop(interruption);
        operators.abort();
        following.into_iter().for_each(|following| following.abort());
        drop(lock);
        if let (Some(file), Err(error)) = (&arguments.record, &recorded) {
            return Err(Failure::Run(format!("{}: {error}", crate::output::shown(file))));
        }
        if !common.quiet {
            say("worldwire: the proxy stopped");
        }
        Ok(())
    }
}

/// Locks the proxy's directory, creating it if it does not exist.
fn taken(folder: &Path) -> Result<FolderLock, Failure> {
    let lock = FolderLock::create(folder).map_err(|error| Failure::io(folder, &error))?;
    lock.ok_or_else(|| {
        let (name, holder) = (crate::output::shown(folder), FolderLock::holder(folder));
        Failure::Run(format!("{name}: in use by {holder}; choose another directory with --folder"))
    })
}

/// The command for a hook. Python files are run by the package `worldwire`, unless they are
/// programs themselves.
fn hook_command(hook: &str) -> String {
    let path = Path::new(hook);
    let is_python = path.extension().is_some_and(|extension| extension == "py") && path.is_file();
    if !is_python || is_executable(path) {
        return hook.to_owned();
    }
    let python = if cfg!(windows) { "python" } else { "python3" };
    let mut command = format!("{python} -m worldwire.hooks ");
    push_quoted(hook, &mut command);
    command
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    false
}

/// Starts the hooks that the options name.
async fn hooks(
    commands: Vec<HookCommand>,
    arguments: &ProxyCommon,
    definitions: &Arc<worldwire_dissect::Definitions>,
    signal: Signal,
) -> Result<Option<Hooks>, Failure> {
    let ProxyCommon { hook_socket, hook_required, .. } = arguments;
    if commands.is_empty() && hook_socket.is_empty() {
        return Ok(None);
    }
    let mut sockets = Vec::new();
    for socket in hook_socket {
        sockets.push(match socket.parse::<SocketAddr>() {
            Ok(address) if !address.ip().is_loopback() => {
                let problem = "hooks can read and change everything; use a loopback address";
                return Err(Failure::Run(format!("--hook-socket: {problem}")));
            }
            Ok(address) => HookSocket::Tcp(address),
            Err(_) => HookSocket::Unix(socket.into()),
        });
    }
    let options =
        HookOptions { commands, sockets, is_required: *hook_required, ..HookOptions::default() };
    let started = Hooks::start(options, Arc::clone(definitions), signal).await;
    started.map(Some).map_err(|error| Failure::Run(format!("--hook-socket: {}", reason(&error))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_files_are_run_by_the_package() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bot.py");
        let name = file.to_str().unwrap();
        assert_eq!(hook_command(name), name, "no such file");
        std::fs::write(&file, "").unwrap();
        let python = if cfg!(windows) { "python" } else { "python3" };
        let command = hook_command(name);
        assert!(command.starts_with(&format!("{python} -m worldwire.hooks ")), "{command}");
        assert!(command.contains("bot.py"), "{command}");
        let with_words = format!("{name} 918");
        assert_eq!(hook_command(&with_words), with_words, "a command with arguments is one");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(hook_command(name), name);
        }
    }
}
