//! The pieces that a relay holds during a run.

use std::collections::VecDeque;

use super::Command;
use crate::connection::{Decision, Forward, HoldId};

/// The pieces that a relay holds, for [`Family::command`](super::Family::command).
#[derive(Debug, Default)]
pub struct Held(VecDeque<HoldId>);

impl Held {
    /// Carries out a command that decides about pieces; `made` makes a message from bytes. False
    /// for other commands.
    pub fn carry_out<S: Forward>(
        &mut self,
        sender: &mut S,
        command: Command<'_>,
        made: impl Fn(&[u8]) -> Vec<u8>,
    ) -> bool {
        // The connection may refuse it.
        let _ = match command {
            Command::AsIs => sender.forward(Decision::AsIs),
            Command::Drop => sender.forward(Decision::Drop),
            Command::Instead(data) => sender.forward(Decision::instead(made(data))),
            Command::Hold => sender.hold().map(|id| self.0.push_back(id)),
            Command::Release(data) => {
                let index = data.first().map_or(0, |first| usize::from(*first));
                let Some(id) = self.0.remove(index % self.0.len().max(1)) else { return true };
                let decision = match data {
                    [] | [_] | [_, 0, ..] => Decision::AsIs,
                    [_, 1, ..] => Decision::Drop,
                    [_, _, rest @ ..] => Decision::instead(made(rest)),
                };
                let may_be_refused = decision != Decision::AsIs;
                let released = sender.release(id, decision);
                if released.is_err() && may_be_refused {
                    self.0.push_back(id);
                }
                released
            }
            Command::Send(_) | Command::Inject(..) | Command::Close => return false,
        };
        true
    }
}
