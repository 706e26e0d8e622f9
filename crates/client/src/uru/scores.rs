//! Scores.

use worldwire_core::Field as _;
use worldwire_uru::message::auth::client::{
    ScoreAddPoints, ScoreCreate, ScoreGetHighScores, ScoreGetScores, ScoreSetPoints,
    ScoreTransferPoints,
};
use worldwire_uru::message::{Score, Scores};

use super::auth::owned;
use super::reply::reply;
use super::{Auth, ClientError, Result};

/// Reads the records of a reply.
fn records(
    request: &'static str,
    scores: worldwire_core::Result<Scores<'_>>,
) -> Result<Vec<Score<'static>>> {
    let scores = scores.map_err(|error| ClientError::Malformed { request, error: error.into() })?;
    Ok(scores.into_owned().0)
}

impl Auth {
    /// Makes a score: type 0 is fixed, 1 accumulative, 2 accumulative with negatives. Returns its
    /// number.
    ///
    /// # Errors
    /// A refusal: `ScoreAlreadyExists`, `ScoreWrongType`.
    pub async fn create_score(
        &self,
        owner_id: u32,
        name: &str,
        game_type: u32,
        value: i32,
    ) -> Result<u32> {
        let request = |trans_id| {
            owned(ScoreCreate { trans_id, owner_id, game_name: name.into(), game_type, value })
        };
        let (request, reply) = self.link().granted(request).await?;
        Ok(reply!(request, reply, AuthServer, auth::ScoreCreateReply)?.score_id)
    }

    /// The scores of this name that an owner has: one or none.
    ///
    /// # Errors
    /// A refusal, or records that cannot be read.
    pub async fn scores(&self, owner_id: u32, name: &str) -> Result<Vec<Score<'static>>> {
        let request =
            |trans_id| owned(ScoreGetScores { trans_id, owner_id, game_name: name.into() });
        let (request, reply) = self.link().granted(request).await?;
        let reply = reply!(request, reply, AuthServer, auth::ScoreGetScoresReply)?;
        records(request, reply.scores.decode())
    }

    /// The best scores of this name (H'uru servers), at most so many; owner 0 is everybody.
    ///
    /// # Errors
    /// A refusal, or records that cannot be read.
    pub async fn high_scores(
        &self,
        owner_id: u32,
        max_scores: u32,
        name: &str,
    ) -> Result<Vec<Score<'static>>> {
        let request = |trans_id| {
            owned(ScoreGetHighScores { trans_id, owner_id, max_scores, game_name: name.into() })
        };
        let (request, reply) = self.link().granted(request).await?;
        let reply = reply!(request, reply, AuthServer, auth::ScoreGetHighScoresReply)?;
        records(request, reply.scores.decode())
    }

    /// Adds points to a score that is not fixed.
    ///
    /// # Errors
    /// A refusal: `ScoreNoDataFound`, `ScoreWrongType`.
    pub async fn add_points(&self, score_id: u32, points: i32) -> Result<()> {
        self.done(|trans_id| ScoreAddPoints { trans_id, score_id, points }).await
    }

    /// Moves points from one score to another.
    ///
    /// # Errors
    /// A refusal: `ScoreNoDataFound`, `ScoreWrongType`, `ScoreNotEnoughPoints`.
    pub async fn transfer_points(&self, from: u32, to: u32, points: i32) -> Result<()> {
        self.done(|trans_id| ScoreTransferPoints {
            trans_id,
            src_score_id: from,
            dest_score_id: to,
            points,
        })
        .await
    }

    /// Sets a fixed score.
    ///
    /// # Errors
    /// A refusal: `ScoreNoDataFound`, `ScoreWrongType`.
    pub async fn set_points(&self, score_id: u32, points: i32) -> Result<()> {
        self.done(|trans_id| ScoreSetPoints { trans_id, score_id, points }).await
    }
}
