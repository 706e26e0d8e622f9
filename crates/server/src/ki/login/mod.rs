//! The login of one client, as a state machine without any IO.
//!
//! [`Login`] takes what the client [says](Login::hear), [answers](Login::answer) to what it asked,
//! and the time. [`Login::poll`] yields what is to be done: replies to send, [queries](Query) to be
//! answered by whoever keeps accounts and characters, pauses, and the end. After a query nothing is
//! heard before it was answered. Randomness comes with the answers.
//!
//! | step | client | server |
//! | --- | --- | --- |
//! | login | `MSG_USER_AUTHEN_V3` | `MSG_USER_AUTHEN_RSP` with a CK2, `MSG_USER_ADMIT_IND` |
//! | login with a CK2 | `MSG_USER_VALIDATE` | `MSG_USER_VALIDATE_RSP`, `MSG_USER_ADMIT_IND` |
//! | characters | list, create, delete | the list, or a refusal |
//! | the way on | `MSG_SELECTCHARACTER` | `MSG_CHARACTERSELECTED`, the end |
//! | the zone | `MSG_ATTACH` with the key | `MSG_LOGINCOMPLETE` |

mod characters;
mod proof;
#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use worldwire_ki::character::Character;
use worldwire_ki::crypt::login::{Salt, Secret};
use worldwire_ki::message::{FileListAnswer, Selected};
use worldwire_ki::schema::classes::Classes;

use super::realm::Place;
use super::refusal::Refusal;
use super::wire::{Form, Reply, Said};
use proof::Claim;

/// What becomes of the forms of login before `MSG_USER_AUTHEN_V3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Legacy {
    /// They log in as the newest one does. Unverified: that their `Rec1` is the same.
    Accept,
    /// They are answered with `AuthenFailed`.
    Refuse,
    /// They are not answered.
    Ignore,
}

/// The rules of a server.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whether anybody is let in.
    pub open: bool,
    /// How many failed logins a connection may have; the last one closes it.
    pub attempts: u32,
    /// How long a client may say nothing.
    pub afk: Duration,
    /// What becomes of older forms of login.
    pub legacy: Legacy,
    /// Machines that nobody logs in from.
    pub banned_machines: HashSet<u64>,
    /// The name of the server.
    pub server: String,
    /// The type list that characters are read with, if there is one.
    pub classes: Option<Arc<Classes>>,
    /// The file list of the patch service, if there is one.
    pub files: Option<Arc<FileListAnswer>>,
}

/// An account, as far as a login needs it.
#[derive(Clone, Debug)]
pub struct Account {
    /// `UserID`.
    pub user: u64,
    /// The hash of the password; none if no password fits.
    pub password: Option<Secret>,
    /// Whether it is banned.
    pub banned: bool,
    /// Whether it pays.
    pub paying: bool,
    /// Whether there is no room for it now, since it does not pay.
    pub capped: bool,
}

/// What the machine wants to know or have done.
#[derive(Clone, Debug)]
pub enum Query {
    /// The account of this name: [`Answer::Account`].
    Account(String),
    /// An account and its CK2s that are good on a machine: [`Answer::Passes`].
    Passes {
        /// The account.
        user: u64,
        /// The machine.
        machine: u64,
    },
    /// A seat or a place in the queue: [`Answer::Place`].
    Enter,
    /// The characters of an account: [`Answer::Characters`].
    Characters(u64),
    /// Keeps a new character: [`Answer::Done`], when it is kept for good.
    Create {
        /// The account.
        user: u64,
        /// The character, whose ids are still to be put in.
        character: Character,
    },
    /// Removes a character of an account: [`Answer::Done`], when it is gone for good.
    Delete {
        /// The account.
        user: u64,
        /// The character.
        character: u64,
    },
    /// Makes a key for a character of an account: [`Answer::Selected`].
    Select {
        /// The account.
        user: u64,
        /// The character.
        character: u64,
    },
    /// Takes the key that a client enters the zone with: [`Answer::Attached`].
    Attach {
        /// The key.
        key: Secret,
        /// The account.
        user: u64,
        /// The character.
        character: u64,
    },
}

