//! The manager of the games in one age.

mod request;

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use worldwire_core::{Error, Reader, Side};

use super::blue_spiral::{self, BlueSpiral};
use super::climbing_wall::{self, ClimbingWall};
use super::config::{GameIds, GamesConfig};
use super::heek::{self, Heek};
use super::library::{MarkerAnswer, MarkerRequest};
use super::marker::{self, MarkerGame, Step, Ticket};
use super::message::any::client::ClientMessage as Any;
use super::message::any::server::{
    InviteError, InviteFailed, OwnerChange, PlayerJoined, PlayerLeft, ServerMessage,
};
use super::message::{HEADER_BYTES, MAX_BYTES, message_name};
use super::refused::{Refused, RefusedClass};
use super::table::{GameDelivery, Random, Table};
use super::tic_tac_toe::{self, Course, TicTacToe};
use super::var_sync::{self, VarSync};
use super::{GameBody, GameHeader, GameMessage, GameScope, GameType};
use crate::types::{TransId, Uuid};

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GamePlayer {
    /// The player's KI number.
    pub id: u32,
    /// Whether the player may change other players' marker games.
    pub is_admin: bool,
}

/// A request to the server or a report.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GameEvent {
    /// Carry out a request to the store for marker games and pass the answer to
    /// [`GameManager::marker_answer`].
    Markers {
        /// The number of the request.
        ticket: Ticket,
        /// The request.
        request: MarkerRequest,
    },
    /// A message had no effect.
    Dropped {
        /// The sender.
        player_id: u32,
        /// The reason. [`is_counted`](RefusedClass::is_counted) tells whether the message counts
        /// towards closing the sender's connection.
        why: Refused,
    },
    /// A game has a new member. The first one begins the game.
    Joined {
        /// The game.
        game_id: u32,
        /// The game's type.
        game_type: GameType,
        /// The member.
        player_id: u32,
    },
    /// A member has left a game in which others remain.
    Left {
        /// The game.
        game_id: u32,
        /// The former member.
        player_id: u32,
    },
    /// A game has ended, or its last member has left. A common game can begin again with the same
    /// ID.
    Ended {
        /// The game.
        game_id: u32,
    },
}

/// The games in one age, without sockets.
///
/// | calls | purpose |
/// | --- | --- |
/// | [`receive`](Self::receive), [`leave`](Self::leave), [`timeout`](Self::timeout), [`marker_answer`](Self::marker_answer) | input |
/// | [`poll_delivery`](Self::poll_delivery), [`poll_event`](Self::poll_event), [`poll_timeout`](Self::poll_timeout) | output; poll until `None` |
///
/// Deliveries to the same player must be sent in order.
#[derive(Debug)]
pub struct GameManager {
    config: GamesConfig,
    ids: Arc<GameIds>,
    games: BTreeMap<u32, Game>,
    /// The players' message rates.
    senders: BTreeMap<u32, Budget>,
    /// Marker games that the store has not opened yet.
    opening: BTreeMap<Ticket, Opening>,
    /// The games with answers that are waiting for the store.
    asking: BTreeMap<Ticket, u32>,
    next_ticket: u64,
    deliveries: VecDeque<GameDelivery>,
    events: VecDeque<GameEvent>,
}

/// A game.
#[derive(Debug)]
struct Game {
    rules: Rules,
    /// The table of a common game.
    table: Option<u32>,
    /// The members, in the order of joining.
    members: Vec<u32>,
    owner: Option<u32>,
}

#[derive(Debug)]
enum Rules {
    BlueSpiral(BlueSpiral),
    ClimbingWall(ClimbingWall),
    Heek(Box<Heek>),
    Marker(Box<MarkerGame>),
    TicTacToe(TicTacToe),
    VarSync(VarSync),
}

/// A marker game that the store is opening.
#[derive(Clone, Copy, Debug)]
struct Opening {
    player: u32,
    trans_id: TransId,
    template: Uuid,
    is_new: bool,
}

/// The time at which a player who sends at exactly the permitted rate would send the next message.
#[derive(Clone, Copy, Debug, Default)]
struct Budget(Duration);

impl Budget {
    /// Whether the player may send a message now.
    fn take(&mut self, now: Duration, burst: u32, interval: Duration) -> bool {
        let from = self.0.max(now);
        let has_room = from - now <= interval * burst.saturating_sub(1);
        if has_room {
            self.0 = from + interval;
        }
        has_room
    }
}

