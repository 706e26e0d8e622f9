//! The login of one client, as a state machine without I/O.
//!
//! [`Login`] receives the client's [requests](Login::handle), [answers](Login::answer) to its
//! queries, and the time. [`Login::poll`] returns the next step: send a reply, answer a
//! [query](Query) from the database, pause, or close. Requests that arrive while a query is open
//! are ignored. Random bytes come with the answers.
//!
//! | step | client | server |
//! | --- | --- | --- |
//! | login | `MSG_USER_AUTHEN_V3` | `MSG_USER_AUTHEN_RSP` with a CK2, `MSG_USER_ADMIT_IND` |
//! | login with a CK2 | `MSG_USER_VALIDATE` | `MSG_USER_VALIDATE_RSP`, `MSG_USER_ADMIT_IND` |
//! | characters | list, create, delete | the list, or a refusal |
//! | choice | `MSG_SELECTCHARACTER` | `MSG_CHARACTERSELECTED`, then closes |
//! | zone | `MSG_ATTACH` with the key | `MSG_LOGINCOMPLETE` |

mod characters;
mod proof;
#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use worldwire_ki::character::Character;
use worldwire_ki::crypt::Salt;
use worldwire_ki::crypt::login::Secret;
use worldwire_ki::message::{FileListAnswer, Selected};
use worldwire_ki::schema::classes::Classes;

use super::config::{KiConfig, Legacy, LoginSettings};
use super::refusal::Refusal;
use super::wire::{Form, Reply, Request};
use proof::Claim;

/// A server's rules for logins.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whether players can log in.
    pub open: bool,
    /// The number of failed logins after which a connection is closed.
    pub attempts: u32,
    /// How long a client may send nothing.
    pub afk: Duration,
    /// How to treat older login messages.
    pub legacy: Legacy,
    /// Machines from which logins are refused.
    pub banned_machines: HashSet<u64>,
    /// The server's name.
    pub server: String,
    /// The type list for checking new characters, if there is one.
    pub classes: Option<Arc<Classes>>,
    /// The patch service's file list, if there is one.
    pub files: Option<Arc<FileListAnswer>>,
}

impl Rules {
    /// The rules in a configuration, without type lists or a patch service.
    #[must_use]
    pub fn of(config: &KiConfig) -> Self {
        let LoginSettings { attempts, legacy, ref banned_machines, .. } = config.login;
        Self {
            open: config.open,
            attempts,
            afk: Duration::from_secs(config.session.afk_seconds.into()),
            legacy,
            banned_machines: banned_machines.iter().copied().collect(),
            server: config.name.clone(),
            classes: None,
            files: None,
        }
    }
}

/// The parts of an account that a login needs.
#[derive(Clone, Debug)]
pub struct Account {
    /// `UserID`.
    pub user: u64,
    /// The hash of the password, if the account has one.
    pub password: Option<Secret>,
    /// Whether the account is banned.
    pub banned: bool,
    /// Whether it is a paying account.
    pub paying: bool,
    /// Whether it is a free account and the limit on free players has been reached.
    pub capped: bool,
}

/// A connection's position in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePosition {
    /// Admitted.
    In,
    /// Waiting at this position; 1 is next.
    Waiting(u32),
}

impl QueuePosition {
    /// `PositionInQueue`: 0 means admitted.
    #[must_use]
    pub fn position(self) -> u32 {
        match self {
            Self::In => 0,
            Self::Waiting(position) => position,
        }
    }
}

