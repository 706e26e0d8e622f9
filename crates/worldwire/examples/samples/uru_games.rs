//! Two Uru players in an age with small games: they open a door, play Heek, share variables, and hunt
//! markers.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use worldwire_client::uru::games::{PlayerGames, VarValue};
use worldwire_core::Bytes32;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::frame::Service;
use worldwire_uru::games::message::heek::HeekChoice;
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::games::{
    GameEvent, GameIds, GameManager, GamePlayer, GameType, GamesConfig, MarkerLibrary,
};
use worldwire_uru::message::game::{client, server};
use worldwire_uru::message::{Caps, auth};
use worldwire_uru::types::{Nested, NetError, TransId};

use super::uru::{ACCOUNT, PLAYER, Stage, Talk};
use super::{Outcome, Tape};

/// The second player.
const OTHER: u32 = 10_200;
/// How long the door's signs are shown before it spins.
const SHOWN: Duration = Duration::from_secs(15);
/// How long the door stays open after that.
const OPEN: Duration = Duration::from_secs(60);
const SERVED: [GameType; 4] =
    [GameType::BlueSpiral, GameType::Heek, GameType::Marker, GameType::VarSync];

/// A player's connection and its client's games.
struct Seat {
    player: u32,
    talk: Talk,
    games: PlayerGames,
}

/// The age's game manager and the players.
struct Evening {
    stage: Stage,
    manager: GameManager,
    library: MarkerLibrary,
    random: ChaCha8Rng,
    seats: Vec<Seat>,
}

/// Writes `uru-games.pcapng`.
pub(super) fn write(folder: &Path, keys: KeyRing) -> Outcome<()> {
    let tape = Tape::new(&folder.join("uru-games.pcapng"), Duration::from_micros(350))?;
    let mut stage = Stage::new(tape, keys, ChaCha8Rng::seed_from_u64(11));
    let config = GamesConfig::serving(SERVED);
    let caps = announce(&mut stage, &config)?;
    let mut seats = Vec::new();
    for player in [PLAYER, OTHER] {
        let talk = enter(&mut stage, player)?;
        seats.push(Seat { player, talk, games: PlayerGames::new(player, Some(&caps)) });
    }
    let manager = GameManager::new(config, Arc::new(GameIds::new(7_001)));
    let (library, random) = (MarkerLibrary::default(), ChaCha8Rng::seed_from_u64(12));
    let mut evening = Evening { stage, manager, library, random, seats };
    evening.door()?;
    evening.heek()?;
    evening.variables()?;
    evening.markers()?;
    evening.end()
}

/// The auth connection, in which the shard announces its games.
fn announce(stage: &mut Stage, config: &GamesConfig) -> Outcome<Caps> {
    use auth::server::{AcctPlayerInfo, ServerCaps, ServerMessage};
    let mut talk = stage.connect(Service::Auth)?;
    let caps = Caps::compatible(&config.caps());
    let announced = ServerCaps { caps: Nested::encode_from(&caps)? };
    stage.say(&mut talk, ServerMessage::from(announced))?;
    for (player_id, name) in [(PLAYER, "Yeesha"), (OTHER, "Atrus")] {
        let info = AcctPlayerInfo {
            trans_id: TransId(1),
            player_id,
            player_name: name.into(),
            avatar_shape: "female".into(),
            explorer: 1,
        };
        stage.say(&mut talk, ServerMessage::from(info))?;
    }
    stage.hang_up(talk)?;
    Ok(caps)
}

fn enter(stage: &mut Stage, player_id: u32) -> Outcome<Talk> {
    let mut talk = stage.connect(Service::Game)?;
    let trans_id = TransId(2);
    let join = client::JoinAgeRequest { trans_id, age_mcp_id: 7, account_id: ACCOUNT, player_id };
    stage.say(&mut talk, client::ClientMessage::from(join))?;
    let joined = server::JoinAgeReply { trans_id, result: NetError::Success };
    stage.say(&mut talk, server::ServerMessage::from(joined))?;
    Ok(talk)
}

impl Evening {
    /// The first player's games.
    fn yeesha(&mut self) -> &mut PlayerGames {
        &mut self.seats[0].games
    }

    /// The second player's games.
    fn atrus(&mut self) -> &mut PlayerGames {
        &mut self.seats[1].games
    }

    /// Both join a common game.
    fn join(&mut self, game: GameType, table: u32) -> Outcome<u32> {
        for at in 0..self.seats.len() {
            self.seats[at].games.join(game, table)?;
            self.settle()?;
        }
        Ok(self.yeesha().last(game)?)
    }