impl GameManager {
    /// Creates a manager without games. All ages of a shard share the IDs.
    #[must_use]
    pub fn new(config: GamesConfig, ids: Arc<GameIds>) -> Self {
        Self {
            config,
            ids,
            games: BTreeMap::new(),
            senders: BTreeMap::new(),
            opening: BTreeMap::new(),
            asking: BTreeMap::new(),
            next_ticket: 0,
            deliveries: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Handles the content of a `GameMgrMsg` from a player in the age. Unacceptable messages are
    /// dropped and reported; requests among them are answered.
    pub fn receive(
        &mut self,
        now: Duration,
        from: GamePlayer,
        buffer: &[u8],
        random: &mut Random<'_>,
    ) {
        let bounds = &self.config.bounds;
        let (burst, interval) = (bounds.burst, bounds.interval);
        let is_allowed = self.senders.entry(from.id).or_default().take(now, burst, interval);
        if let Err(why) = self.handle(now, from, buffer, is_allowed, random) {
            self.events.push_back(GameEvent::Dropped { player_id: from.id, why });
        }
    }

    /// Removes a player who left the age from all games.
    pub fn leave(&mut self, now: Duration, player_id: u32) {
        self.senders.remove(&player_id);
        self.opening.retain(|_, opening| opening.player != player_id);
        let of = |game: &(&u32, &Game)| game.1.members.contains(&player_id);
        let games: Vec<u32> = self.games.iter().filter(of).map(|(id, _)| *id).collect();
        for game_id in games {
            self.leave_game(now, game_id, player_id);
        }
    }

    /// Advances time to `now`.
    pub fn timeout(&mut self, now: Duration) {
        let is_due = |game: &Game| game.rules.deadline().is_some_and(|at| at <= now);
        let due: Vec<u32> =
            self.games.iter().filter(|it| is_due(it.1)).map(|(id, _)| *id).collect();
        for game_id in due {
            let Some(game) = self.games.get_mut(&game_id) else { continue };
            let mut table = game.table(now, game_id, &mut self.deliveries);
            match &mut table.0 {
                Rules::BlueSpiral(rules) => rules.timeout(&mut table.1),
                Rules::ClimbingWall(rules) => rules.timeout(&mut table.1),
                Rules::Heek(rules) => rules.timeout(&mut table.1),
                Rules::Marker(_) | Rules::TicTacToe(_) | Rules::VarSync(_) => {}
            }
        }
    }

    /// Handles the answer to [`GameEvent::Markers`]. Answers to requests from players who have left
    /// are ignored.
    pub fn marker_answer(&mut self, ticket: Ticket, answer: &MarkerAnswer) {
        if let Some(opening) = self.opening.remove(&ticket) {
            self.opened(opening, answer);
            return;
        }
        let Some(game_id) = self.asking.remove(&ticket) else { return };
        let Some(game) = self.games.get_mut(&game_id) else { return };
        let member = game.members.first().copied().unwrap_or_default();
        if let Rules::Marker(rules) = &mut game.rules
            && let Err(why) = rules.answered(ticket, answer, (member, game_id))
        {
            self.events.push_back(GameEvent::Dropped { player_id: member, why });
        }
        self.send_answers(game_id);
    }

    /// The next message to send.
    pub fn poll_delivery(&mut self) -> Option<GameDelivery> {
        self.deliveries.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<GameEvent> {
        self.events.pop_front()
    }

    /// When to call [`timeout`](Self::timeout) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.games.values().filter_map(|game| game.rules.deadline()).min()
    }

    /// The template of a marker game.
    #[must_use]
    pub fn template(&self, game_id: u32) -> Option<Uuid> {
        match &self.games.get(&game_id)?.rules {
            Rules::Marker(rules) => Some(rules.template()),
            _ => None,
        }
    }

    /// The games with their types and members, in the order of joining; the first number is the ID.
    pub fn games(&self) -> impl Iterator<Item = (u32, GameType, &[u32])> {
        self.games.iter().map(|(id, game)| (*id, game.rules.game_type(), &*game.members))
    }

    fn handle(
        &mut self,
        now: Duration,
        from: GamePlayer,
        buffer: &[u8],
        is_allowed: bool,
        random: &mut Random<'_>,
    ) -> Result<(), Refused> {
        let header = envelope(buffer)?;
        if header.game_id == 0 {
            return self.request(now, from, header, buffer, is_allowed, random);
        }
        if !is_allowed {
            return Err(self.too_fast());
        }
        let game = self.games.get_mut(&header.game_id).filter(|game| game.is_open());
        let Some(game) = game else {
            let error = Error::malformed("a game in this age", header.game_id.to_string());
            return Err(Refused::new(RefusedClass::UnknownGame, error.at(8).inside("gameId")));
        };
        let game_type = game.rules.game_type();
        if !game.members.contains(&from.id) {
            let error = Error::invalid("the sender is not in the game");
            return Err(Refused::new(RefusedClass::NotMember, error));
        }
        let scope = GameScope::Game(game_type);
        let Some(name) = message_name(scope, Side::Client, header.number) else {
            let wanted = format!("a message of {} from a client", game_type.name());
            let error = Error::malformed(wanted, header.number.to_string());
            return Err(Refused::new(
                RefusedClass::UnknownMessage,
                error.at(0).inside("messageId"),
            ));
        };
        let named = |why: Refused| why.about(format!("{}.{name}", game_type.name()));
        let message = decode(Some(game_type), buffer).map_err(named)?;
        check(&message.body).map_err(named)?;
        self.play(now, from, header.game_id, message.body, random).map_err(named)
    }

    /// Handles a member's message whose values have been checked.
    fn play(
        &mut self,
        now: Duration,
        from: GamePlayer,
        game_id: u32,
        body: GameBody<'_>,
        random: &mut Random<'_>,
    ) -> Result<(), Refused> {
        let Some(game) = self.games.get_mut(&game_id) else { return Ok(()) };
        let (rules, mut table) = game.table(now, game_id, &mut self.deliveries);
        let table = &mut table;
        match (rules, body) {
            (_, GameBody::AnyClient(Any::LeaveGame(_))) => {
                self.leave_game(now, game_id, from.id);
                Ok(())
            }
            (_, GameBody::AnyClient(Any::Invite(invite))) => {
                let (invitee, error) = (invite.player, InviteError::NoJoin);
                let failed = InviteFailed { invitee, operation: INVITE, error };
                table.send(from.id, ServerMessage::from(failed));
                Ok(())
            }
            (_, GameBody::AnyClient(Any::Uninvite(_))) => Ok(()),
            (Rules::BlueSpiral(rules), GameBody::BlueSpiralClient(message)) => {
                rules.receive(table, &message, random)
            }
            (Rules::ClimbingWall(rules), GameBody::ClimbingWallClient(message)) => {
                rules.receive(table, from.id, &message)
            }
            (Rules::Heek(rules), GameBody::HeekClient(message)) => {
                rules.receive(table, from.id, &message)
            }
            (Rules::TicTacToe(rules), GameBody::TicTacToeClient(message)) => {
                if rules.receive(table, from.id, &message, random)? == Course::Ended {
                    self.end(game_id);
                }
                Ok(())
            }
            (Rules::VarSync(rules), GameBody::VarSyncClient(message)) => {
                rules.receive(table, from.id, message, self.config.bounds.variables)
            }
            (Rules::Marker(rules), GameBody::MarkerClient(message)) => {
                let bound = self.config.bounds.waiting;
                if rules.waiting() >= bound {
                    return Err(Refused::limit("replies waiting in a marker game", bound));
                }
                match rules.receive(from.id, from.is_admin, message)? {
                    Step::Answer(answer) => rules.push_answer(answer),
                    Step::Ask(request, asked) => {
                        let ticket = take_ticket(&mut self.next_ticket);
                        rules.push_waiting(ticket, asked);
                        self.asking.insert(ticket, game_id);
                        self.events.push_back(GameEvent::Markers { ticket, request });
                    }
                }
                self.send_answers(game_id);
                Ok(())
            }
            // The message was decoded as one for this type of game.
            _ => Ok(()),
        }
    }

    /// Sends those answers of a marker game that are complete.
    fn send_answers(&mut self, game_id: u32) {
        let Some(game) = self.games.get_mut(&game_id) else { return };
        let Some(member) = game.members.first().copied() else { return };
        let Rules::Marker(rules) = &mut game.rules else { return };
        let mut is_over = false;
        while let Some(answer) = rules.next_answer() {
            is_over |= answer.is_last;
            for body in answer.bodies {
                send(&mut self.deliveries, member, answer.trans_id, game_id, body);
            }
        }
        if is_over {
            self.end(game_id);
        }
    }

    /// Ends a game that has members.
    fn end(&mut self, game_id: u32) {
        if self.games.remove(&game_id).is_some() {
            self.events.push_back(GameEvent::Ended { game_id });
        }
    }

    /// Removes a member. A common game without members starts over; others end.
    fn leave_game(&mut self, now: Duration, game_id: u32, player: u32) {
        let handoff = self.config.var_sync_handoff;
        let Some(game) = self.games.get_mut(&game_id) else { return };
        game.members.retain(|member| *member != player);
        let was_owner = game.owner == Some(player);
        let stays_ownerless = matches!(game.rules, Rules::VarSync(_)) && !handoff;
        if was_owner {
            game.owner = game.members.first().copied().filter(|_| !stays_ownerless);
        }
        let is_empty = game.members.is_empty();
        let (rules, mut table) = game.table(now, game_id, &mut self.deliveries);
        table.send_all(ServerMessage::from(PlayerLeft { player }));
        if let Some(owner) = table.owner.filter(|_| was_owner) {
            table.send_all(ServerMessage::from(OwnerChange { owner }));
        }
        let course = match rules {
            Rules::Heek(rules) => {
                rules.left(&mut table, player);
                Course::GoesOn
            }
            Rules::ClimbingWall(rules) => {
                rules.left(&mut table, player);
                Course::GoesOn
            }
            Rules::TicTacToe(rules) => rules.left(&mut table),
            Rules::BlueSpiral(_) | Rules::Marker(_) | Rules::VarSync(_) => Course::GoesOn,
        };
        let is_over = course == Course::Ended || is_empty;
        if course == Course::Ended || is_empty && game.table.is_none() {
            self.games.remove(&game_id);
        } else if is_empty {
            game.rules.reset();
        }
        self.events.push_back(match is_over {
            true => GameEvent::Ended { game_id },
            false => GameEvent::Left { game_id, player_id: player },
        });
    }

    fn too_fast(&self) -> Refused {
        let burst = usize::try_from(self.config.bounds.burst).unwrap_or(usize::MAX);
        Refused::limit("messages that a player sends at once", burst)
    }
}

/// The operation named in `InviteFailed`.
const INVITE: u32 = 1;

impl Game {
    /// The rules and the table that they use.
    fn table<'g>(
        &'g mut self,
        now: Duration,
        game_id: u32,
        out: &'g mut VecDeque<GameDelivery>,
    ) -> (&'g mut Rules, Table<'g>) {
        let Self { rules, members, owner, .. } = self;
        (rules, Table { now, game_id, members, owner: *owner, out })
    }

    /// Whether the game accepts messages. A deleted marker game is only waiting for its last
    /// answer.
    fn is_open(&self) -> bool {
        !matches!(&self.rules, Rules::Marker(rules) if rules.is_deleted())
    }

    /// Sends a joining player the messages that follow `GameInstance`.
    fn greet(
        &mut self,
        now: Duration,
        game_id: u32,
        joiner: u32,
        is_new: bool,
        out: &mut VecDeque<GameDelivery>,
        random: &mut Random<'_>,
    ) -> Course {
        let (rules, mut table) = self.table(now, game_id, out);
        if let Rules::VarSync(rules) = rules {
            rules.before_joined(&mut table, joiner);
        }
        let joined = ServerMessage::from(PlayerJoined { player: joiner });
        if is_new {
            table.send_all(joined)
        } else {
            table.send(joiner, joined)
        }
        if let Some(owner) = table.owner {
            table.send(joiner, ServerMessage::from(OwnerChange { owner }));
        }
        match rules {
            Rules::VarSync(rules) => rules.after_joined(&mut table, joiner),
            Rules::Heek(rules) => rules.after_joined(&mut table, joiner),
            Rules::ClimbingWall(rules) => rules.after_joined(&mut table, joiner),
            Rules::TicTacToe(rules) => return rules.after_joined(&mut table, random),
            Rules::BlueSpiral(_) | Rules::Marker(_) => {}
        }
        Course::GoesOn
    }
}

impl Rules {
    fn game_type(&self) -> GameType {
        match self {
            Self::BlueSpiral(_) => GameType::BlueSpiral,
            Self::ClimbingWall(_) => GameType::ClimbingWall,
            Self::Heek(_) => GameType::Heek,
            Self::Marker(_) => GameType::Marker,
            Self::TicTacToe(_) => GameType::TicTacToe,
            Self::VarSync(_) => GameType::VarSync,
        }
    }

