//! Sessions: the connections to the margin server, the characters that they have loaded, and the
//! hellos that belong to them.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use worldwire_mxo::crypt::SessionKey;
use worldwire_mxo::frame::Hello;
use worldwire_mxo::login::{LoginStatus, MarginAnswer, MarginQuery};
use worldwire_net::{Handle, Mailbox, mailbox};

use super::characters::{Place, Refused};
use super::{Number, Realm};
use crate::store::accounts::folded;

/// The maximum number of notices that wait for a margin connection.
const NOTICES: usize = 8;

/// A notice to a margin connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The hello of the connection's session has arrived.
    Established,
    /// The character is no longer in the world, but the client may return.
    Lost,
    /// The character has left the game.
    Left,
    /// Close the connection.
    Close(CloseCause),
}

/// Why the server closes a margin connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseCause {
    /// An operator closed it.
    Kicked,
    /// The account is banned.
    Banned,
    /// The account is inactive.
    Deactivated,
    /// The account is deleted.
    Deleted,
    /// Another client has loaded its character after this client had sent nothing for a while.
    Replaced,
}

impl CloseCause {
    /// The text that the player reads if the character is in the world.
    const fn text(self) -> &'static str {
        match self {
            Self::Kicked => "An operator has disconnected you.",
            Self::Banned => "Your account has been banned.",
            Self::Deactivated => "Your account has been deactivated.",
            Self::Deleted => "Your account has been deleted.",
            Self::Replaced => "Your character was loaded again from another connection.",
        }
    }
}

/// The realm's record of a margin connection.
#[derive(Debug)]
pub(super) struct MarginEntry {
    notices: Handle<Notice>,
    pub(super) user: Option<u32>,
}

/// The session of a margin connection's client, needed to load a character.
#[derive(Clone, Debug)]
pub(crate) struct MarginSession {
    /// The connection's number.
    pub(crate) number: Number,
    /// The client's address.
    pub(crate) address: IpAddr,
    /// The session's ID and key.
    pub(crate) session: Option<(u32, SessionKey)>,
    /// The account, once the certificate is accepted.
    pub(crate) user: Option<u32>,
}

/// A loaded character, and the session in which its client can enter the world.
#[derive(Debug)]
pub(crate) struct GameSession {
    /// The character.
    pub(crate) character: u32,
    /// The session's ID and key, as in the hello.
    pub(crate) id: u32,
    pub(crate) key: SessionKey,
    margin: Number,
    address: IpAddr,
    notices: Handle<Notice>,
    /// The time at which the client last sent something, in milliseconds on the server's clock.
    heard: AtomicU64,
    is_over: AtomicBool,
    /// Why the server is ending the session, if it is.
    cause: OnceLock<CloseCause>,
    /// The number of the session's connections on the game channel.
    channels: AtomicUsize,
}

impl GameSession {
    /// Counts a connection on the game channel.
    pub(crate) fn open_channel(&self) {
        self.channels.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a connection on the game channel. When the last one ends, the margin
    /// connection is notified.
    pub(crate) fn close_channel(&self) {
        if self.channels.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.tell(Notice::Lost);
        }
    }

    /// Records that the client has sent something.
    pub(crate) fn hear(&self, now: Duration) {
        self.heard.store(millis(now), Ordering::Relaxed);
    }

