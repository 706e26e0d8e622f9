//! One client's connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use worldwire_core::connection::{Event, EventOf};
use worldwire_core::{Error, Float};
use worldwire_mxo::connection::{Connection, News, Sender, Unit};
use worldwire_mxo::frame::{LEAVE, RccFlags, RpcMessage};
use worldwire_mxo::message::MPM_ID;
use worldwire_mxo::replicator::ClientId;
use worldwire_net::{Application, End, Flow, Peer, Permit, Waiting};

use super::Shared;
use super::admission::ALIVE_TIME;
use super::newcomer::Newcomer;
use super::realm::{GameSession, Notice, Place, Realm};
use super::resident::{self, Resident, Wish};
use super::world::World;

/// The number of protocol violations after which a connection is closed. Undecodable datagrams are
/// not counted, because anybody can send them with a forged address.
const MAX_BROKEN_RULES: u32 = 16;

/// How long a connection is kept after its client has left, so that it can acknowledge the leave
/// message.
const FAREWELL: Duration = Duration::from_secs(1);

/// The shortest interval between a client's sequence resets.
const BETWEEN_RESETS: Duration = Duration::from_secs(10);

/// The interval at which the simulation time is sent.
const BETWEEN_TIMES: Duration = Duration::from_secs(4);

/// One client's connection.
#[derive(Debug)]
pub(super) struct Client {
    shared: Arc<Shared>,
    /// The player, if the server has logins.
    resident: Option<Resident>,
    address: SocketAddr,
    /// The character named in the hello, until the client acknowledges something.
    waiting: Option<(u64, Waiting)>,
    /// The slot of an admitted client.
    slot: Option<Permit>,
    client: Option<ClientId>,
    ticked: watch::Receiver<u64>,
    broken_rules: u32,
    /// When the client's address sent another hello, if the client has not acknowledged anything
    /// since.
    doubted: Option<Instant>,
    /// When the client last asked for a reset.
    reset: Option<Instant>,
    /// When the client announced that it is leaving.
    left: Option<Instant>,
    /// When the simulation time was last sent.
    timed: Option<Instant>,
    /// The district of the client's character; 0 in an open world.
    district: u32,
    /// The character is on its way to another district.
    journey: Option<Journey>,
    /// The weather, which operators can change.
    sky: Option<watch::Receiver<String>>,
}

/// A journey to another district.
#[derive(Clone, Copy, Debug)]
struct Journey {
    to: u32,
    began: Instant,
    /// Whether the client was asked to reset its sequence.
    resets: bool,
}

/// How long a client may take to leave a district.
const LONGEST_JOURNEY: Duration = Duration::from_secs(60);

impl Client {
    pub(super) fn new(shared: Arc<Shared>, peer: Peer, ticked: watch::Receiver<u64>) -> Self {
        Self {
            shared,
            resident: None,
            address: peer.address,
            waiting: None,
            slot: None,
            client: None,
            ticked,
            broken_rules: 0,
            doubted: None,
            reset: None,
            left: None,
            timed: None,
            district: 0,
            journey: None,
            sky: None,
        }
    }

