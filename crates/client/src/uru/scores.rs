//! Requests for scores.

use worldwire_core::Field as _;
use worldwire_uru::message::auth::client::{ScoreAddPoints, ScoreSetPoints, ScoreTransferPoints};
use worldwire_uru::message::{Score, Scores};

use super::reply::ask;
use super::{Auth, ClientError, Result};

/// Decodes the records in a reply.
fn records(
    request: &'static str,
    scores: worldwire_core::Result<Scores<'_>>,
) -> Result<Vec<Score<'static>>> {
    Ok(scores.map_err(ClientError::malformed(request))?.into_owned().0)
}

impl Auth {
    /// Creates a score and returns its number. Type 0 is fixed, 1 is accumulative, and 2 is
    /// accumulative and may be negative. Refusals include `ScoreAlreadyExists` and
    /// `ScoreWrongType`.
    pub async fn create_score(
        &self,
        owner_id: u32,
        name: &str,
        game_type: u32,
        value: i32,
    ) -> Result<u32> {
        let reply = ask!(self.link(), auth::ScoreCreate {
            owner_id, game_name: name.into(), game_type, value
        } => ScoreCreateReply)?;
        Ok(reply.score_id)
    }

    /// Fetches an owner's score with this name, if there is one.
    pub async fn scores(&self, owner_id: u32, name: &str) -> Result<Vec<Score<'static>>> {
        let reply = ask!(self.link(), auth::ScoreGetScores {
            owner_id, game_name: name.into()
        } => ScoreGetScoresReply)?;
        records("ScoreGetScores", reply.scores.decode())
    }

    /// Fetches at most `max_scores` of the highest scores with this name: those of one owner or,
    /// for owner 0, of everyone. H'uru servers only.
    pub async fn high_scores(
        &self,
        owner_id: u32,
        max_scores: u32,
        name: &str,
    ) -> Result<Vec<Score<'static>>> {
        let reply = ask!(self.link(), auth::ScoreGetHighScores {
            owner_id, max_scores, game_name: name.into()
        } => ScoreGetHighScoresReply)?;
        records("ScoreGetHighScores", reply.scores.decode())
    }

    /// Adds points to a score that is not fixed. Refusals include `ScoreNoDataFound` and
    /// `ScoreWrongType`.
    pub async fn add_points(&self, score_id: u32, points: i32) -> Result<()> {
        self.done(|trans_id| ScoreAddPoints { trans_id, score_id, points }).await
    }

    /// Transfers points from one score to another. Refusals include `ScoreNoDataFound`,
    /// `ScoreWrongType` and `ScoreNotEnoughPoints`.
    pub async fn transfer_points(&self, from: u32, to: u32, points: i32) -> Result<()> {
        self.done(|trans_id| ScoreTransferPoints {
            trans_id,
            src_score_id: from,
            dest_score_id: to,
            points,
        })
        .await
    }

    /// Sets a fixed score. Refusals include `ScoreNoDataFound` and `ScoreWrongType`.
    pub async fn set_points(&self, score_id: u32, points: i32) -> Result<()> {
        self.done(|trans_id| ScoreSetPoints { trans_id, score_id, points }).await
    }
}