    /// Whether the session has ended: its margin connection is closed, or has loaded another
    /// character.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// The text that the player reads if the server has ended the session.
    pub(crate) fn farewell(&self) -> Option<&'static str> {
        self.cause.get().map(|cause| cause.text())
    }

    /// Records why the session ends, and tells the margin connection to close.
    fn close(&self, cause: CloseCause) {
        let _ = self.cause.set(cause);
        self.tell(Notice::Close(cause));
    }

    /// Notifies the margin connection.
    pub(crate) fn tell(&self, notice: Notice) {
        // If the queue overflows, the connection ends; a closed connection needs no notice.
        let _ = self.notices.tell(notice);
    }

    fn silent_for(&self, now: Duration) -> Duration {
        let heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
        now.saturating_sub(heard)
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Why a hello on the game channel is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HelloRefusal {
    /// No margin session has loaded the character.
    NoMargin,
    /// The hello names another session, or is encrypted with another key.
    OtherSession,
    /// The hello comes from a different address than the margin connection.
    OtherAddress,
}

impl HelloRefusal {
    /// All refusals.
    pub(crate) const ALL: [Self; 3] = [Self::NoMargin, Self::OtherSession, Self::OtherAddress];

    /// The refusal's name in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NoMargin => "no-margin-session",
            Self::OtherSession => "other-session",
            Self::OtherAddress => "other-address",
        }
    }
}

impl fmt::Display for HelloRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMargin => "no margin session has loaded the character",
            Self::OtherSession => "it does not name the character's margin session",
            Self::OtherAddress => "it comes from a different address than the margin session",
        })
    }
}

impl Realm {
    /// Registers a new margin connection.
    pub(crate) fn arrive(&self) -> (Number, Mailbox<Notice>) {
        let (notices, mailbox) = mailbox(NOTICES);
        let mut state = self.state();
        let number = state.next_connection;
        state.next_connection += 1;
        state.margins.insert(number, MarginEntry { notices, user: None });
        (number, mailbox)
    }

    /// Removes a margin connection. Its character leaves, and its claim is released.
    pub(crate) fn depart(&self, who: Number) {
        let mut state = self.state();
        state.margins.remove(&who);
        state.claims.retain(|_, (claimant, _)| *claimant != who);
        state.unload(who);
    }

    /// Answers a query of a margin connection.
    pub(crate) async fn answer(&self, margin: &MarginSession, query: MarginQuery) -> MarginAnswer {
        let who = margin.number;
        let user = margin.user.unwrap_or(0);
        match query {
            MarginQuery::Account { user_id, name } => {
                let mut state = self.state();
                // A certificate can be used several times.
                let sessions = state.margins.values().filter(|it| it.user == Some(user_id)).count();
                let has_room = sessions < self.0.config.limits.sessions_per_account;
                let may_enter = state.accounts.get(user_id).is_some_and(|entry| {
                    has_room
                        && folded(&entry.name) == folded(&name)
                        && !entry.is_banned()
                        && !entry.is_inactive()
                });
                if let (true, Some(entry)) = (may_enter, state.margins.get_mut(&who)) {
                    entry.user = Some(user_id);
                }
                MarginAnswer::Account(may_enter)
            }
            MarginQuery::Claim { handle } => MarginAnswer::Claimed(self.claim(who, user, &handle)),
            MarginQuery::Create { character_id, handle, character } => {
                let made = self.create(who, user, character_id, handle, &character).await;
                MarginAnswer::Loaded(
                    made.map_err(|Refused(status)| status)
                        .and_then(|()| self.load(margin, character_id)),
                )
            }
            MarginQuery::Delete { character_id } => {
                let gone = self.delete(user, character_id).await;
                MarginAnswer::Deleted(match gone {
                    Ok(()) => LoginStatus::Success,
                    Err(Refused(status)) => status,
                })
            }
            MarginQuery::Load { character_id } => {
                MarginAnswer::Loaded(self.load(margin, character_id))
            }
        }
    }