    /// The world of the character's district.
    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.worlds.of(self.district)
    }

    /// A connection for a player whose character was loaded on the margin channel.
    pub(super) fn of_player(self, session: Arc<GameSession>, realm: Realm) -> Self {
        let sky = Some(realm.sky());
        Self { resident: Some(Resident::new(session, realm)), sky, ..self }
    }

    /// Handles a hello. A hello from an admitted client's address can come from a new client there,
    /// or be a replay, so the client must acknowledge something to stay.
    fn greet(&mut self, uid: u64, sender: &mut Sender) {
        if let Some(resident) = &mut self.resident {
            resident.greet();
        }
        let is_known = self.waiting.is_some()
            || self.client.is_some()
            || self.left.is_some()
            || self.resident.is_some();
        if !is_known {
            self.waiting = Some((uid, self.shared.admission.wait()));
        } else if self.client.is_some() && self.doubted.is_none() {
            self.doubted = Some(Instant::now());
            challenge(sender);
        }
    }

    /// Admits a client of an open world once it has acknowledged something.
    fn admit_visitor(&mut self, uid: u64) -> Flow {
        self.take_slot()?;
        self.enter(uid, |world| world.enter(uid))
    }

    /// Admits a player, whose client then loads the world.
    fn admit_player(&mut self, sender: &mut Sender) -> Flow {
        self.take_slot()?;
        let Some(resident) = &self.resident else { return Flow::Continue(()) };
        self.district = resident.district(&self.shared.worlds);
        self.load_world(sender)
    }

    /// Lets a player's client load the world of its district.
    fn load_world(&mut self, sender: &mut Sender) -> Flow {
        let (Some(resident), Some(sky)) = (&self.resident, &mut self.sky) else {
            return Flow::Continue(());
        };
        let sky = sky.borrow_and_update().clone();
        let now = self.shared.clock.now().as_secs_f32();
        match resident.begin(self.district, &sky, now, sender) {
            Ok(()) => Flow::Continue(()),
            Err(error) => self.refuse_entry(&error),
        }
    }

    /// Begins the journey to another district: the character leaves this one, and its client
    /// prepares for the next.
    async fn travel(&mut self, to: u32, sender: &mut Sender) -> Result<(), Error> {
        if to == self.district || !self.shared.worlds.has(to) {
            return resident::show(sender, "This server does not have that hardline.");
        }
        resident::leave_world(sender)?;
        let place = self.leave(&"the client travels");
        self.store(place).await;
        self.journey = Some(Journey { to, began: Instant::now(), resets: false });
        Ok(())
    }

    /// Called when the client is ready for the next district. Its sequence starts over there.
    fn depart_district(&mut self, sender: &mut Sender) {
        // A reset fails while another reset is in progress.
        if let Some(journey) = self.journey.as_mut().filter(|journey| !journey.resets)
            && sender.reset().is_ok()
        {
            journey.resets = true;
            self.district = journey.to;
        }
    }

    /// Called when the client has reset its sequence on its way to another district.
    fn arrive(&mut self, sender: &mut Sender) -> Flow {
        self.journey = None;
        if let Err(error) = resident::enter_world(sender) {
            return self.refuse_entry(&error);
        }
        self.load_world(sender)
    }

    /// Sends a player the weather if an operator has changed it.
    fn check_sky(&mut self, sender: &mut Sender) {
        let is_playing = self.client.is_some();
        let Some(sky) = &mut self.sky else { return };
        if is_playing && sky.has_changed().unwrap_or(false) {
            let sky = sky.borrow_and_update().clone();
            // If this fails, the client receives the weather at the next change.
            let _ = resident::show_sky(sender, &sky);
        }
    }

    fn take_slot(&mut self) -> Flow {
        match self.shared.admission.admit(self.address.ip()) {
            Ok(slot) => {
                self.slot = Some(slot);
                Flow::Continue(())
            }
            Err(refused) => self.refuse_entry(&refused),
        }
    }

    /// Lets the client's character into the world.
    fn enter(
        &mut self,
        uid: u64,
        enter: impl FnOnce(&mut World) -> worldwire_core::Result<ClientId>,
    ) -> Flow {
        self.shared.worlds.remove_elsewhere(uid, self.district);
        let entered = enter(&mut self.world());
        match entered {
            Ok(client) => {
                self.client = Some(client);
                if let Some(count) = self.shared.entered.count() {
                    tracing::info!(address = %self.address, uid, count, "client entered");
                }
                Flow::Continue(())
            }
            Err(error) => self.refuse_entry(&error),
        }
    }

    fn refuse_entry(&self, error: &dyn fmt::Display) -> Flow {
        self.shared.figures.turned_away();
        if let Some(count) = self.shared.full.count() {
            tracing::warn!(address = %self.address, %error, count, "refused clients");
        }
        Flow::Break(())
    }

    /// Handles acknowledgements and losses of packets.
    fn news(&mut self, news: &News, sender: &mut Sender) -> Flow {
        if self.journey.is_some_and(|journey| journey.resets) && matches!(news, News::Reset) {
            return self.arrive(sender);
        }
        if let Some(client) = self.client {
            self.world().news(client, news);
            if matches!(news, News::Delivered(_) | News::Late(_) | News::Reset) {
                self.doubted = None;
            } else if self.doubted.is_some() && matches!(news, News::Lost(_)) {
                challenge(sender);
            }
            return Flow::Continue(());
        }
        if !matches!(news, News::Established) {
            return Flow::Continue(());
        }
        match (&self.resident, self.waiting.take()) {
            (Some(_), _) => self.admit_player(sender),
            // Called when the client has acknowledged something.
            (None, Some((uid, _))) => self.admit_visitor(uid),
            (None, None) => Flow::Continue(()),
        }
    }

    /// Handles a request to reset the sequence: asks the client to reset it, and then sends all
    /// views again. The client's reply looks the same as a request and may arrive twice.
    fn reset(&mut self, sender: &mut Sender) {
        let is_answer = self.reset.is_some_and(|asked| asked.elapsed() < BETWEEN_RESETS);
        if self.client.is_none() || is_answer {
            return;
        }
        self.reset = Some(Instant::now());
        // This fails while a reset is in progress.
        if sender.reset().is_ok() {
            tracing::info!(address = %self.address, "client is resetting its sequence");
        }
    }

    /// Removes the client and its character. Returns the character's position.
    fn leave(&mut self, end: &dyn fmt::Display) -> Option<Place> {
        let client = self.client.take()?;
        let mut world = self.world();
        let stood = world.stand(client);
        world.leave(client);
        drop(world);
        tracing::debug!(address = %self.address, %end, "client left");
        let (position, yaw) = stood.ok()?;
        self.resident.is_some().then_some(Place { district: self.district, position, yaw })
    }

    /// Removes a client that has announced that it is leaving, and stores its character's position.
    async fn depart(&mut self) {
        self.left.get_or_insert_with(Instant::now);
        let place = self.leave(&"the client left");
        self.store(place).await;
        if let Some(resident) = &self.resident {
            resident.session.tell(Notice::Left);
        }
    }

    /// Stores the position at which a player's character left the world.
    async fn store(&self, place: Option<Place>) {
        if let (Some(Resident { session, realm, .. }), Some(place)) = (&self.resident, place) {
            realm.save_place(session.character, place).await;
        }
    }

    /// Carries out a player's request. Fails if a reply cannot be sent.
    async fn fulfil(&mut self, wish: Wish, sender: &mut Sender) -> Result<Flow, Error> {
        let Some(resident) = &self.resident else { return Ok(Flow::Continue(())) };
        let character = resident.session.character;
        match (wish, self.client) {
            (Wish::Enter, None) if self.left.is_none() && self.journey.is_none() => {
                let district = self.district;
                let Some(entrant) = resident.realm.entrant(character) else {
                    return Ok(Flow::Break(()));
                };
                let newcomer = Newcomer::player(character, &entrant, district);
                let uid = character.into();
                return Ok(self.enter(uid, |world| world.enter_as(uid, &newcomer)));
            }
            (Wish::Say(text), Some(client)) => {
                self.world().say(client, &text)?;
            }
            (Wish::Whisper { handle, text }, Some(client)) => {
                let worlds = &self.shared.worlds;
                let is_there = worlds.whisper(self.district, client, &handle, &text)?;
                if !is_there {
                    resident::show(sender, "Nobody with this name is in the world.")?;
                }
            }
            (Wish::Emote(number), Some(client)) => {
                self.world().emote(client, number)?;
            }
            (Wish::Animate(animation), Some(client)) => {
                self.world().animate(client, |now| now.animation = animation)?;
            }
            (Wish::Mood(mood), Some(client)) => {
                self.world().animate(client, |now| now.mood = mood)?;
            }
            (Wish::Leave, Some(client)) if !resident.has_left() => {
                let now = self.shared.clock.now();
                if let Some(resident) = &mut self.resident {
                    resident.leave_soon(now);
                }
                self.world().show_leaving(client, true)?;
                resident::announce_leaving(sender)?;
            }
            (Wish::Travel(to), Some(client)) if !resident.has_left() => {
                self.moved(client)?;
                self.travel(to, sender).await?;
            }
            (Wish::Travelled, None) => self.depart_district(sender),
            (Wish::Left, _) => self.depart().await,
            (Wish::Describe(description), _) => {
                let realm = resident.realm.clone();
                if realm.save_description(character, &description).await
                    && let Some(entrant) = realm.entrant(character)
                {
                    resident::show_description(sender, &entrant.description)?;
                }
            }
            (Wish::Reply(reply), _) => resident::send(sender, *reply)?,
            (Wish::Explain(line), _) => resident::show(sender, line)?,
            // The client is not in the world yet, or it has repeated its request.
            _ => {}
        }
        Ok(Flow::Continue(()))
    }

    /// The character moves, so the client no longer wants to leave.
    fn moved(&mut self, client: ClientId) -> Result<(), Error> {
        match self.resident.as_mut().is_some_and(Resident::moved) {
            true => self.world().show_leaving(client, false),
            false => Ok(()),
        }
    }

    /// Handles an RPC message.
    async fn receive_rpc(&mut self, body: &[u8], sender: &mut Sender) -> Flow {
        let Some(resident) = &mut self.resident else {
            // An open world supports no other messages.
            if RpcMessage::of(body).opcode() == LEAVE {
                self.depart().await;
            }
            return Flow::Continue(());
        };
        let now = self.shared.clock.now();
        let wish = match resident.receive(body, now) {
            Ok(Some(wish)) => wish,
            Ok(None) => return Flow::Continue(()),
            Err(error) => return self.refuse(&error, true),
        };
        match self.fulfil(wish, sender).await {
            Ok(flow) => flow,
            Err(error) => {
                tracing::debug!(address = %self.address, %error, "cannot reply to a player");
                Flow::Continue(())
            }
        }
    }

    /// Lets a player go whose waiting time is over or whose session has ended.
    async fn check_session(&mut self, sender: &mut Sender) -> Flow {
        let now = self.shared.clock.now();
        let Some(resident) = &mut self.resident else { return Flow::Continue(()) };
        if resident.is_leaving(now) {
            // If the message cannot be sent now, the client's time to confirm still runs out.
            let _ = resident::let_go(sender);
        }
        if resident.is_overdue(now) {
            self.depart().await;
            return Flow::Break(());
        }
        if resident.session.is_over() && self.left.is_none() {
            let farewell = resident.session.farewell();
            let place = self.leave(&"the session has ended");
            self.store(place).await;
            let Some(farewell) = farewell else { return Flow::Break(()) };
            // Give the client a moment to read the reason.
            let _ = resident::close_with(sender, farewell);
            self.left = Some(Instant::now());
        }
        let is_lost = |journey: Journey| journey.began.elapsed() >= LONGEST_JOURNEY;
        if self.journey.is_some_and(is_lost) { Flow::Break(()) } else { Flow::Continue(()) }
    }

    /// The simulation time, if it is due to be sent.
    fn sim_time(&mut self) -> Option<Float> {
        self.resident.as_ref()?;
        let is_due = self.timed.is_none_or(|timed| timed.elapsed() >= BETWEEN_TIMES);
        is_due.then(|| {
            self.timed = Some(Instant::now());
            Float(self.shared.clock.now().as_secs_f32())
        })
    }

    /// Counts and logs an undecodable datagram or another protocol violation. Ends the connection
    /// after too many violations that certainly come from the client itself.
    fn refuse(&mut self, error: &Error, is_its_own: bool) -> Flow {
        self.shared.figures.refused();
        if let Some(count) = self.shared.refused.count() {
            tracing::warn!(address = %self.address, %error, count, "protocol violations");
        }
        self.broken_rules += u32::from(is_its_own);
        if self.broken_rules >= MAX_BROKEN_RULES { Flow::Break(()) } else { Flow::Continue(()) }
    }
}

