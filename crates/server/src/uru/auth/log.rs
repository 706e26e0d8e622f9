//! Clients' log messages.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

/// The maximum number of log messages that one connection can send at once, and the interval
/// between further ones.
const MAX: u32 = 20;
const EVERY: Duration = Duration::from_secs(5);

/// Writes a client's messages to the log, with a rate limit.
#[derive(Debug, Default)]
pub(super) struct ClientLog {
    /// The name of the account, once the client has logged in.
    pub(super) account: Option<String>,
    /// The time at which the full allowance will be available again.
    until: Option<Instant>,
}

impl ClientLog {
    pub(super) fn say(&mut self, address: SocketAddr, kind: &str, text: &str) {
        if self.has_room() {
            let account = self.account.as_deref().unwrap_or("");
            tracing::info!(%address, account, kind, text = tidy(text), "client log");
        }
    }

    fn has_room(&mut self) -> bool {
        let now = Instant::now();
        let until = self.until.map_or(now, |until| until.max(now)) + EVERY;
        let has_room = until <= now + EVERY * MAX;
        if has_room {
            self.until = Some(until);
        }
        has_room
    }
}

/// Replaces control characters, because a text could forge log lines with them.
fn tidy(text: &str) -> String {
    text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn clients_cannot_fill_the_log_or_forge_lines() {
        let mut log = ClientLog::default();
        assert_eq!((0..100).filter(|_| log.has_room()).count(), 20);
        tokio::time::advance(EVERY * 3).await;
        assert_eq!((0..100).filter(|_| log.has_room()).count(), 3);
        assert_eq!(tidy("one\r\n\u{1b}[31mtwo\n"), "one   [31mtwo");
    }
}
