//! Requests to create and join games.

use core::time::Duration;

use worldwire_core::{Error, Side};

use super::{Game, GameManager, GamePlayer, Opening, Rules, decode, send, take_ticket};
use crate::games::blue_spiral::BlueSpiral;
use crate::games::climbing_wall::ClimbingWall;
use crate::games::library::{MarkerAnswer, MarkerRequest};
use crate::games::manager::GameEvent;
use crate::games::marker::{Asked, MarkerGame, check_params, instance, opened_again, opened_new};
use crate::games::message::manager::client::ClientMessage;
use crate::games::message::manager::server::{GameInstance, ServerMessage};
use crate::games::message::manager::{GameOptions, GameResult};
use crate::games::message::{CreateData, JoinRequest, MarkerParams, message_name};
use crate::games::refused::{Refused, RefusedClass, check_range};
use crate::games::table::Random;
use crate::games::tic_tac_toe::{Course, TicTacToe};
use crate::games::var_sync::VarSync;
use crate::games::{GameBody, GameHeader, GameScope, GameType};
use crate::types::{TransId, Uuid};

impl GameManager {
    /// Handles a message to the manager itself. Only these messages get a reply if they fail.
    pub(super) fn request(
        &mut self,
        now: Duration,
        from: GamePlayer,
        header: GameHeader,
        buffer: &[u8],
        is_allowed: bool,
        random: &mut Random<'_>,
    ) -> Result<(), Refused> {
        let trans_id = TransId(header.trans_id);
        let Some(name) = message_name(GameScope::Manager, Side::Client, header.number) else {
            let error = Error::malformed("CreateGame or JoinGame", header.number.to_string());
            let error = error.at(0).inside("messageId");
            return Err(Refused::new(RefusedClass::UnknownManagerMessage, error));
        };
        let named = |why: Refused| why.about(format!("Manager.{name}"));
        if trans_id.0 == 0 {
            return Err(named(Refused::value("transId", "a transaction ID other than 0", 0)));
        }
        let message = decode(None, buffer).map_err(named)?;
        let GameBody::ManagerClient(message) = message.body else { return Ok(()) };
        let mut game_type = match &message {
            ClientMessage::CreateGame(create) => create.request.game_type,
            ClientMessage::JoinGame(join) => {
                join.request.new_game.as_ref().map_or(Uuid::ZERO, |game| game.game_type)
            }
        };
        let outcome = match message {
            _ if !is_allowed => Err(self.too_fast()),
            ClientMessage::CreateGame(create) => {
                let request = create.request;
                self.create(now, from, trans_id, request.game_type, &request.data, random)
            }
            ClientMessage::JoinGame(join) => {
                self.join(now, from, trans_id, &join.request, &mut game_type, random)
            }
        };
        outcome.map_err(|why| {
            if let Some(result) = why.answer {
                self.refuse(from.id, trans_id, game_type, result);
            }
            named(why)
        })
    }

    /// Replies to a request that failed.
    pub(super) fn refuse(
        &mut self,
        player: u32,
        trans_id: TransId,
        game_type: Uuid,
        result: GameResult,
    ) {
        let failed = GameInstance { result, owner: 0, game_type, game_id: 0 };
        let body = GameBody::from(ServerMessage::from(failed));
        send(&mut self.deliveries, player, trans_id, 0, body);
    }

    /// Creates a game.
    fn create(
        &mut self,
        now: Duration,
        from: GamePlayer,
        trans_id: TransId,
        game_type: Uuid,
        data: &CreateData<'_>,
        random: &mut Random<'_>,
    ) -> Result<(), Refused> {
        let game_type = self.served(game_type)?;
        if let CreateData::Marker(params) = data {
            return self.open_markers(from, trans_id, params, random);
        }
        let rules = new_rules(game_type, data)?;
        self.has_room(from.id)?;
        let game_id = self.add(rules, None);
        self.enter(now, from.id, trans_id, game_id, random)
    }

