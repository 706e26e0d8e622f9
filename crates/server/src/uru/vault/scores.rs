//! Requests about scores. A score is a number of points under a name; each owner has at most one
//! score per name.
//!
//! Anyone may read scores. A player may create and change its own scores (those of its Player node
//! or PlayerInfo), and those of ages that it owns or is in.
//!
//! | type | | `AddPoints` | `SetPoints` | `TransferPoints` |
//! | --- | --- | --- | --- | --- |
//! | 0 | fixed | no | yes | no |
//! | 1 | accumulative | never below 0 | no | as far as there are points |
//! | 2 | accumulative, may be negative | yes | no | yes, if both are |

use worldwire_uru::types::NetError;
use worldwire_uru::vault::NodeType;

use super::ConnectionId;
use super::content::Facts;
use super::session::Outcome;
use super::steps::VaultState;
use crate::store::ScoreRow;

const FIXED: u32 = 0;
const ACCUMULATIVE: u32 = 1;
const WITH_NEGATIVES: u32 = 2;
/// The highest type of score.
pub(crate) const MAX_KIND: u32 = WITH_NEGATIVES;

/// The maximum number of scores in a list of high scores.
const MAX_HIGH: usize = 100;

impl VaultState {
    /// `ScoreCreate`. Returns the number of the new score and the time of its creation.
    pub(crate) fn create_score(
        &mut self,
        connection: ConnectionId,
        owner: u32,
        name: &str,
        kind: u32,
        value: i32,
    ) -> Outcome<(u32, u32)> {
        self.check_owner(connection, owner)?;
        if name.is_empty() || name.contains(|c: char| c.is_control() || c == '\u{fffd}') {
            return Err(NetError::InvalidParameter.into());
        }
        if kind > MAX_KIND {
            return Err(NetError::ScoreWrongType.into());
        }
        if self.scores().of_owner(name, owner).is_some() {
            return Err(NetError::ScoreAlreadyExists.into());
        }
        let created = self.now();
        let value = if kind == ACCUMULATIVE { value.max(0) } else { value };
        let score = ScoreRow { id: 0, owner, name: name.to_owned(), kind, value, created };
        Ok((self.make_score(score)?, created))
    }

    /// `ScoreGetScores`: the score of an owner, if it exists.
    pub(crate) fn get_scores(
        &self,
        connection: ConnectionId,
        owner: u32,
        name: &str,
    ) -> Outcome<Vec<ScoreRow>> {
        self.logged_in(connection)?;
        Ok(self.scores().of_owner(name, owner).into_iter().cloned().collect())
    }

    /// `ScoreAddPoints`. The sum is limited to 32 bits, and to at least 0 unless the score may be
    /// negative.
    pub(crate) fn add_points(
        &mut self,
        connection: ConnectionId,
        id: u32,
        points: i32,
    ) -> Outcome<()> {
        let mut score = self.score(connection, id)?;
        if score.kind == FIXED {
            return Err(NetError::ScoreWrongType.into());
        }
        score.value = score.value.saturating_add(points);
        if score.kind == ACCUMULATIVE {
            score.value = score.value.max(0);
        }
        self.put_score(id, Some(score));
        Ok(())
    }

    /// `ScoreTransferPoints`. Both scores must belong to the player. A sum that does not fit into
    /// 32 bits is refused.
    pub(crate) fn transfer_points(
        &mut self,
        connection: ConnectionId,
        from: u32,
        to: u32,
        points: i32,
    ) -> Outcome<()> {
        self.playing(connection)?;
        if from == to || points < 0 {
            return Err(NetError::InvalidParameter.into());
        }
        let (mut source, mut target) = (self.score(connection, from)?, self.score(connection, to)?);
        if source.kind == FIXED || target.kind == FIXED {
            return Err(NetError::ScoreWrongType.into());
        }
        let negative = source.kind == WITH_NEGATIVES && target.kind == WITH_NEGATIVES;
        if source.value < points && !negative {
            return Err(NetError::ScoreNotEnoughPoints.into());
        }
        // A transfer neither loses nor creates points.
        let left = source.value.checked_sub(points).ok_or(NetError::ScoreNotEnoughPoints)?;
        let sum = target.value.checked_add(points).ok_or(NetError::InvalidParameter)?;
        (source.value, target.value) = (left, sum);
        self.put_score(from, Some(source));
        self.put_score(to, Some(target));
        Ok(())
    }

    /// `ScoreSetPoints`.
    pub(crate) fn set_points(
        &mut self,
        connection: ConnectionId,
        id: u32,
        points: i32,
    ) -> Outcome<()> {
        let mut score = self.score(connection, id)?;
        if score.kind != FIXED {
            return Err(NetError::ScoreWrongType.into());
        }
        score.value = points;
        self.put_score(id, Some(score));
        Ok(())
    }

    /// `ScoreGetHighScores`: the highest scores of all owners, of the owners of an age (an
    /// AgeInfo), or of a player (a PlayerInfo).
    pub(crate) fn high_scores(
        &self,
        connection: ConnectionId,
        owner: u32,
        most: u32,
        name: &str,
    ) -> Outcome<Vec<ScoreRow>> {
        self.logged_in(connection)?;
        let mut scores: Vec<_> = if owner == 0 {
            self.scores().named(name).cloned().collect()
        } else {
            let infos: Vec<_> = match self.graph().kind(owner) {
                Some(NodeType::AgeInfo) => {
                    let list = self.owners_list(owner);
                    list.into_iter().flat_map(|list| self.graph().children(list)).collect()
                }
                Some(NodeType::PlayerInfo) => vec![owner],
                _ => Vec::new(),
            };
            let players =
                infos.into_iter().filter_map(|info| match self.graph().get(info)?.facts {
                    Facts::PlayerInfo { player, .. } => Some(player),
                    _ => None,
                });
            players.filter_map(|player| self.scores().of_owner(name, player)).cloned().collect()
        };
        scores.sort_by_key(|score| (std::cmp::Reverse(score.value), score.id));
        scores.truncate(usize::try_from(most).unwrap_or(MAX_HIGH).min(MAX_HIGH));
        Ok(scores)
    }

    /// A score that a session may change.
    fn score(&self, connection: ConnectionId, id: u32) -> Outcome<ScoreRow> {
        self.playing(connection)?;
        let score = self.scores().get(id).ok_or(NetError::ScoreNoDataFound)?;
        // The owner of an old score may have been deleted.
        if self.graph().contains(score.owner) || !self.playing(connection)?.is_admin() {
            self.check_owner(connection, score.owner)?;
        }
        Ok(score.clone())
    }

    /// Checks that a session may create and change the scores of an owner.
    fn check_owner(&self, connection: ConnectionId, owner: u32) -> Result<(), NetError> {
        let session = self.playing(connection)?;
        let entry = self.graph().get(owner).ok_or(NetError::VaultNodeNotFound)?;
        let allowed = match entry.kind {
            _ if session.is_admin() || !self.config().strict => true,
            NodeType::Player => owner == session.player,
            NodeType::PlayerInfo => entry.stands_for(session.player),
            NodeType::Age | NodeType::AgeInfo => self.is_present(session, owner),
            _ => false,
        };
        if allowed { Ok(()) } else { Err(NetError::VaultNodeAccessViolation) }
    }
}
