//! Parts of replies: result codes, and the vault's answers as protocol records.

use worldwire_uru::message::auth::server as reply;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::message::{NetAgeInfo, Score, Scores};
use worldwire_uru::types::{Nested, NetError, TermStr, WFix};

use crate::store::ScoreRow;
use crate::uru::vault::{Notice, PublicAge};

/// The result code of a reply.
pub(super) fn outcome<T>(result: &Result<T, NetError>) -> NetError {
    match result {
        Ok(_) => NetError::Success,
        Err(error) => *error,
    }
}

/// The message that delivers a notice to a client.
pub(super) fn notice_message(notice: Notice) -> Reply<'static> {
    match notice {
        Notice::NodeChanged { node_id, revision_id } => {
            reply::VaultNodeChanged { node_id, revision_id }.into()
        }
        Notice::NodeAdded { parent_id, child_id, owner_id } => {
            reply::VaultNodeAdded { parent_id, child_id, owner_id }.into()
        }
        Notice::NodeRemoved { parent_id, child_id } => {
            reply::VaultNodeRemoved { parent_id, child_id }.into()
        }
        Notice::KickedOff { reason } => reply::KickedOff { reason }.into(),
    }
}

/// The notice in a message, if it reports a change in the vault.
pub(super) fn notice_in(message: &Reply<'_>) -> Option<Notice> {
    match *message {
        Reply::VaultNodeChanged(reply::VaultNodeChanged { node_id, revision_id }) => {
            Some(Notice::NodeChanged { node_id, revision_id })
        }
        Reply::VaultNodeAdded(reply::VaultNodeAdded { parent_id, child_id, owner_id }) => {
            Some(Notice::NodeAdded { parent_id, child_id, owner_id })
        }
        Reply::VaultNodeRemoved(reply::VaultNodeRemoved { parent_id, child_id }) => {
            Some(Notice::NodeRemoved { parent_id, child_id })
        }
        _ => None,
    }
}

/// A public age as a list entry.
pub(super) fn public_age(age: &PublicAge) -> NetAgeInfo<'static> {
    NetAgeInfo {
        instance_id: age.instance,
        filename: fixed(&age.filename),
        instance_name: fixed(&age.instance_name),
        user_name: fixed(&age.user_name),
        description: fixed(&age.description),
        sequence_number: age.sequence,
        language: age.language,
        owner_count: age.owners,
        current_population: age.population,
    }
}

/// A text in a field of fixed size, truncated if it does not fit together with its terminator.
fn fixed<const N: usize>(text: &str) -> WFix<'static, N> {
    let mut units = 0;
    let fits = |c: &char| {
        units += c.len_utf16();
        units < N
    };
    WFix::from(text.chars().take_while(fits).collect::<String>().as_str())
}

/// The number of scores found, and the blob that contains them in a reply.
pub(super) fn scores(
    found: &Result<Vec<ScoreRow>, NetError>,
) -> (u32, Nested<'static, Scores<'static>, 1_048_576>) {
    let scores: Vec<_> = found.iter().flatten().map(score).collect();
    let count = u32::try_from(scores.len()).unwrap_or(u32::MAX);
    // The vault limits the lengths of names, so encoding cannot fail.
    let scores = Nested::encode_from(&worldwire_core::Rest(scores));
    (count, scores.unwrap_or_else(|_| Nested::new(Vec::new())))
}

fn score(score: &ScoreRow) -> Score<'static> {
    Score {
        score_id: score.id,
        owner_id: score.owner,
        created_time: score.created,
        game_type: score.kind,
        value: score.value,
        game_name: TermStr::from(score.name.as_str()),
    }
}