/// A question or an order for the part of the server that owns accounts and characters.
#[derive(Clone, Debug)]
pub enum Query {
    /// Look up the account with this name: [`Answer::Account`].
    Account(String),
    /// Look up an account and its CK2s that are valid on a machine: [`Answer::Tickets`].
    Tickets {
        /// The account.
        user: u64,
        /// The machine.
        machine: u64,
    },
    /// Enter the queue: [`Answer::QueuePosition`].
    Enter,
    /// List an account's characters: [`Answer::Characters`].
    Characters(u64),
    /// Store a new character: [`Answer::Done`] once that is durable.
    Create {
        /// The account.
        user: u64,
        /// The character, which has no IDs yet.
        character: Character,
    },
    /// Delete an account's character: [`Answer::Done`] once that is durable.
    Delete {
        /// The account.
        user: u64,
        /// The character.
        character: u64,
    },
    /// Create a zone key for an account's character: [`Answer::Selected`].
    Select {
        /// The account.
        user: u64,
        /// The character.
        character: u64,
    },
    /// Redeem a client's key to enter the zone: [`Answer::Attached`].
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
    /// The answer to [`Query::Account`].
    Account {
        /// The account, if there is one.
        found: Option<Account>,
        /// How long to delay the reply.
        pause: Duration,
        /// Random bytes for a CK2. `None` if the system could not supply any.
        fresh: Option<[u8; 64]>,
    },
    /// The answer to [`Query::Tickets`].
    Tickets {
        /// The account, if there is one.
        found: Option<Account>,
        /// Its CK2s.
        tickets: Vec<Secret>,
    },
    /// The answer to [`Query::Enter`].
    QueuePosition(QueuePosition),
    /// The answer to [`Query::Characters`].
    Characters {
        /// Their blobs.
        blobs: Vec<Vec<u8>>,
        /// The account's character slots beyond those that every account has.
        purchased: u32,
    },
    /// The answer to [`Query::Create`] and [`Query::Delete`].
    Done(Result<(), Refusal>),
    /// The answer to [`Query::Select`].
    Selected(Result<Box<Selected>, Refusal>),
    /// The answer to [`Query::Attach`].
    Attached(Result<Zone, Refusal>),
}

/// The zone that a client has entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The zone's ID.
    pub id: u64,
    /// Its name.
    pub name: String,
}

/// Something that happened during a login, for the realm, the log and the metrics.
#[derive(Clone, Debug)]
pub enum LoginEvent {
    /// A CK2 was issued to an account.
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
        /// The name; empty if it is unknown.
        name: String,
        /// The reason.
        why: Refusal,
    },
    /// The connection now belongs to this account.
    LoggedIn(u64),
    /// Another account is logging in, so the previous account releases everything that it holds.
    LoggedOut,
    /// The player completed a step in creating a character.
    Creation {
        /// The step.
        stage: u32,
        /// A school, a template, or 0.
        parameter: u32,
    },
    /// A message was ignored because it has no reply in this phase.
    Ignored,
}

/// An action that the caller must take. Outputs are in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send a reply.
    Send(Reply),
    /// Answer a query, with [`Login::answer`].
    Ask(Query),
    /// Wait this long before the next output.
    Pause(Duration),
    /// Record an event.
    Tell(LoginEvent),
    /// Send everything queued, then close the connection.
    Close,
}

/// The reason for an open query.
#[derive(Debug)]
enum Pending {
    Account(Claim),
    Tickets {
        pass_key: Secret,
        machine: u64,
        salts: Vec<Salt>,
    },
    /// A queue slot, for the login and for the request that needs it, if any.
    QueuePosition(Option<Request>),
    Characters,
    Create,
    Delete,
    Select,
    Attach,
}

/// The progress of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Not logged in.
    Stranger,
    /// Logged in. The client has no queue slot until it needs one.
    User { user: u64, place: Option<QueuePosition> },
    /// In a zone.
    Zone,
}

/// The login of one client.
#[derive(Debug)]
pub struct Login {
    rules: Arc<Rules>,
    /// The clock's zero, in time since 1970.
    epoch: Duration,
    phase: Phase,
    /// The salt of the current session.
    salt: Option<Salt>,
    /// The salt of the previous session, for a message that the client resends.
    before: Option<Salt>,
    /// When the client last sent anything, once its session was accepted.
    active: Option<Duration>,
    now: Duration,
    failures: u32,
    pending: Option<Pending>,
    out: VecDeque<Output>,
    is_over: bool,
}

impl Login {
    /// A client that has just connected. `epoch` is the clock's zero, in time since 1970.
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

    /// The client accepted a session: its first, or one that replaces it.
    pub fn established(&mut self, now: Duration, salt: Salt) {
        self.now = now;
        self.before = self.salt.replace(salt).filter(|before| *before != salt);
        self.active.get_or_insert(now);
    }

