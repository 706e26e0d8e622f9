//! Explains problems with the bus connection in terms that operators understand, and only once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a problem must be absent before it is reported again.
const QUIET: Duration = Duration::from_secs(60);
/// The maximum number of problems remembered. When it is exceeded, all are forgotten.
const MAX_KNOWN: usize = 256;

/// Fragments of the client's error text for a failed connection, each with its meaning.
const CAUSES: &[(&[&str], &str)] = &[
    (
        &["UnknownIssuer"],
        "the server's certificate is not from an authority that this process trusts; set bus_ca in \
         [cluster] to the certificate of its authority",
    ),
    (
        &["not valid for name", "NotValidForName"],
        "the server's certificate does not contain the host name or address that bus in [cluster] names; \
         use one that it contains, or issue a certificate with a subjectAltName for it",
    ),
    (
        &["certificate expired", "Expired"],
        "the server's certificate has expired; renew it, or correct this machine's clock",
    ),
    (
        &["not valid yet", "NotValidYet"],
        "the server's certificate is not valid yet; correct the clock of this machine or of the machine \
         that issued it",
    ),
    (
        &["CaUsedAsEndEntity"],
        "the server uses a CA certificate as its own; let that CA issue a certificate for the server",
    ),
    (
        &["corrupt message", "InvalidContentType", "unexpected message"],
        "the server does not use TLS; configure tls { } on the NATS server, or use nats:// in bus in \
         [cluster] if it is on this machine",
    ),
    (
        &["could not load", "no certificates", "TLS error"],
        "the TLS files cannot be used; bus_ca in [cluster] must be a PEM file with certificates",
    ),
    (&["authorization violation", "Authorization Violation"], UNKNOWN_KEY),
    (
        &["DNS error", "failed to lookup"],
        "the host name in bus in [cluster] cannot be resolved; correct it, or this machine's DNS server",
    ),
    (
        &["timed out"],
        "the server does not respond; check the address in bus in [cluster], the firewall, and whether \
         the server expects TLS before anything else (handshake_first), which is not supported",
    ),
    (
        &["onnection refused"],
        "no server listens at this address; start the NATS server, or correct bus in [cluster]",
    ),
    (&["expected INFO"], "this is not a NATS server; correct the address in bus in [cluster]"),
];

/// What to do if the server does not recognize the key.
const UNKNOWN_KEY: &str = "the server does not know the key in bus_key of [cluster]; add this process to the \
    command `worldwire uru cluster nats-config`, and let the NATS server reload its result";

/// What to do if the server denies a permission.
const FORBIDDEN: &str = "the server does not allow what this process needs; check its name and role in the \
    command `worldwire uru cluster nats-config`, and let the NATS server reload its result";

/// Explains why a connection to a server failed, given the client's error text.
pub(super) fn explain_failure(error: &str) -> &'static str {
    let applies = |(parts, _): &&(&[&str], &str)| parts.iter().any(|part| error.contains(part));
    CAUSES.iter().find(applies).map_or("the connection failed", |(_, meaning)| meaning)
}

/// Explains why a server refused something, given the server's error text.
pub(super) fn explain_refusal(error: &str) -> &'static str {
    let error = error.to_lowercase();
    match error.contains("permissions violation") {
        true => FORBIDDEN,
        false if error.contains("auth") => UNKNOWN_KEY,
        false => "see the log of the NATS server",
    }
}

/// The problems that have already been reported.
#[derive(Debug, Default)]
pub(super) struct KnownProblems {
    known: Mutex<HashMap<String, Instant>>,
    is_muted: AtomicBool,
}

impl KnownProblems {
    /// Whether a problem should be reported, because it has not occurred recently.
    pub(super) fn is_news(&self, problem: &str) -> bool {
        if self.is_muted() {
            return false;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        let before = known.insert(problem.to_owned(), Instant::now());
        before.is_none_or(|before| before.elapsed() >= QUIET)
    }

    /// Called when the connection works: any later connection problem is news again.
    pub(super) fn clear(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Called when the connection is no longer needed: nothing more is reported.
    pub(super) fn mute(&self) {
        self.is_muted.store(true, Ordering::Relaxed);
    }

    /// Whether the connection is no longer needed.
    pub(super) fn is_muted(&self) -> bool {
        self.is_muted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn problems_are_reported_once_while_they_last() {
        let known = KnownProblems::default();
        assert!(known.is_news("a") && known.is_news("b"));
        for _ in 0..10 {
            advance(QUIET - Duration::from_secs(1)).await;
            assert!(!known.is_news("a"));
        }
        advance(QUIET).await;
        assert!(known.is_news("a") && known.is_news("b"));
        known.clear();
        assert!(known.is_news("a"));
        for number in 0..10_000 {
            known.is_news(&number.to_string());
        }
        assert!(known.known.lock().unwrap().len() <= MAX_KNOWN);
        known.mute();
        assert!(!known.is_news("c"));
    }

    #[test]
    fn refusals_are_explained() {
        let forbidden = "nats: Permissions Violation for Subscription to \"ww.shard.1.leader\"";
        assert_eq!(explain_refusal(forbidden), FORBIDDEN);
        for unknown in ["nats: authorization violation", "nats: User Authentication Revoked"] {
            assert_eq!(explain_refusal(unknown), UNKNOWN_KEY);
        }
        assert_eq!(explain_refusal("nats: Stale Connection"), "see the log of the NATS server");
    }
}