    /// Joins a common game, which is created if missing, or the game with an ID.
    fn join(
        &mut self,
        now: Duration,
        from: GamePlayer,
        trans_id: TransId,
        request: &JoinRequest<'_>,
        shown_type: &mut Uuid,
        random: &mut Random<'_>,
    ) -> Result<(), Refused> {
        let mut wanted = None;
        if let Some(new_game) = &request.new_game {
            let game_type = self.served(new_game.game_type)?;
            wanted = Some(game_type);
            if request.options.contains(GameOptions::Common) {
                let rules = new_rules(game_type, &new_game.data)?;
                let game_id = self.common(game_type, request.game_id, rules)?;
                return self.enter(now, from.id, trans_id, game_id, random);
            }
        }
        let game = self.games.get(&request.game_id).filter(|game| game.is_open());
        let game = game.filter(|game| wanted.is_none_or(|it| it == game.rules.game_type()));
        let Some(game) = game else {
            let error = Error::malformed("a game in this age", request.game_id.to_string());
            let why = Refused::new(RefusedClass::UnknownGame, error.inside("gameId"));
            return Err(why.answered(GameResult::NotExist));
        };
        let is_member = game.members.contains(&from.id);
        *shown_type = game.rules.game_type().id();
        if let Rules::Marker(rules) = &game.rules {
            if !is_member {
                let error = Error::invalid("the marker game belongs to another player");
                let why = Refused::new(RefusedClass::NotMember, error);
                return Err(why.answered(GameResult::NoInvite));
            }
            let (template, game_type) = (rules.template(), rules.game_type());
            let request_of = MarkerRequest::Open { template, player: from.id, game_type };
            return self.reopen(request.game_id, trans_id, request_of);
        }
        if !is_member && game.table.is_none() {
            self.has_room(from.id)?;
        }
        self.enter(now, from.id, trans_id, request.game_id, random)
    }

    /// The type of game with this UUID, if it is served.
    fn served(&self, game_type: Uuid) -> Result<GameType, Refused> {
        let found = GameType::of(game_type).filter(|game| self.config.games.contains(game));
        found.ok_or_else(|| {
            let error =
                Error::malformed("a type of game that this server offers", game_type.to_string());
            let why = Refused::new(RefusedClass::UnknownGameType, error.inside("gameType"));
            why.answered(GameResult::InitFailed)
        })
    }

    /// Checks that a player may be a member of one more game without a table.
    fn has_room(&self, player: u32) -> Result<(), Refused> {
        let is_own = |game: &&Game| {
            let is_marker = matches!(game.rules, Rules::Marker(_));
            game.table.is_none() && !is_marker && game.members.contains(&player)
        };
        let bound = self.config.bounds.own_games;
        match self.games.values().filter(is_own).count() < bound {
            true => Ok(()),
            false => Err(Refused::limit("games that a player has created or joined", bound)),
        }
    }

    fn add(&mut self, rules: Rules, table: Option<u32>) -> u32 {
        let game_id = self.ids.take();
        self.games.insert(game_id, Game { rules, table, members: Vec::new(), owner: None });
        game_id
    }

    /// The common game at a table. Empty tables are removed to make room for it.
    fn common(&mut self, game_type: GameType, table: u32, rules: Rules) -> Result<u32, Refused> {
        let is_common = |game: &&Game| game.table.is_some() && game.rules.game_type() == game_type;
        let mut of_type = self.games.iter().filter(|it| is_common(&it.1));
        if let Some((id, _)) = of_type.find(|(_, game)| game.table == Some(table)) {
            return Ok(*id);
        }
        let of_type: Vec<_> = self.games.iter().filter(|it| is_common(&it.1)).collect();
        let bound = self.config.bounds.tables;
        if of_type.len() >= bound {
            let unused = of_type.iter().find(|(_, game)| game.members.is_empty());
            let Some(unused) = unused.map(|(id, _)| **id) else {
                return Err(Refused::limit("tables of one type of game", bound));
            };
            self.games.remove(&unused);
        }
        Ok(self.add(rules, Some(table)))
    }