    /// Loads a character for a margin connection, replacing the one that it had.
    fn load(
        &self,
        margin: &MarginSession,
        id: u64,
    ) -> Result<Box<worldwire_mxo::login::CharacterData>, LoginStatus> {
        let (Some((session, key)), Some(user)) = (&margin.session, margin.user) else {
            return Err(LoginStatus::NoAccount);
        };
        let now = self.0.clock.now();
        let character = {
            let mut state = self.state();
            let (character, entry) = state.own(user, id).map_err(|Refused(status)| status)?;
            if entry.record.world != self.0.config.world_id {
                return Err(LoginStatus::InvalidWorld);
            }
            if state.deleting.contains(&character) {
                return Err(LoginStatus::CharacterInUse);
            }
            if let Some(other) = state.loaded.get(&character)
                && other.margin != margin.number
            {
                if other.silent_for(now) < self.0.config.replace_after() {
                    return Err(LoginStatus::CharacterInUse);
                }
                other.close(CloseCause::Replaced);
                other.end();
            }
            state.unload(margin.number);
            let Some(entry) = state.margins.get(&margin.number) else {
                return Err(LoginStatus::NoAccount);
            };
            let loaded = GameSession {
                character,
                id: *session,
                key: key.clone(),
                margin: margin.number,
                address: margin.address.to_canonical(),
                notices: entry.notices.clone(),
                heard: AtomicU64::new(millis(now)),
                is_over: AtomicBool::new(false),
                cause: OnceLock::new(),
                channels: AtomicUsize::new(0),
            };
            state.loaded.insert(character, Arc::new(loaded));
            character
        };
        self.character_data(character).map(Box::new).ok_or(LoginStatus::InvalidName)
    }

    /// The session to which a hello belongs. The hello must come from the margin connection's
    /// address, so only somebody in the client's own network can forge one.
    pub(crate) fn session_of(
        &self,
        hello: &Hello,
        from: IpAddr,
    ) -> Result<Arc<GameSession>, HelloRefusal> {
        let state = self.state();
        let character = u32::try_from(hello.character_uid).ok();
        let session = character.and_then(|character| state.loaded.get(&character));
        let session = session.ok_or(HelloRefusal::NoMargin)?;
        if session.key.session_id(&hello.encrypted_session) != session.id {
            return Err(HelloRefusal::OtherSession);
        }
        if session.address != from.to_canonical() {
            return Err(HelloRefusal::OtherAddress);
        }
        Ok(Arc::clone(session))
    }

    /// The name, first name, last name, level and position of a character that enters the world.
    pub(crate) fn entrant(&self, character: u32) -> Option<Entrant> {
        let state = self.state();
        let entry = state.characters.get(&character)?;
        let record = &entry.record;
        Some(Entrant {
            handle: entry.handle.clone(),
            first_name: record.first_name.clone(),
            last_name: record.last_name.clone(),
            description: record.description.clone(),
            level: record.level,
            experience: record.experience,
            information: record.information,
            place: record.place,
        })
    }

    /// Closes an account's margin connections. Returns their number.
    pub(super) fn close_sessions(&self, user: u32, cause: CloseCause) -> usize {
        let state = self.state();
        let is_users = |session: &&Arc<GameSession>| {
            state.margins.get(&session.margin).is_some_and(|margin| margin.user == Some(user))
        };
        for session in state.loaded.values().filter(is_users) {
            let _ = session.cause.set(cause);
        }
        let of_user = state.margins.values().filter(|entry| entry.user == Some(user));
        let told = of_user.map(|entry| entry.notices.tell(Notice::Close(cause)));
        told.count()
    }
}

/// A character that enters the world.
#[derive(Clone, Debug)]
pub(crate) struct Entrant {
    /// Its name in the game.
    pub(crate) handle: String,
    pub(crate) first_name: String,
    pub(crate) last_name: String,
    pub(crate) description: String,
    pub(crate) level: u8,
    pub(crate) experience: u32,
    pub(crate) information: u32,
    /// The position at which it left the world, if it has been there before.
    pub(crate) place: Option<Place>,
}

impl super::State {
    /// Ends the session of the character that a margin connection has loaded.
    fn unload(&mut self, who: Number) {
        self.loaded.retain(|_, session| {
            let is_its = session.margin == who;
            if is_its {
                session.end();
            }
            !is_its
        });
    }
}