/// Sends an empty section for the client to acknowledge. If that fails, the connection ends soon.
fn challenge(sender: &mut Sender) {
    let _ = sender.send_objects(&[MPM_ID, 0, 0], None);
}

/// The reasons for the application to wake up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wake {
    /// The world has advanced.
    Tick,
    /// The client waited for admission and was dropped for a newer one.
    Dropped,
}

impl Application<Connection> for Client {
    type Notice = Wake;

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        if let (Event::Received(_), Some(resident)) = (&event, &self.resident) {
            resident.session.hear(self.shared.clock.now());
        }
        match event {
            Event::Received(piece) => match piece.unit {
                Unit::Hello(hello) => self.greet(hello.character_uid, sender),
                Unit::Section { id: MPM_ID, number } => {
                    let Some(client) = self.client else { return Flow::Continue(()) };
                    let received = self.world().receive(client, number, piece.bytes);
                    let has_moved = match received {
                        Ok(has_moved) => has_moved,
                        Err(error) => return self.refuse(&error, true),
                    };
                    if has_moved && let Err(error) = self.moved(client) {
                        tracing::debug!(address = %self.address, %error, "cannot show that a player stays");
                    }
                }
                Unit::Rpc { .. } => return self.receive_rpc(piece.bytes, sender).await,
                Unit::Upkeep { flags, .. } if flags.contains(RccFlags::Reset) => self.reset(sender),
                _ => {}
            },
            Event::News(news) => return self.news(&news, sender),
            // A datagram that cannot be decrypted could come from anybody.
            Event::Fault { error, .. } => return self.refuse(&error, false),
            _ => {}
        }
        Flow::Continue(())
    }

    async fn notified(&mut self) -> Wake {
        if let Some((_, waiting)) = &mut self.waiting {
            waiting.dropped().await;
            return Wake::Dropped;
        }
        if self.ticked.changed().await.is_err() {
            // The world has stopped with the server.
            core::future::pending::<()>().await;
        }
        Wake::Tick
    }

    async fn notice(&mut self, wake: Wake, sender: &mut Sender) -> Flow {
        if matches!(wake, Wake::Dropped) {
            return Flow::Break(());
        }
        if self.left.is_some_and(|left| left.elapsed() >= FAREWELL) {
            return Flow::Break(());
        }
        if self.doubted.is_some_and(|since| since.elapsed() >= ALIVE_TIME) {
            return Flow::Break(());
        }
        self.check_session(sender).await?;
        self.check_sky(sender);
        let sim_time = self.sim_time();
        let Some(client) = self.client else { return Flow::Continue(()) };
        let sent = self.world().send_updates(client, sim_time, sender);
        match sent {
            Ok(bytes) => {
                self.shared.figures.sent(bytes);
                Flow::Continue(())
            }
            Err(_) => Flow::Break(()),
        }
    }

    async fn stopping(&mut self, sender: &mut Sender) {
        if self.resident.is_some() && self.client.is_some() {
            // If the network loses the message, it is not resent.
            let _ = resident::close_with(sender, "The server is shutting down.");
        }
    }

    async fn ended(&mut self, end: &End) {
        let place = self.leave(end);
        self.store(place).await;
        if let Some(resident) = &self.resident {
            resident.session.close_channel();
        }
    }
}