    /// Joins a game that exists. A member who joins again gets the same messages again.
    fn enter(
        &mut self,
        now: Duration,
        player: u32,
        trans_id: TransId,
        game_id: u32,
        random: &mut Random<'_>,
    ) -> Result<(), Refused> {
        let bound = self.config.bounds.members;
        let Some(game) = self.games.get_mut(&game_id) else { return Ok(()) };
        let is_new = !game.members.contains(&player);
        if is_new {
            if let Rules::TicTacToe(rules) = &game.rules
                && rules.has_started()
            {
                let why = Refused::state("the game has started");
                return Err(why.answered(GameResult::GameStarted));
            }
            if game.members.len() >= bound {
                return Err(Refused::limit("members of a game", bound));
            }
            if game.members.is_empty() {
                game.owner = Some(player);
            }
            game.members.push(player);
            let game_type = game.rules.game_type();
            self.events.push_back(GameEvent::Joined { game_id, game_type, player_id: player });
        }
        let joined = GameInstance {
            result: GameResult::Success,
            owner: game.owner.unwrap_or(0),
            game_type: game.rules.game_type().id(),
            game_id,
        };
        let body = GameBody::from(ServerMessage::from(joined));
        send(&mut self.deliveries, player, trans_id, 0, body);
        let course = game.greet(now, game_id, player, is_new, &mut self.deliveries, random);
        if course == Course::Ended {
            self.end(game_id);
        }
        Ok(())
    }

    /// Asks the store to create or read a marker game.
    fn open_markers(
        &mut self,
        from: GamePlayer,
        trans_id: TransId,
        params: &MarkerParams<'_>,
        random: &mut Random<'_>,
    ) -> Result<(), Refused> {
        use worldwire_core::Field as _;
        let template = check_params(params).map_err(failed)?;
        let is_own = |game: &&Game| {
            matches!(game.rules, Rules::Marker(_)) && game.members.contains(&from.id)
        };
        let opening = self.opening.values().filter(|opening| opening.player == from.id).count();
        let bound = self.config.bounds.own_games;
        if self.games.values().filter(is_own).count() + opening >= bound {
            return Err(Refused::limit("marker games of a player", bound));
        }
        let (player, game_type) = (from.id, params.marker_type);
        let is_new = template.is_none();
        let template = template.unwrap_or_else(|| random_uuid(random));
        let request = if is_new {
            let (name, time_limit) = (params.name.clone().into_owned(), params.time_limit);
            MarkerRequest::Create { template, creator: player, game_type, name, time_limit }
        } else {
            MarkerRequest::Open { template, player, game_type }
        };
        let ticket = take_ticket(&mut self.next_ticket);
        self.opening.insert(ticket, Opening { player, trans_id, template, is_new });
        self.events.push_back(GameEvent::Markers { ticket, request });
        Ok(())
    }

    /// Handles a marker game that the store has created or read.
    pub(super) fn opened(&mut self, opening: Opening, answer: &MarkerAnswer) {
        let Opening { player, trans_id, template, is_new } = opening;
        let MarkerAnswer::Opened { template: opened, captured } = answer else {
            let result = match answer {
                MarkerAnswer::Full => GameResult::MaxPlayers,
                _ => GameResult::InitFailed,
            };
            self.refuse(player, trans_id, GameType::Marker.id(), result);
            return;
        };
        let game_id = self.add(Rules::Marker(Box::new(MarkerGame::new(template, opened))), None);
        if let Some(game) = self.games.get_mut(&game_id) {
            game.members.push(player);
            game.owner = Some(player);
        }
        let game_type = GameType::Marker;
        self.events.push_back(GameEvent::Joined { game_id, game_type, player_id: player });
        let mut bodies = vec![instance(player, game_id)];
        bodies.extend(match is_new {
            true => opened_new(player, template, opened),
            false => opened_again(player, opened, captured.iter().copied()),
        });
        for body in bodies {
            send(&mut self.deliveries, player, trans_id, game_id, body);
        }
    }

