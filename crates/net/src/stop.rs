//! Graceful shutdown, in two stages.

use core::future::pending;

use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Running,
    Stopping,
    Cutting,
}

/// Stops listeners and connections. Dropping it stops nothing.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<Stage>);

/// Receives the stages of a [`Stop`].
#[derive(Clone, Debug)]
pub struct Signal(watch::Receiver<Stage>);

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl Stop {
    /// Starts in the running stage.
    #[must_use]
    pub fn new() -> Self {
        Self(watch::Sender::new(Stage::Running))
    }

    /// First stage: refuses new connections; open ones write their queued data and close.
    pub fn stop(&self) {
        self.raise(Stage::Stopping);
    }

    /// Second stage: ends connections immediately.
    pub fn cut(&self) {
        self.raise(Stage::Cutting);
    }

    /// A receiver for connections and listeners.
    #[must_use]
    pub fn signal(&self) -> Signal {
        Signal(self.0.subscribe())
    }

    fn raise(&self, to: Stage) {
        self.0.send_if_modified(|stage| {
            let rises = *stage < to;
            *stage = to.max(*stage);
            rises
        });
    }
}

impl Signal {
    /// A signal that never fires, for connections that end by themselves.
    #[must_use]
    pub fn never() -> Self {
        Stop::new().signal()
    }

    /// Waits for the first stage.
    pub async fn stopping(&mut self) {
        self.reached(Stage::Stopping).await;
    }

    /// Waits for the second stage.
    pub async fn cutting(&mut self) {
        self.reached(Stage::Cutting).await;
    }

    async fn reached(&mut self, wanted: Stage) {
        if self.0.wait_for(|stage| *stage >= wanted).await.is_err() {
            // All senders are gone, so the stage never changes.
            pending::<()>().await;
        }
    }
}
