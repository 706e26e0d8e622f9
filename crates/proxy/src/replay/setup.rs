//! What a replay needs besides its script.

use core::time::Duration;
use std::sync::Arc;

use worldwire_core::Side;
use worldwire_dissect::filter::Filter;
use worldwire_dissect::{Definitions, Keys};
use worldwire_ki::crypt::login::Secret;

use super::actor::Account;
use super::learnt::Learnt;
use super::progress::Pace;
use crate::handler::Handler;

/// How to replay.
#[derive(Debug)]
pub struct ReplaySetup {
    /// The side to play.
    pub own: Side,
    /// The definitions of messages.
    pub definitions: Arc<Definitions>,
    /// The keys of the live connection.
    pub keys: Arc<Keys>,
    /// Handlers, such as rules, which see the messages from both sides. What they drop does not
    /// count as received.
    pub handlers: Vec<Box<dyn Handler>>,
    /// The account to log in with; `None` for the recorded login.
    pub account: Option<Account>,
    /// KI: the secret of another login (CK2), with which to continue it.
    pub token: Option<String>,
    /// What earlier conversations have revealed.
    pub carried: Option<Carried>,
    /// When to send messages.
    pub pace: Pace,
    /// How long the peer may take for each step.
    pub patience: Duration,
    /// Live messages from the peer to ignore.
    pub ignored: Option<Arc<Filter>>,
    /// The Unix time when the driver's clock reads zero.
    pub epoch: Duration,
}

/// What one conversation has revealed for later ones.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    pub(super) learnt: Learnt,
    /// KI: the secret of the login.
    pub(super) ck2: Option<Secret>,
}