/// The answer to a query.
#[derive(Clone, Debug)]
pub enum Answer {
    /// To [`Query::Account`].
    Account {
        /// The account, if there is one.
        found: Option<Account>,
        /// How long the reply has to wait. None if too many wait already.
        pause: Option<Duration>,
        /// Random bytes, for a CK2.
        fresh: [u8; 64],
    },
    /// To [`Query::Passes`].
    Passes {
        /// The account, if there is one.
        found: Option<Account>,
        /// Its CK2s.
        passes: Vec<Secret>,
    },
    /// To [`Query::Enter`].
    Place(Place),
    /// To [`Query::Characters`].
    Characters {
        /// Their blobs.
        blobs: Vec<Vec<u8>>,
        /// How many slots the account has beyond those that everybody has.
        purchased: u32,
    },
    /// To [`Query::Create`] and [`Query::Delete`].
    Done(Result<(), Refusal>),
    /// To [`Query::Select`].
    Selected(Result<Box<Selected>, Refusal>),
    /// To [`Query::Attach`].
    Attached(Result<Zone, Refusal>),
}

/// Where a client is that has entered a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The zone's id.
    pub id: u64,
    /// Its name.
    pub name: String,
}

/// What others should know.
#[derive(Clone, Debug)]
pub enum Note {
    /// A CK2 was given to an account.
    Issued {
        /// The account.
        user: u64,
        /// Its name.
        name: String,
        /// The machine.
        machine: u64,
        /// The secret.
        ck2: Secret,
    },
    /// A login for this account failed.
    Failed {
        /// The name; empty if nobody knows it.
        name: String,
        /// Why.
        why: Refusal,
    },
    /// The connection is an account's from here on.
    LoggedIn(u64),
    /// Another account logs in: whatever the one before had is given up.
    LoggedOut,
    /// A step of a character's creation.
    Creation {
        /// Which.
        stage: u32,
        /// A school, a template, or 0.
        parameter: u32,
    },
    /// A message that cannot be answered now.
    Ignored,
}

/// What is to be done, in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send this.
    Send(Reply),
    /// Find this out, and [answer](Login::answer).
    Ask(Query),
    /// Go on after this time.
    Pause(Duration),
    /// Take notice.
    Tell(Note),
    /// Send what is queued, and close.
    Close,
}

/// What a query was about.
#[derive(Debug)]
enum Pending {
    Account(Claim),
    Passes {
        pass_key: Secret,
        machine: u64,
        salts: Vec<Salt>,
    },
    /// A place, for a request that needs one, or for a login alone.
    Place(Option<Said>),
    Characters,
    Create,
    Delete,
    Select,
    Attach,
}

/// Where a client stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Has not logged in.
    Stranger,
    /// Has logged in. The place is none before one was taken.
    User { user: u64, place: Option<Place> },
    /// Has entered a zone.
    Zone,
}

/// The login of one client.
#[derive(Debug)]
pub struct Login {
    rules: Arc<Rules>,
    /// Seconds since 1970 at zero of the clock.
    epoch: Duration,
    phase: Phase,
    /// The session that was offered last.
    salt: Option<Salt>,
    /// The one before, for the message that is sent again.
    before: Option<Salt>,
    /// When the client last said anything, once its session was accepted.
    active: Option<Duration>,
    now: Duration,
    failures: u32,
    pending: Option<Pending>,
    out: VecDeque<Output>,
    is_over: bool,
}

impl Login {
    /// A client that has just connected. `epoch` is the time since 1970 at zero of the clock.
    #[must_use]
    pub fn new(rules: Arc<Rules>, epoch: Duration) -> Self {
        Self {
            rules,
            epoch,
            phase: Phase::Stranger,
            salt: None,
            before: None,
            active: None,
            now: Duration::ZERO,
            failures: 0,
            pending: None,
            out: VecDeque::new(),
            is_over: false,
        }
    }

    /// A session was accepted: the first one, or another in its place.
    pub fn established(&mut self, now: Duration, salt: Salt) {
        self.now = now;
        self.before = self.salt.replace(salt).filter(|before| *before != salt);
        self.active.get_or_insert(now);
    }

