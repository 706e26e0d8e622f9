//! The bus over NATS servers.
//!
//! A lost connection is replaced by a new one, to another server if there are several. In the
//! meantime, messages are lost.

use std::fmt;
use std::fs::{self, File};
use std::future::ready;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, Server, ServerAddr};
use futures_util::StreamExt as _;
use nkeys::KeyPair;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::{debug, info, warn};
use zeroize::Zeroizing;

use super::bus::{Bus, BusError, BusMessage, Messages, Pending};
use super::bus_problems::{KnownProblems, explain_failure, explain_refusal};
use crate::store::seal::{KeyError, check_mode};

/// The maximum number of messages waiting for the network.
const MAX_WAITING: usize = 1_024;
/// The maximum number of received messages waiting.
const MAX_RECEIVED: usize = 4_096;
/// How long to wait for queue space for a message.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often the connection is tested. After two unanswered tests it is replaced.
const PING_EVERY: Duration = Duration::from_secs(1);
/// The time limit for connecting to a server.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// The longest delay between two attempts.
const MAX_DELAY: Duration = Duration::from_millis(500);

/// The maximum number of bytes read from a seed file.
const MAX_SEED: usize = 1_024;

/// The first line of each certificate in a PEM file.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// How long a subscription may be silent before it is checked.
const SILENCE: Duration = Duration::from_secs(2);

/// A connection to NATS servers.
pub(crate) struct Nats {
    client: Client,
    servers: String,
    /// How many times a server has refused something. A refused subscription is dead, even if it
    /// was accepted before the server reloaded its configuration.
    refusals: Arc<AtomicU64>,
    problems: Arc<KnownProblems>,
}

impl Drop for Nats {
    /// Stops logging. If no server is reachable, the client keeps trying to connect in the
    /// background, and ends only once it has succeeded.
    fn drop(&mut self) {
        self.problems.mute();
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Nats {
    /// Connects to one of these servers, immediately or later. `seed` is a file with an nkey seed,
    /// and `roots` a file with the CA certificates that the servers are checked against.
    ///
    /// # Errors
    /// If an address or a file is unusable. An unreachable server is only logged.
    pub(crate) async fn connect(
        servers: &[String],
        seed: Option<&Path>,
        roots: Option<&Path>,
    ) -> Result<Self, BusError> {
        let names = servers.join(", ");
        let failed = |reason: String| BusError { servers: names.clone(), reason };
        let addresses: Result<Vec<ServerAddr>, _> = servers.iter().map(|it| it.parse()).collect();
        let addresses = addresses.map_err(|error| failed(error.to_string()))?;
        let (known, problems) = (names.clone(), Arc::<KnownProblems>::default());
        let (failures, muted) = (Arc::clone(&problems), Arc::clone(&problems));
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
            // Only here does the client report why it cannot connect. It still chooses the server.
            .reconnect_to_server_callback(move |servers, _| {
                servers.iter().for_each(|server| log_failure(server, &failures));
                ready(None)
            })
            .event_callback(move |event| {
                if let Event::ServerError(_) = event {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                log(&event, &known, &problems);
                ready(())
            });
        if let Some(path) = seed {
            let text = read_seed(path).map_err(|error| failed(error.to_string()))?;
            let seed = text.trim();
            KeyPair::from_seed(seed).map_err(|_| {
                failed(format!("{}: not the seed of an nkey, which begins with SU", path.display()))
            })?;
            options = options.nkey(seed.to_owned());
        }
        if let Some(path) = roots {
            // With an unusable file, each attempt to connect would fail in the background.
            let text = fs::read(path);
            let text = text.map_err(|error| failed(format!("{}: {error}", path.display())))?;
            if !text.windows(CERTIFICATE.len()).any(|part| part == CERTIFICATE) {
                let problem = "contains no certificates in PEM format";
                return Err(failed(format!("{}: {problem}", path.display())));
            }
            options = options.add_root_certificates(path.to_owned());
        }
        let client = options.connect(addresses).await;
        let client = client.map_err(|error| failed(error.to_string()))?;
        Ok(Self { client, servers: names, refusals, problems: muted })
    }
}

impl Bus for Nats {
    fn publish<'b>(&'b self, subject: &'b str, message: Vec<u8>) -> Pending<'b, bool> {
        let publish = self.client.publish(subject.to_owned(), message.into());
        Box::pin(async move { matches!(timeout(PATIENCE, publish).await, Ok(Ok(()))) })
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(async {
            // Fails if no server is connected.
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
                        // Dropped if the queue is full.
                        Ok(Some(message)) => drop(sender.try_send(BusMessage {
                            subject: message.subject.into_string(),
                            body: message.payload.into(),
                        })),
                        Ok(None) => break,
                        // The subscription may have been refused. If the new one is refused as
                        // well, the count rises again.
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

/// Reads the seed file, which must be readable only by its owner.
fn read_seed(path: &Path) -> Result<Zeroizing<String>, KeyError> {
    let unreadable = |source| KeyError::File { file: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    check_mode(&file, path)?;
    let mut text = Zeroizing::new(String::with_capacity(MAX_SEED));
    file.take(MAX_SEED as u64).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// Logs why the last attempt to connect to a server failed.
fn log_failure(server: &Server, known: &KnownProblems) {
    if let Some(error) = &server.last_error
        && known.is_news(&format!("{server}: {error}"))
    {
        warn!(%server, error, "cannot connect to the bus: {}", explain_failure(error));
    }
}

/// Logs changes of the connection's state.
fn log(event: &Event, servers: &str, known: &KnownProblems) {
    match event {
        _ if known.is_muted() => {}
        Event::Connected => {
            known.clear();
            info!(servers, "connected to the bus");
        }
        Event::Disconnected => warn!(servers, "lost the connection to the bus"),
        Event::SlowConsumer(_) => {
            if known.is_news("slow") {
                warn!(servers, "messages from the bus were lost: this process was too slow");
            }
        }
        Event::ServerError(error) => {
            let error = error.to_string();
            if known.is_news(&error) {
                warn!(servers, error, "the bus refuses this process: {}", explain_refusal(&error));
            }
        }
        // The next attempt to connect gives a better explanation.
        Event::ClientError(error) => debug!(servers, %error, "the bus cannot be used"),
        Event::LameDuckMode | Event::Draining | Event::Closed => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[tokio::test]
    async fn a_seed_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bus.nk");
        fs::write(&file, &*KeyPair::new_user().seed().unwrap()).unwrap();
        let servers = ["nats://127.0.0.1:1".to_owned()];
        let mut problems = Vec::new();
        for mode in [0o644, 0o640, 0o600] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let connected = Nats::connect(&servers, Some(&file), None).await;
            problems.push(connected.err().map(|error| error.to_string()).unwrap_or_default());
        }
        let [world, group, own] = &problems[..] else { panic!("{problems:?}") };
        let wanted = "bus.nk: must be readable only by its owner (mode 0600), but its mode is ";
        assert!(world.ends_with(&format!("{wanted}0644")), "{world}");
        assert!(group.ends_with(&format!("{wanted}0640")), "{group}");
        assert_eq!(own, "");
    }
}
