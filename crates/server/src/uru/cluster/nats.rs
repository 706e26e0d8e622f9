//! The bus over NATS servers.
//!
//! A lost connection to a server is replaced, by one to another server if there are several.
//! In the meantime, messages are lost.

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

use super::bus::{Bus, BusError, Messages, Pending};
use super::bus_problems::{KnownProblems, explain_failure, explain_refusal};
use crate::store::seal::{KeyError, check_mode};

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

/// The maximum number of bytes that are read of a seed's file.
const MAX_SEED: usize = 1_024;

/// Begins each certificate in a PEM file.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// How long a subscription is silent before it is checked.
const SILENCE: Duration = Duration::from_secs(2);

/// A connection to NATS servers.
pub(crate) struct Nats {
    client: Client,
    servers: String,
    /// How many times a server has refused something. A refused subscription is over, even one that
    /// was accepted earlier, before the server reloaded its configuration.
    refusals: Arc<AtomicU64>,
    problems: Arc<KnownProblems>,
}

impl Drop for Nats {
    /// While there is no server, the client continues to connect until it succeeds. Then it ends.
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
            // The only place where the client tells why it cannot connect. It chooses the server itself.
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
            // Otherwise each attempt to connect would fail, in the background.
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

/// Reads the file with the seed, which only its owner may be able to read.
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

/// Logs what happens to the connection.
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
        // The next attempt to connect tells more.
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
