//! The WebSocket: progress and new rows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::api::status;
use crate::error::Refusal;
use crate::selection::SelectionStatus;
use crate::state::State;

/// The interval at which changes are reported.
const TICK: Duration = Duration::from_millis(100);
/// The number of ticks after which a ping checks that the client is still there.
const PING_TICKS: u64 = 200;
/// How long a client may take to accept an event.
const PATIENCE: Duration = Duration::from_secs(10);
/// The maximum length of a message from a client. None is expected.
const MAX_RECEIVED: usize = 4096;

pub(crate) async fn open(
    extract::State(state): extract::State<Arc<State>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Ok(permit) = Arc::clone(&state.sockets).try_acquire_owned() else {
        return Refusal::busy("too many WebSockets are open").into_response();
    };
    let upgrade = upgrade.max_message_size(MAX_RECEIVED).max_frame_size(MAX_RECEIVED);
    upgrade.on_upgrade(move |mut socket| async move {
        let _permit = permit;
        report(&state, &mut socket).await;
    })
}

/// Sends changes until the client disconnects or the program ends.
async fn report(state: &State, socket: &mut WebSocket) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = None;
    let mut selections: HashMap<u64, SelectionStatus> = HashMap::new();
    let (mut live, mut looked, mut tick) = (Value::Null, None::<Instant>, 0_u64);
    while !state.is_closed() {
        tokio::select! {
            _ = ticks.tick() => {}
            received = socket.recv() => match received {
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return,
            },
        }
        let now = status(state);
        if last.as_ref() != Some(&now) {
            let event = json!({ "type": "capture", "capture": now });
            last = Some(now);
            if !send(socket, &event.to_string()).await {
                return;
            }
        }
        tick += 1;
        if tick.is_multiple_of(PING_TICKS)
            && !matches!(
                timeout(PATIENCE, socket.send(Message::Ping(Bytes::new()))).await,
                Ok(Ok(()))
            )
        {
            return;
        }
        if let Some(running) = &state.live
            && looked.is_none_or(|at| at.elapsed() >= running.interval())
        {
            looked = Some(Instant::now());
            let now = running.state().await;
            if live != now {
                let event = json!({ "type": "live", "live": now });
                live = now;
                if !send(socket, &event.to_string()).await {
                    return;
                }
            }
        }
        let statuses = state.selections.statuses();
        selections.retain(|id, _| statuses.iter().any(|it| it.id == *id));
        for status in statuses {
            if selections.get(&status.id) == Some(&status) {
                continue;
            }
            let event = json!({ "type": "selection", "selection": &status });
            selections.insert(status.id, status);
            if !send(socket, &event.to_string()).await {
                return;
            }
        }
    }
}

async fn send(socket: &mut WebSocket, text: &str) -> bool {
    matches!(timeout(PATIENCE, socket.send(Message::text(text))).await, Ok(Ok(())))
}
