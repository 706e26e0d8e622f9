//! The bus over NATS servers.
//!
//! A lost connection to a server is replaced, by one to another server if there are several.
//! Messages are lost meanwhile.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use futures_util::StreamExt as _;
use nkeys::KeyPair;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::{info, warn};
use zeroize::Zeroizing;

use super::bus::{Bus, BusError, Messages, Pending};

/// How many messages may wait for the network.
const MAX_WAITING: usize = 1_024;
/// How many received messages may wait.
const MAX_RECEIVED: usize = 4_096;
/// How long to wait for room for a message.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often the connection is tested. After two tests without an answer it is replaced.
const PING_EVERY: Duration = Duration::from_secs(1);
/// How long connecting to a server may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// The longest time between two attempts.
const MAX_DELAY: Duration = Duration::from_millis(500);

/// How long a subscription is silent before it is checked.
const SILENCE: Duration = Duration::from_secs(2);

/// A connection to NATS servers.
pub(crate) struct Nats {
    client: Client,
    servers: String,
    /// How often a server has refused something. A refused subscription is over, even one that was
    /// accepted earlier, before the server reloaded its configuration.
    refusals: Arc<AtomicU64>,
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Nats {
    /// Connects to one of these servers, now or later. `seed` is a file with the seed of an nkey,
    /// and `roots` one with the certificates of the authorities that certify the servers.
    ///
    /// # Errors
    /// If an address or a file cannot be used. An unreachable server is only logged.
    pub(crate) async fn connect(
        servers: &[String],
        seed: Option<&Path>,
        roots: Option<&Path>,
    ) -> Result<Self, BusError> {
        let names = servers.join(", ");
        let failed = |reason: String| BusError { servers: names.clone(), reason };
        let addresses: Result<Vec<ServerAddr>, _> = servers.iter().map(|it| it.parse()).collect();
        let addresses = addresses.map_err(|error| failed(error.to_string()))?;
        let known = names.clone();
        let refusals = Arc::<AtomicU64>::default();
        let refused = Arc::clone(&refusals);
        let mut options = ConnectOptions::new()
            .name("worldwire")
            .retry_on_initial_connect()
            .ignore_discovered_servers()
            .connection_timeout(CONNECT_WITHIN)
            .ping_interval(PING_EVERY)
            .client_capacity(MAX_WAITING)
            .subscription_capacity(MAX_RECEIVED)
            .reconnect_delay_callback(|attempts| {
                let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
                Duration::from_millis(50).saturating_mul(attempts).min(MAX_DELAY)
            })
            .event_callback(move |event| {
                if let Event::ServerError(_) = event {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                log(event, known.clone())
            });
        if let Some(path) = seed {
            let text = fs::read_to_string(path).map(Zeroizing::new);
            let text = text.map_err(|error| failed(format!("{}: {error}", path.display())))?;
            let seed = text.trim();
            KeyPair::from_seed(seed).map_err(|_| {
                failed(format!("{}: not the seed of an nkey, which begins with SU", path.display()))
            })?;
            options = options.nkey(seed.to_owned());
        }
        if let Some(path) = roots {
            // Otherwise each attempt to connect would fail, in the background.
            fs::metadata(path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
            options = options.add_root_certificates(path.to_owned());
        }
        let client = options.connect(addresses).await;
        let client = client.map_err(|error| failed(error.to_string()))?;
        Ok(Self { client, servers: names, refusals })
    }
}

impl Bus for Nats {
    fn publish<'b>(&'b self, subject: &'b str, message: Vec<u8>) -> Pending<'b, bool> {
        let publish = self.client.publish(subject.to_owned(), message.into());
        Box::pin(async move { matches!(timeout(PATIENCE, publish).await, Ok(Ok(()))) })
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async {
            // It fails without a server.
            let _ = self.client.flush().await;
        })
    }

    fn subscribe<'b>(&'b self, subject: &'b str) -> Pending<'b, Result<Messages, BusError>> {
        Box::pin(async move {
            let (client, refusals) = (self.client.clone(), Arc::clone(&self.refusals));
            let subject = subject.to_owned();
            let mut checked = refusals.load(Ordering::Relaxed);
            let subscribed = client.subscribe(subject.clone()).await;
            let mut subscribed = subscribed.map_err(|error| BusError {
                servers: self.servers.clone(),
                reason: error.to_string(),
            })?;
            let (sender, messages) = mpsc::channel(MAX_RECEIVED);
            tokio::spawn(async move {
                loop {
                    let message = tokio::select! {
                        message = timeout(SILENCE, subscribed.next()) => message,
                        () = sender.closed() => break,
                    };
                    match message {
                        // Lost if there is no room.
                        Ok(Some(message)) => drop(sender.try_send(message.payload.into())),
                        Ok(None) => break,
                        // It may have been refused. If it still is, that is another refusal.
                        Err(_) => {
                            let refused = refusals.load(Ordering::Relaxed);
                            if refused != checked
                                && let Ok(again) = client.subscribe(subject.clone()).await
                            {
                                (checked, subscribed) = (refused, again);
                            }
                        }
                    }
                }
            });
            Ok(messages)
        })
    }
}

/// Logs what happens to the connection.
async fn log(event: Event, servers: String) {
    match event {
        Event::Connected => info!(servers, "connected to the bus"),
        Event::Disconnected => warn!(servers, "the connection to the bus is lost"),
        Event::SlowConsumer(_) => warn!(servers, "messages from the bus were lost"),
        Event::ServerError(error) => warn!(servers, %error, "the bus refuses this process"),
        Event::ClientError(error) => warn!(servers, %error, "the bus cannot be used"),
        Event::LameDuckMode | Event::Draining | Event::Closed => {}
    }
}