    fn deadline(&self) -> Option<Duration> {
        match self {
            Self::BlueSpiral(rules) => rules.deadline(),
            Self::ClimbingWall(rules) => rules.deadline(),
            Self::Heek(rules) => rules.deadline(),
            Self::Marker(_) | Self::TicTacToe(_) | Self::VarSync(_) => None,
        }
    }

    /// Returns the game to its initial state, ready for the next members.
    fn reset(&mut self) {
        match self {
            Self::BlueSpiral(rules) => *rules = BlueSpiral::default(),
            Self::ClimbingWall(rules) => *rules = ClimbingWall::default(),
            Self::Heek(rules) => rules.reset(),
            Self::TicTacToe(rules) => *rules = TicTacToe::new(rules.players()),
            Self::VarSync(rules) => *rules = VarSync::default(),
            Self::Marker(_) => {}
        }
    }
}

fn take_ticket(next: &mut u64) -> Ticket {
    let ticket = Ticket(*next);
    *next = next.wrapping_add(1);
    ticket
}

/// Sends one message. The manager's own messages belong to no game.
fn send(
    out: &mut VecDeque<GameDelivery>,
    to: u32,
    trans_id: TransId,
    game_id: u32,
    body: GameBody<'_>,
) {
    let message = match body {
        GameBody::ManagerServer(_) => GameMessage { trans_id, game_id: 0, body },
        _ => GameMessage { trans_id: TransId(0), game_id, body },
    };
    let bytes = message.to_bytes();
    debug_assert!(bytes.is_ok(), "{bytes:?}");
    if let Ok(bytes) = bytes {
        out.push_back(GameDelivery { to, bytes: bytes.into() });
    }
}

/// Checks the header and the size.
fn envelope(buffer: &[u8]) -> Result<GameHeader, Refused> {
    let length = buffer.len();
    let Some(header) = GameHeader::of(buffer) else {
        let error = Error::incomplete(HEADER_BYTES, length).closed();
        return Err(Refused::new(RefusedClass::ShortHeader, error));
    };
    if length > MAX_BYTES {
        let error = Error::limit("bytes of a game message", MAX_BYTES as u64, length as u64);
        return Err(Refused::new(RefusedClass::Oversize, error));
    }
    if usize::try_from(header.size).ok() != Some(length) {
        let wanted = format!("{length}, the length of the message");
        let error = Error::malformed(wanted, header.size.to_string()).at(12).inside("size");
        return Err(Refused::new(RefusedClass::SizeMismatch, error));
    }
    Ok(header)
}

/// Decodes a message with a known number and the right size.
fn decode(game: Option<GameType>, buffer: &[u8]) -> Result<GameMessage<'_>, Refused> {
    GameMessage::decode(game, Side::Client, &mut Reader::new(buffer)).map_err(|error| {
        let class = match error.needed() {
            Some(_) => RefusedClass::TruncatedBody,
            None => RefusedClass::TrailingBytes,
        };
        Refused::new(class, error.closed())
    })
}

/// Checks the values in a client's message, as the manager and the rules do.
pub(super) fn check_client(body: &GameBody<'_>) -> Result<(), Refused> {
    let GameBody::ManagerClient(message) = body else { return check(body) };
    request::check(message)
}

/// Checks the values in a message for a game.
fn check(body: &GameBody<'_>) -> Result<(), Refused> {
    match body {
        GameBody::BlueSpiralClient(message) => blue_spiral::check(message),
        GameBody::ClimbingWallClient(message) => climbing_wall::check(message),
        GameBody::HeekClient(message) => heek::check(message),
        GameBody::MarkerClient(message) => marker::check(message),
        GameBody::TicTacToeClient(message) => tic_tac_toe::check(message),
        GameBody::VarSyncClient(message) => var_sync::check(message),
        _ => Ok(()),
    }
}