    /// The client says something. Nothing is heard while a query waits for its answer, or when all
    /// is over.
    pub fn hear(&mut self, now: Duration, said: Said) {
        self.now = now;
        let Some(salt) = self.salt.filter(|_| !self.is_over && self.pending.is_none()) else {
            return;
        };
        self.active = Some(now);
        // A message that was sent again after a refresh is about the session before.
        let salts: Vec<Salt> = core::iter::once(salt).chain(self.before.take()).collect();
        match said {
            Said::Ping => self.send(Reply::Pong),
            Said::Disconnect => self.close(),
            Said::NotAfk => {}
            Said::LogCreation { stage, parameter } => {
                self.out.push_back(Output::Tell(Note::Creation { stage, parameter }));
            }
            Said::ListServers => self.send(Reply::Servers),
            Said::FileList { v2, locale } => match self.rules.files.clone() {
                Some(list) => self.send(Reply::FileList { v2, locale, list }),
                None => self.out.push_back(Output::Tell(Note::Ignored)),
            },
            // Who is in a zone does not log in there.
            _ if self.phase == Phase::Zone => self.out.push_back(Output::Tell(Note::Ignored)),
            Said::Authenticate { form, rec1, machine } => {
                self.authenticate(form, &rec1, machine, &salts);
            }
            Said::Validate { user, pass_key, machine } => {
                let pending = Pending::Passes { pass_key, machine, salts };
                self.ask(Query::Passes { user, machine }, pending);
            }
            Said::Attach { key, user, character } => {
                self.ask(Query::Attach { key, user, character }, Pending::Attach);
            }
            request @ (Said::ListCharacters
            | Said::CreateCharacter(_)
            | Said::DeleteCharacter(_)
            | Said::SelectCharacter(_)) => self.request(request),
        }
    }

    /// A query is answered. An answer to something else is left alone.
    pub fn answer(&mut self, now: Duration, answer: Answer) {
        self.now = now;
        let Some(pending) = self.pending.take() else { return };
        match (pending, answer) {
            (Pending::Account(claim), Answer::Account { found, pause, fresh }) => {
                self.proven(claim, found, pause, &fresh);
            }
            (Pending::Passes { pass_key, machine, salts }, Answer::Passes { found, passes }) => {
                self.validated(&pass_key, machine, &salts, found, &passes)
            }
            (Pending::Place(request), Answer::Place(place)) => {
                self.set_place(place);
                match request {
                    // It was told that it is in when it logged in.
                    Some(request) if place == Place::In => self.request(request),
                    request => {
                        self.send(Reply::Admit(place.position()));
                        request.into_iter().for_each(|request| self.request(request));
                    }
                }
            }
            (Pending::Characters, Answer::Characters { blobs, purchased }) => {
                self.list(blobs, purchased);
            }
            (Pending::Create, Answer::Done(outcome)) => self.send(Reply::Created(outcome.err())),
            (Pending::Delete, Answer::Done(outcome)) => self.send(Reply::Deleted(outcome.err())),
            (Pending::Select, Answer::Selected(outcome)) => self.selected(outcome),
            (Pending::Attach, Answer::Attached(outcome)) => self.attached(outcome),
            (pending, _) => self.pending = Some(pending),
        }
    }

    /// The client's place in the queue is another one.
    pub fn placed(&mut self, now: Duration, place: Place) {
        self.now = now;
        if let Phase::User { place: Some(before), .. } = &self.phase
            && *before != place
            && !self.is_over
        {
            self.set_place(place);
            self.send(Reply::Admit(place.position()));
        }
    }

    /// Time has passed.
    pub fn timeout(&mut self, now: Duration) {
        self.now = now;
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.send(Reply::Afk { in_zone: self.phase == Phase::Zone });
            self.close();
        }
    }

    /// When the client has said nothing for too long.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let active = self.active.filter(|_| !self.is_over)?;
        active.checked_add(self.rules.afk)
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// The server stops: says goodbye, if the client has a session.
    pub fn stop(&mut self) {
        if self.active.is_some() && !self.is_over {
            self.send(Reply::Shutdown { in_zone: self.phase == Phase::Zone });
            self.close();
        }
    }

    /// An operator throws the client out.
    pub fn throw_out(&mut self, now: Duration, message: String) {
        self.now = now;
        if self.active.is_some() && !self.is_over {
            self.send(Reply::ForceDisconnect { time: self.time(), message });
        }
        self.close();
    }

    /// The account, once the client has logged in.
    #[must_use]
    pub fn user(&self) -> Option<u64> {
        match self.phase {
            Phase::User { user, .. } => Some(user),
            _ => None,
        }
    }

    fn send(&mut self, reply: Reply) {
        self.out.push_back(Output::Send(reply));
    }

    fn ask(&mut self, query: Query, pending: Pending) {
        self.out.push_back(Output::Ask(query));
        self.pending = Some(pending);
    }

    fn close(&mut self) {
        self.is_over = true;
        self.out.push_back(Output::Close);
    }

    fn set_place(&mut self, now_at: Place) {
        if let Phase::User { place, .. } = &mut self.phase {
            *place = Some(now_at);
        }
    }

    /// Seconds since 1970.
    fn time(&self) -> i64 {
        self.epoch.saturating_add(self.now).as_secs().cast_signed()
    }
}