    /// Handles the member of a marker game joining it again.
    fn reopen(
        &mut self,
        game_id: u32,
        trans_id: TransId,
        request: MarkerRequest,
    ) -> Result<(), Refused> {
        let bound = self.config.bounds.waiting;
        let Some(Game { rules: Rules::Marker(rules), .. }) = self.games.get_mut(&game_id) else {
            return Ok(());
        };
        if rules.waiting() >= bound {
            return Err(Refused::limit("replies waiting in a marker game", bound));
        }
        let ticket = take_ticket(&mut self.next_ticket);
        rules.push_waiting(ticket, Asked::Reopen(trans_id));
        self.asking.insert(ticket, game_id);
        self.events.push_back(GameEvent::Markers { ticket, request });
        Ok(())
    }
}

/// Checks the values in a request.
pub(super) fn check(message: &ClientMessage<'_>) -> Result<(), Refused> {
    let (game_type, data) = match message {
        ClientMessage::CreateGame(create) => (create.request.game_type, &create.request.data),
        ClientMessage::JoinGame(join) => match &join.request.new_game {
            Some(new_game) => (new_game.game_type, &new_game.data),
            None => return Ok(()),
        },
    };
    match (GameType::of(game_type), data, message) {
        (Some(GameType::Marker), CreateData::Marker(params), ClientMessage::CreateGame(_)) => {
            check_params(params).map(drop)
        }
        (Some(game_type), ..) => new_rules(game_type, data).map(drop),
        (None, ..) => {
            let error = Error::malformed("a known type of game", game_type.to_string());
            Err(Refused::new(RefusedClass::UnknownGameType, error.inside("gameType")))
        }
    }
}

/// A request that fails because of its data.
fn failed(why: Refused) -> Refused {
    why.answered(GameResult::InitFailed)
}

/// The initial state of a game, from the data of a request.
fn new_rules(game_type: GameType, data: &CreateData<'_>) -> Result<Rules, Refused> {
    match (game_type, data) {
        (GameType::TicTacToe, CreateData::TicTacToe(params)) => {
            let players = params.players;
            check_range("players", "1 or 2 players", 1..=2, players).map_err(failed)?;
            Ok(Rules::TicTacToe(TicTacToe::new(players)))
        }
        (GameType::BlueSpiral, CreateData::Nothing { .. }) => {
            Ok(Rules::BlueSpiral(BlueSpiral::default()))
        }
        (GameType::ClimbingWall, CreateData::Nothing { .. }) => {
            Ok(Rules::ClimbingWall(ClimbingWall::default()))
        }
        (GameType::Heek, CreateData::Nothing { .. }) => Ok(Rules::Heek(Box::default())),
        (GameType::VarSync, CreateData::Nothing { .. }) => Ok(Rules::VarSync(VarSync::default())),
        (GameType::Marker, CreateData::Marker(_)) => {
            Err(failed(Refused::value("options", "a request to create a marker game", "Common")))
        }
        _ => {
            let wanted = format!("the create data of {}", game_type.name());
            let error = Error::malformed(wanted, "data of a different length").inside("createData");
            Err(failed(Refused::new(RefusedClass::BadCreateData, error)))
        }
    }
}

/// A random UUID (version 4).
fn random_uuid(random: &mut Random<'_>) -> Uuid {
    let mut bytes = [0; 16];
    random(&mut bytes);
    // The version is in the high byte of the third group, which is little-endian.
    bytes[7] = bytes[7] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid(bytes)
}