    fn door(&mut self) -> Outcome<()> {
        let door = self.join(GameType::BlueSpiral, 0)?;
        self.yeesha().blue_spiral(door)?.start()?;
        self.settle()?;
        self.wait(SHOWN)?;
        let order = self.yeesha().blue_spiral(door)?.state().order().ok_or("an order")?;
        for cloth in order {
            self.yeesha().blue_spiral(door)?.press(cloth)?;
            self.settle()?;
        }
        self.wait(OPEN)
    }

    fn heek(&mut self) -> Outcome<()> {
        let table = self.join(GameType::Heek, 0)?;
        self.yeesha().heek(table)?.sit(0, 100, "Yeesha")?;
        self.settle()?;
        self.atrus().heek(table)?.sit(1, 100, "Atrus")?;
        self.settle()?;
        self.yeesha().heek(table)?.choose(HeekChoice::Rock)?;
        self.settle()?;
        self.atrus().heek(table)?.choose(HeekChoice::Scissors)?;
        self.settle()?;
        self.atrus().heek(table)?.stand_up()?;
        self.settle()?;
        self.atrus().leave(GameType::Heek)?;
        self.settle()
    }

    fn variables(&mut self) -> Outcome<()> {
        let game = self.join(GameType::VarSync, 255)?;
        self.yeesha().var_sync(game)?.create("QuabRun1", &VarValue::Number(0.0))?;
        self.yeesha().var_sync(game)?.create("motto", &VarValue::Text("Shorah".to_owned()))?;
        self.settle()?;
        self.yeesha().var_sync(game)?.set("QuabRun1", &VarValue::Number(1.0))?;
        self.settle()
    }

    fn markers(&mut self) -> Outcome<()> {
        self.yeesha().create_markers(MarkerGameType::Quest, "The Hunt")?;
        self.settle()?;
        let game = self.yeesha().last(GameType::Marker)?;
        for (x, name) in [(12.5, "by the fountain"), (-40.0, "in the library")] {
            self.yeesha().marker(game)?.add([x, 3.0, 0.25], "city", name)?;
        }
        self.settle()?;
        let template = self.yeesha().marker(game)?.state().template();
        self.atrus().open_markers(template)?;
        self.settle()?;
        let game = self.atrus().last(GameType::Marker)?;
        self.atrus().marker(game)?.capture(1)?;
        self.settle()?;
        self.atrus().marker(game)?.pause()?;
        self.settle()
    }

    /// Time passes.
    fn wait(&mut self, time: Duration) -> Outcome<()> {
        self.stage.pause(time);
        self.manager.timeout(self.stage.clock());
        self.settle()
    }

    /// Carries messages in both directions until nobody has any.
    fn settle(&mut self) -> Outcome<()> {
        let Self { stage, manager, library, random, seats } = self;
        loop {
            let mut is_quiet = true;
            for seat in &mut *seats {
                while let Some(message) = seat.games.poll_transmit() {
                    is_quiet = false;
                    let from = GamePlayer { id: seat.player, is_admin: false };
                    let buffer = Bytes32::new(message.clone());
                    let sent = client::ClientMessage::from(client::GameMgrMsg { buffer });
                    stage.say(&mut seat.talk, sent)?;
                    let fill = &mut |bytes: &mut [u8]| random.fill_bytes(bytes);
                    manager.receive(stage.clock(), from, &message, fill);
                }
            }
            while let Some(event) = manager.poll_event() {
                if let GameEvent::Markers { ticket, request } = event {
                    let answer = library.apply(&request);
                    manager.marker_answer(ticket, &answer);
                }
            }
            while let Some(delivery) = manager.poll_delivery() {
                is_quiet = false;
                let seat = seats.iter_mut().find(|seat| seat.player == delivery.to);
                let seat = seat.ok_or("a player in the age")?;
                let buffer = Bytes32::new(delivery.bytes.to_vec());
                let sent = server::ServerMessage::from(server::GameMgrMsg { buffer });
                stage.say(&mut seat.talk, sent)?;
                seat.games.receive(&delivery.bytes)?;
            }
            if is_quiet {
                return Ok(());
            }
        }
    }

    fn end(mut self) -> Outcome<()> {
        for seat in self.seats {
            self.stage.hang_up(seat.talk)?;
        }
        Ok(())
    }
}
