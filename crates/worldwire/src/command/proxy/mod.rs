//! `worldwire proxy`.

mod shown;
mod uru;

use std::net::SocketAddr;
use std::sync::Arc;

use worldwire_dissect::Families;
use worldwire_net::{Options, Stop};
use worldwire_proxy::{KiWorld, OneServer, Proxy, Recorder, Setup, World};

use super::serve::start;
use crate::cli::{Common, ProxyArguments, ProxyCommand, ProxyCommon, ProxyKi};
use crate::output::{Failure, Interruption, reason, say};
use crate::{definitions, input};
use shown::Shown;

pub(crate) fn run(arguments: &ProxyArguments, common: &Common) -> Result<(), Failure> {
    match &arguments.command {
        ProxyCommand::Uru(arguments) => uru::run(arguments, common),
        ProxyCommand::Ki(arguments) => {
            let ProxyKi { listen, to, public_address, common: shared } = arguments;
            let own = public_address.unwrap_or_else(|| listen.ip());
            if own.is_unspecified() {
                let problem =
                    "--listen: servers would be named by an address that no client can reach";
                return Err(Failure::Run(format!("{problem}; add --public-address")));
            }
            let world = Box::new(KiWorld::new(to.clone(), own));
            Relaying::new("ki", shared, common)?.run(world, *listen, to)
        }
        ProxyCommand::Tera(arguments) => {
            let world = Box::new(OneServer(arguments.to.clone()));
            Relaying::new("tera", &arguments.common, common)?.run(
                world,
                arguments.listen,
                &arguments.to,
            )
        }
        ProxyCommand::Mxo(arguments) => {
            let world = Box::new(OneServer(arguments.to.clone()));
            Relaying::new("mxo", &arguments.common, common)?.run(
                world,
                arguments.listen,
                &arguments.to,
            )
        }
    }
}

/// A proxy that is being set up.
struct Relaying<'a> {
    family: &'static str,
    keys: worldwire_dissect::Keys,
    definitions: Arc<worldwire_dissect::Definitions>,
    shown: Option<Shown>,
    arguments: &'a ProxyCommon,
    common: &'a Common,
}

impl<'a> Relaying<'a> {
    fn new(
        family: &'static str,
        arguments: &'a ProxyCommon,
        common: &'a Common,
    ) -> Result<Self, Failure> {
        let keys = input::keys(&arguments.keys)?;
        let definitions = Arc::new(definitions::load(&arguments.data, common)?);
        let shown = match &arguments.show {
            Some(filter) => Some(Shown::new(filter, &definitions, common)?),
            None => None,
        };
        Ok(Self { family, keys, definitions, shown, arguments, common })
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
        let Self { family, keys, definitions, shown, arguments, common } = self;
        let unknown = |error: worldwire_core::Error| Failure::Run(error.to_string());
        let family = Families::standard().named(family).map_err(unknown)?;
        let recorder = match &arguments.record {
            Some(file) => {
                let failed =
                    |error| Failure::Run(format!("{}: {error}", crate::output::shown(file)));
                Some(Recorder::append(file).map_err(failed)?)
            }
            None => None,
        };
        let setup = Setup {
            family,
            world,
            definitions,
            keys: Arc::new(keys),
            handlers: Box::new(move |_| shown.iter().map(Shown::handler).collect()),
            recorder,
            options: Options::default(),
        };
        let is_udp_only = family.name() == "mxo";
        let proxy = Proxy::bind(setup, listen, is_udp_only).await.map_err(|error| {
            Failure::Run(format!("cannot listen at {listen}: {}", reason(&error)))
        })?;
        // Handle Ctrl-C before printing anything: a script may treat the output as the sign to
        // continue.
        let stop = Stop::new();
        let signal = stop.signal();
        let interruption = Interruption::ask_first(move || stop.stop());
        if !common.quiet {
            say(format_args!(
                "worldwire: clients connect to {}; relaying to {to}",
                proxy.address()
            ));
            if !listen.ip().is_loopback() {
                say("worldwire: anyone who can reach this address can use the proxy");
            }
            say("worldwire: Ctrl-C stops the proxy");
        }
        let recorded = proxy.run(signal).await;
        drop(interruption);
        if let (Some(file), Err(error)) = (&arguments.record, &recorded) {
            return Err(Failure::Run(format!("{}: {error}", crate::output::shown(file))));
        }
        if !common.quiet {
            say("worldwire: the proxy stopped");
        }
        Ok(())
    }
}