    /// Handles a request. Requests are ignored while a query is open and after the end.
    pub fn handle(&mut self, now: Duration, request: Request) {
        self.now = now;
        let Some(salt) = self.salt.filter(|_| !self.is_over && self.pending.is_none()) else {
            return;
        };
        self.active = Some(now);
        // A message resent after a refresh uses the previous session's salt.
        let salts: Vec<Salt> = core::iter::once(salt).chain(self.before.take()).collect();
        match request {
            Request::Ping => self.send(Reply::Pong),
            Request::Disconnect => self.close(),
            Request::NotAfk => {}
            Request::LogCreation { stage, parameter } => {
                self.out.push_back(Output::Tell(LoginEvent::Creation { stage, parameter }));
            }
            Request::ListServers => self.send(Reply::Servers),
            Request::FileList { v2, locale } => match self.rules.files.clone() {
                Some(list) => self.send(Reply::FileList { v2, locale, list }),
                None => self.out.push_back(Output::Tell(LoginEvent::Ignored)),
            },
            // The remaining requests make no sense in a zone.
            _ if self.phase == Phase::Zone => self.out.push_back(Output::Tell(LoginEvent::Ignored)),
            Request::Authenticate { form, rec1, machine } => {
                self.authenticate(form, &rec1, machine, &salts);
            }
            Request::Validate { user, pass_key, machine } => {
                let pending = Pending::Tickets { pass_key, machine, salts };
                self.ask(Query::Tickets { user, machine }, pending);
            }
            Request::Attach { key, user, character } => {
                self.ask(Query::Attach { key, user, character }, Pending::Attach);
            }
            request @ (Request::ListCharacters
            | Request::CreateCharacter(_)
            | Request::DeleteCharacter(_)
            | Request::SelectCharacter(_)) => self.request(request),
        }
    }

    /// Handles the answer to the open query. Other answers are ignored.
    pub fn answer(&mut self, now: Duration, answer: Answer) {
        self.now = now;
        let Some(pending) = self.pending.take() else { return };
        match (pending, answer) {
            (Pending::Account(claim), Answer::Account { found, pause, fresh }) => {
                self.proven(claim, found, pause, fresh);
            }
            (Pending::Tickets { pass_key, machine, salts }, Answer::Tickets { found, tickets }) => {
                self.validated(&pass_key, machine, &salts, found, &tickets)
            }
            (Pending::QueuePosition(request), Answer::QueuePosition(place)) => {
                self.set_place(place);
                match request {
                    // The client was admitted when it logged in.
                    Some(request) if place == QueuePosition::In => self.request(request),
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

    /// Handles a change of the client's position in the queue.
    pub fn placed(&mut self, now: Duration, place: QueuePosition) {
        self.now = now;
        if let Phase::User { place: Some(before), .. } = &self.phase
            && *before != place
            && !self.is_over
        {
            self.set_place(place);
            self.send(Reply::Admit(place.position()));
        }
    }

    /// Handles the passing of time.
    pub fn timeout(&mut self, now: Duration) {
        self.now = now;
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.send(Reply::Afk { in_zone: self.phase == Phase::Zone });
            self.close();
        }
    }

    /// When the client times out because of inactivity.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let active = self.active.filter(|_| !self.is_over)?;
        active.checked_add(self.rules.afk)
    }

    /// The next action for the caller.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Tells the client that the server is stopping, if it has a session.
    pub fn stop(&mut self) {
        if self.active.is_some() && !self.is_over {
            self.send(Reply::Shutdown { in_zone: self.phase == Phase::Zone });
            self.close();
        }
    }

    /// Disconnects the client at an operator's request.
    pub fn kick(&mut self, now: Duration, message: String) {
        self.now = now;
        if self.active.is_some() && !self.is_over {
            self.send(Reply::ForceDisconnect { time: self.time(), message });
        }
        self.close();
    }

    /// The client's account, once it has logged in.
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

    fn set_place(&mut self, now_at: QueuePosition) {
        if let Phase::User { place, .. } = &mut self.phase {
            *place = Some(now_at);
        }
    }

    /// The current time, in seconds since 1970.
    fn time(&self) -> i64 {
        self.epoch.saturating_add(self.now).as_secs().cast_signed()
    }
}
