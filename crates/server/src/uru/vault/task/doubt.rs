//! A batch in doubt: its commit failed, but may have taken effect.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tracing::debug;
use worldwire_uru::types::NetError;

use super::PATIENCE;
use super::message::{Arrival, Message};
use crate::store::{Position, Store, StoreError};

/// The initial and the maximum delay before the database is queried again.
const BACK_OFF: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(5)];

/// Finds out whether the batch that follows `last`, whose commit failed, took effect. Refuses all
/// requests until this is known.
///
/// # Errors
/// [`StoreError::Overtaken`]: in another epoch, a higher batch number says nothing about this
/// batch.
pub(super) async fn resolve(
    store: &Arc<dyn Store>,
    last: Position,
    refused: NetError,
    inbox: &mut mpsc::Receiver<Message>,
    arrivals: &mut Arrivals,
) -> Result<bool, StoreError> {
    let [mut delay, most] = BACK_OFF;
    loop {
        match refusing(inbox, refused, arrivals, timeout(PATIENCE, store.position())).await {
            Ok(Ok((found, _))) if found == last => return Ok(false),
            Ok(Ok((found, _))) if found == last.next() => return Ok(true),
            Ok(Ok((found, writer))) => {
                return Err(StoreError::overtaken(last, found, writer));
            }
            Ok(Err(error)) => debug!(%error, "the database is not available yet"),
            Err(_) => debug!("the database is not available yet"),
        }
        refusing(inbox, refused, arrivals, sleep(delay)).await;
        delay = (delay * 2).min(most);
    }
}

/// Sessions that started while a batch was in doubt. Ended ones are removed when the list would
/// grow, so it has at most twice as many entries as there are open sessions.
#[derive(Default)]
pub(super) struct Arrivals(pub(super) Vec<Arrival>);

impl Arrivals {
    fn add(&mut self, arrival: Arrival) {
        if self.0.len() == self.0.capacity() {
            self.0.retain(|arrival| !arrival.queue.is_closed());
        }
        self.0.push(arrival);
    }
}

/// Waits for a future and refuses all requests in the meantime.
async fn refusing<T>(
    inbox: &mut mpsc::Receiver<Message>,
    error: NetError,
    arrivals: &mut Arrivals,
    awaited: impl Future<Output = T>,
) -> T {
    let mut awaited = std::pin::pin!(awaited);
    loop {
        let message = tokio::select! {
            value = &mut awaited => return value,
            Some(message) = inbox.recv() => message,
        };
        match message {
            Message::Call(mut request) => {
                request.refuse(error);
                request.answer(0);
            }
            Message::Connect { reply, .. } if reply.is_closed() => {}
            Message::Connect { arrival, reply } => {
                arrivals.add(arrival);
                let _ = reply.send(());
            }
            // Dropping the reply ends the wait without an answer from the database.
            Message::Close(_) => {}
        }
    }
}
