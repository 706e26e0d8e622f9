//! Many clients that run the same steps at the same time.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::session::Session;
use super::{Setup, step, words, wrong};
use crate::cli::ClientKi;
use crate::command::client::load::conclude;
use crate::output::Failure;

/// Runs the steps once with each of this many clients.
pub(super) async fn run(setup: Setup, arguments: &ClientKi, count: u32) -> Result<(), Failure> {
    let setup = Arc::new(setup);
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for number in 1..=count {
        let steps = step::sequence(&words(arguments, Some(number))).map_err(wrong)?;
        let setup = Arc::clone(&setup);
        clients.spawn(async move {
            let began = Instant::now();
            let mut session = Session::new(&setup, Some(number));
            let mut outcome = Ok(());
            for step in &steps {
                if let Err(problem) = session.take(step).await {
                    outcome = Err(format!("{}: {problem}", step.name()));
                    break;
                }
            }
            session.close().await;
            outcome.map(|()| began.elapsed())
        });
    }
    conclude(clients, began, arguments.json).await
}
