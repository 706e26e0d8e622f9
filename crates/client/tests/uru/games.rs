//! Players' games, tested against the game manager, without sockets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use worldwire_client::uru::games::{
    GameState, PlayError, PlayEvent, PlayerGames, SpiralGame, VarValue,
};
use worldwire_core::json::json;
use worldwire_core::{ErrorKind, Sampler, Side};
use worldwire_uru::games::message::heek::HeekChoice;
use worldwire_uru::games::message::manager::GameResult;
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::games::{
    GameEvent, GameIds, GameManager, GameMessage, GamePlayer, GameScope, GameType, GamesConfig,
    MarkerLibrary,
};
use worldwire_uru::message::Caps;
use worldwire_uru::types::Uuid;

const ANN: u32 = 1_001;
const BOB: u32 = 1_002;

/// An age with its game manager and two players.
struct World {
    manager: GameManager,
    library: MarkerLibrary,
    now: Duration,
    players: BTreeMap<u32, PlayerGames>,
    events: BTreeMap<u32, Vec<PlayEvent>>,
    /// The messages that the manager did not accept.
    dropped: Vec<String>,
}

impl World {
    fn new() -> Self {
        Self::serving(GameType::ALL)
    }

    fn serving(games: impl IntoIterator<Item = GameType>) -> Self {
        let config = GamesConfig::serving(games);
        let players = [ANN, BOB].map(|player| (player, PlayerGames::new(player, None)));
        Self {
            manager: GameManager::new(config, Arc::new(GameIds::new(7_000))),
            library: MarkerLibrary::default(),
            now: Duration::from_secs(100),
            players: players.into(),
            events: BTreeMap::new(),
            dropped: Vec::new(),
        }
    }

    fn games(&mut self, player: u32) -> &mut PlayerGames {
        self.players.get_mut(&player).unwrap()
    }

    /// Carries messages in both directions until nobody has any left.
    fn settle(&mut self) {
        let mut seed = 1_u64;
        let mut random = |bytes: &mut [u8]| {
            for byte in bytes {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = seed.to_le_bytes()[7];
            }
        };
        loop {
            let mut is_quiet = true;
            for (player, games) in &mut self.players {
                while let Some(message) = games.poll_transmit() {
                    is_quiet = false;
                    let from = GamePlayer { id: *player, is_admin: false };
                    self.manager.receive(self.now, from, &message, &mut random);
                }
            }
            while let Some(event) = self.manager.poll_event() {
                match event {
                    GameEvent::Markers { ticket, request } => {
                        let answer = self.library.apply(&request);
                        self.manager.marker_answer(ticket, &answer);
                    }
                    GameEvent::Dropped { why, .. } => self.dropped.push(why.to_string()),
                    _ => {}
                }
            }
            while let Some(delivery) = self.manager.poll_delivery() {
                is_quiet = false;
                let games = self.players.get_mut(&delivery.to).unwrap();
                let events = games.receive(&delivery.bytes).unwrap();
                self.events.entry(delivery.to).or_default().extend(events);
            }
            if is_quiet {
                return;
            }
        }
    }

    /// What a player has seen since the last call: the names of messages, and of other events.
    fn seen(&mut self, player: u32) -> Vec<String> {
        self.settle();
        let events = self.events.remove(&player).unwrap_or_default();
        let name = |event| match event {
            PlayEvent::Message { body, .. } => body.name().unwrap_or("?").to_owned(),
            PlayEvent::Entered { .. } => "(entered)".to_owned(),
            PlayEvent::Refused { result, .. } => format!("(refused: {result})"),
            PlayEvent::Ended { .. } => "(ended)".to_owned(),
            other => panic!("{other:?}"),
        };
        events.into_iter().map(name).collect()
    }

    /// Joins a common game, with everything that a new member is sent.
    fn join(&mut self, player: u32, game: GameType) -> u32 {
        let table = if game == GameType::VarSync { 255 } else { 0 };
        self.games(player).join(game, table).unwrap();
        assert!(self.seen(player).contains(&"(entered)".to_owned()));
        self.games(player).last(game).unwrap()
    }

    fn spiral(&mut self, player: u32, id: u32) -> SpiralGame {
        self.settle();
        self.games(player).blue_spiral(id).unwrap().state().clone()
    }
}

/// A message from the server, given as `Marker.MarkerAdded` and its fields.
fn from_server(
    trans_id: u32,
    game_id: u32,
    name: &str,
    fields: worldwire_core::json::Json,
) -> Vec<u8> {
    let (scope, name) = name.split_once('.').unwrap();
    let json = json!({
        "game": scope, "messageId": name, "transId": trans_id, "gameId": game_id, "fields": fields,
    });
    GameMessage::from_json(Side::Server, &json).unwrap().to_bytes().unwrap()
}

#[test]
fn the_owner_solves_the_door() {
    let mut world = World::new();
    let id = world.join(ANN, GameType::BlueSpiral);
    assert_eq!(world.join(BOB, GameType::BlueSpiral), id);
    assert_eq!(world.seen(ANN), ["PlayerJoined"]);
    // Anybody may touch the door.
    world.games(BOB).blue_spiral(id).unwrap().start().unwrap();
    for player in [ANN, BOB] {
        assert_eq!(world.seen(player), ["ClothOrder", "GameStarted"]);
    }
    let order = world.spiral(ANN, id).order().unwrap();
    assert_eq!(world.spiral(BOB, id).order(), Some(order));
    for cloth in order {
        let mut door = world.games(ANN).blue_spiral(id).unwrap();
        assert!(door.is_owner() && !door.state().is_complete());
        door.press(cloth).unwrap();
        assert_eq!(world.seen(ANN)[0], "SuccessfulHit");
    }
    let door = world.spiral(ANN, id);
    assert!(door.is_won() && door.is_complete());
    // Only the owner learns that the game is won.
    assert_eq!(world.seen(BOB), [""; 0]);

    world.now += Duration::from_secs(5);
    world.games(ANN).blue_spiral(id).unwrap().start().unwrap();
    assert_eq!(world.seen(BOB), ["GameOver", "ClothOrder", "GameStarted"]);
    let wrong = world.spiral(BOB, id).order().unwrap()[6];
    world.games(BOB).blue_spiral(id).unwrap().press(wrong).unwrap();
    assert_eq!(world.seen(ANN).last().unwrap(), "GameOver");
    assert_eq!(world.spiral(ANN, id).order(), None);
    let error = world.games(ANN).blue_spiral(id).unwrap().press(7).unwrap_err();
    assert_eq!(error.to_string(), "the cloth must be 0 to 6, not 7");
    assert_eq!(world.dropped, [""; 0]);
}

#[test]
fn two_players_finish_a_game_of_heek_without_waiting() {
    let mut world = World::new();
    let id = world.join(ANN, GameType::Heek);
    world.join(BOB, GameType::Heek);
    world.games(ANN).heek(id).unwrap().sit(0, 100, "Ann").unwrap();
    assert_eq!(world.seen(ANN), ["PlayerJoined", "PlayGame", "Welcome"]);
    assert!(!world.games(ANN).heek(id).unwrap().state().is_open());
    world.games(BOB).heek(id).unwrap().sit(0, 100, "Bob").unwrap();
    assert_eq!(world.seen(BOB), ["PlayGame"]);
    assert_eq!(world.games(BOB).heek(id).unwrap().state().seat(), None);
    assert_eq!(world.dropped.drain(..).count(), 1);
    world.games(BOB).heek(id).unwrap().sit(4, 100, "Bob").unwrap();
    world.settle();
    for player in [ANN, BOB] {
        assert!(world.games(player).heek(id).unwrap().state().is_open());
    }
    world.events.clear();
    for round in 1..=3 {
        world.games(ANN).heek(id).unwrap().choose(HeekChoice::Rock).unwrap();
        world.settle();
        world.games(BOB).heek(id).unwrap().choose(HeekChoice::Scissors).unwrap();
        let (ann, bob) = (world.seen(ANN), world.seen(BOB));
        assert!(ann.contains(&"WinLose".to_owned()) && bob.contains(&"WinLose".to_owned()));
        assert_eq!(ann.contains(&"GameWin".to_owned()), round == 3, "{ann:?}");
        // The owner's client has reported the end of each sequence, so the buttons are open.
        assert!(world.games(BOB).heek(id).unwrap().state().is_open());
    }
    assert_eq!(world.games(ANN).heek(id).unwrap().state().score(), Some((101, 1)));
    assert_eq!(world.games(BOB).heek(id).unwrap().state().score(), Some((99, 2)));
    world.games(ANN).heek(id).unwrap().stand_up().unwrap();
    assert_eq!(world.seen(ANN), ["PointUpdate", "Goodbye"]);
    assert_eq!(world.games(ANN).heek(id).unwrap().state().seat(), None);
    assert_eq!(world.dropped, [""; 0]);
}

#[test]
fn variables_are_shared() {
    let mut world = World::new();
    let id = world.join(ANN, GameType::VarSync);
    let number = |number| VarValue::Number(number);
    let text = |text: &str| VarValue::Text(text.to_owned());
    for (name, value) in [("QuabRun1", number(1.0)), ("motto", text("Shorah"))] {
        world.games(ANN).var_sync(id).unwrap().create(name, &value).unwrap();
    }
    world.settle();
    world.join(BOB, GameType::VarSync);
    let shown = |world: &mut World, player| -> Vec<(u32, String, VarValue)> {
        let game = world.games(player).var_sync(id).unwrap();
        let variables = game.state().variables();
        variables.map(|(id, it)| (id, it.name.clone(), it.value.clone())).collect()
    };
    let both = [(1, "QuabRun1".to_owned(), number(1.0)), (2, "motto".to_owned(), text("Shorah"))];
    assert_eq!(shown(&mut world, BOB), both);
    world.games(ANN).var_sync(id).unwrap().set("QuabRun1", &number(2.5)).unwrap();
    world.games(ANN).var_sync(id).unwrap().set("motto", &text("")).unwrap();
    assert_eq!(world.seen(BOB), ["NumericVarChanged", "StringVarChanged"]);
    let changed = [(1, "QuabRun1".to_owned(), number(2.5)), (2, "motto".to_owned(), text(""))];
    assert_eq!(shown(&mut world, ANN), changed);
    assert_eq!(shown(&mut world, BOB), changed);
    // An existing variable keeps its value.
    world.games(BOB).var_sync(id).unwrap().create("motto", &text("mine")).unwrap();
    world.games(BOB).var_sync(id).unwrap().request_all().unwrap();
    world.settle();
    assert_eq!(shown(&mut world, BOB), changed);

    let mut game = world.games(BOB).var_sync(id).unwrap();
    let refused = [
        (
            game.set("motto", &text("x")),
            "only the owner of the game can do this: player 1001 owns it",
        ),
        (game.set("mott", &text("x")), "there is no variable \"mott\"; create it first"),
        (game.create("", &number(1.0)), "the name must be at least one character, not empty"),
        (game.create("n", &number(f64::NAN)), "the value must be a finite number, not NaN"),
        (
            game.create("t", &text(&"x".repeat(256))),
            "the value must have at most 255 UTF-16 units, not 256",
        ),
    ];
    for (refused, said) in refused {
        assert_eq!(refused.unwrap_err().to_string(), said);
    }
    assert_eq!(world.games(ANN).leave(GameType::VarSync).unwrap(), id);
    assert_eq!(world.seen(BOB).last().unwrap(), "OwnerChange");
    let mut game = world.games(BOB).var_sync(id).unwrap();
    assert!(game.is_owner());
    let error = game.set("motto", &number(1.0)).unwrap_err();
    assert_eq!(error.to_string(), "the variable \"motto\" holds text, and its type cannot change");
    game.set("motto", &text("x")).unwrap();
    assert_eq!(world.seen(BOB), ["StringVarChanged"]);
    assert!(matches!(world.games(ANN).var_sync(id), Err(PlayError::NotJoined(_))));
    assert_eq!(world.dropped, [""; 0]);
}

#[test]
fn a_marker_game_is_created_shared_and_hunted() {
    let mut world = World::new();
    world.games(ANN).create_markers(MarkerGameType::Quest, "Hunt").unwrap();
    assert_eq!(
        world.seen(ANN),
        [
            "GameInstance",
            "TemplateCreated",
            "GameType",
            "GameNameChanged",
            "TeamAssigned",
            "PlayerJoined",
            "OwnerChange",
            "(entered)",
        ]
    );
    let id = world.games(ANN).last(GameType::Marker).unwrap();
    for (x, name) in [(1.0, "fountain"), (-2.5, "library"), (0.0, "gone")] {
        world.games(ANN).marker(id).unwrap().add([x, 0.0, 3.0], "city", name).unwrap();
    }
    world.settle();
    let mut game = world.games(ANN).marker(id).unwrap();
    game.rename_marker(0, "ferry").unwrap();
    game.delete_marker(2).unwrap();
    game.rename("The Hunt").unwrap();
    game.set_time_limit(60_000).unwrap();
    game.start().unwrap();
    game.capture(1).unwrap();
    let seen = world.seen(ANN);
    assert_eq!(
        seen[seen.len() - 6..],
        [
            "MarkerNameChanged",
            "MarkerDeleted",
            "GameNameChanged",
            "TimeLimitChanged",
            "GameStarted",
            "MarkerCaptured",
        ]
    );
    let mut game = world.games(ANN).marker(id).unwrap();
    assert_eq!(game.capture(1).unwrap_err().to_string(), PlayError::Captured(1).to_string());
    assert!(matches!(game.capture(2), Err(PlayError::NoMarker(2))));
    let template = game.state().template();
    assert!(!template.is_zero());

    world.games(BOB).open_markers(template).unwrap();
    let seen = world.seen(BOB);
    assert_eq!(seen[seen.len() - 3..], ["GameNameChanged", "GameStarted", "(entered)"]);
    let bobs = world.games(BOB).last(GameType::Marker).unwrap();
    let shown = world.games(BOB).marker(bobs).unwrap().state().clone();
    assert_eq!((shown.name(), shown.is_playing()), ("The Hunt", true));
    assert_eq!(shown.marker_type(), Some(MarkerGameType::Quest));
    let names = shown.markers().values().map(|marker| marker.name.to_text()).collect::<Vec<_>>();
    assert_eq!(names, ["ferry", "library"]);
    assert!(shown.captured().is_empty());
    world.games(BOB).marker(bobs).unwrap().capture(0).unwrap();
    world.settle();
    world.games(BOB).marker(bobs).unwrap().pause().unwrap();
    assert_eq!(world.seen(BOB), ["MarkerCaptured", "GamePaused"]);

    // Captures survive the game, until they are reset.
    world.games(BOB).leave(GameType::Marker).unwrap();
    world.games(BOB).open_markers(template).unwrap();
    let seen = world.seen(BOB);
    assert_eq!(seen[seen.len() - 3..], ["MarkerCaptured", "GameStarted", "(entered)"]);
    let again = world.games(BOB).last(GameType::Marker).unwrap();
    assert!(world.games(BOB).marker(again).unwrap().state().captured().contains(&0));
    world.games(BOB).marker(again).unwrap().reset().unwrap();
    assert_eq!(world.seen(BOB), ["GameReset"]);
    assert!(world.games(BOB).marker(again).unwrap().state().captured().is_empty());
    world.games(BOB).marker(again).unwrap().delete().unwrap();
    assert_eq!(world.seen(BOB), ["GameDeleted", "(ended)"]);
    assert!(world.games(BOB).joined().is_empty());
    assert_eq!(world.dropped, [""; 0]);
}

#[test]
fn what_is_not_announced_is_not_requested() {
    let caps = Caps::new(&[Caps::SCORE_LEADER_BOARDS, GameType::Heek.caps_bit()]);
    let mut games = PlayerGames::new(ANN, Some(&caps));
    assert!(games.serves(GameType::Heek) && !games.serves(GameType::Marker));
    let error = games.join(GameType::BlueSpiral, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the shard does not announce BlueSpiral; its operator must enable the game under [games] in \
         shard.toml"
    );
    assert!(games.open_markers(Uuid([1; 16])).is_err() && games.poll_transmit().is_none());
    games.join(GameType::Heek, 0).unwrap();
    assert!(games.poll_transmit().is_some());

    // An older server announces nothing and refuses games that it does not serve.
    let mut world = World::serving([GameType::Heek]);
    world.games(ANN).join(GameType::BlueSpiral, 0).unwrap();
    world.games(ANN).create_markers(MarkerGameType::Cgz, "x").unwrap();
    let failed = GameResult::InitFailed;
    assert_eq!(
        world.seen(ANN),
        ["GameInstance", "(refused: InitFailed (2))", "GameInstance", "(refused: InitFailed (2))"]
    );
    let refused = PlayError::Refused { game: GameType::BlueSpiral, result: failed };
    assert_eq!(
        refused.to_string(),
        "BlueSpiral: refused with InitFailed (2): the server does not offer this game"
    );
    assert!(world.games(ANN).joined().is_empty());
    assert!(matches!(world.games(ANN).join(GameType::Marker, 0), Err(PlayError::Value { .. })));
}

#[test]
fn members_join_again_and_other_games_can_be_joined() {
    let mut world = World::new();
    let id = world.join(ANN, GameType::Heek);
    assert_eq!(world.join(ANN, GameType::Heek), id);
    assert_eq!(world.games(ANN).joined().len(), 1);
    world.join(ANN, GameType::TicTacToe);
    world.join(BOB, GameType::TicTacToe);
    assert!(world.seen(ANN).contains(&"GameStarted".to_owned()));
    world.games(BOB).leave(GameType::TicTacToe).unwrap();
    let seen = world.seen(ANN);
    assert_eq!(seen[seen.len() - 2..], ["GameOver", "(ended)"]);
    world.join(ANN, GameType::ClimbingWall);
    let types: Vec<GameType> =
        world.games(ANN).joined().iter().map(|joined| joined.state().game_type()).collect();
    assert_eq!(types, [GameType::Heek, GameType::ClimbingWall]);
    let wall = world.games(ANN).joined().last().unwrap();
    assert!(matches!(wall.state(), GameState::Other(_)));
    assert_eq!((wall.owner(), wall.members().collect::<Vec<_>>()), (Some(ANN), vec![ANN]));
}

#[test]
fn servers_cannot_confuse_or_exhaust_the_client() {
    let mut games = PlayerGames::new(ANN, None);
    let instance = |game: GameType, id: u32| json!({"result": 0, "owner": ANN, "gameType": game.id().to_string(), "gameId": id});
    let heek = GameType::Heek;
    // Nobody has asked for this.
    let events = games.receive(&from_server(1, 0, "Manager.GameInstance", instance(heek, 9)));
    assert_eq!(events.unwrap().len(), 1);
    assert!(games.joined().is_empty());
    // The reply to a request is about another game.
    games.join(heek, 0).unwrap();
    let other = from_server(1, 0, "Manager.GameInstance", instance(GameType::VarSync, 9));
    let error = games.receive(&other).unwrap_err().to_string();
    assert!(error.contains("GameInstance: wanted a game of Heek"), "{error}");
    // The reply to a request has the ID of a game that the player is already in.
    let own = from_server(2, 0, "Manager.GameInstance", instance(heek, 8));
    games.join(heek, 0).unwrap();
    games.receive(&own).unwrap();
    games.join(GameType::VarSync, 255).unwrap();
    let other = from_server(3, 0, "Manager.GameInstance", instance(GameType::VarSync, 8));
    assert!(games.receive(&other).is_err() && games.joined().len() == 1);
    // Messages from a game that the player is not in are reported but have no effect.
    let events = games.receive(&from_server(0, 9, "AnyGame.PlayerJoined", json!({"player": ANN})));
    assert!(matches!(&events.unwrap()[..], [PlayEvent::Message { game_type: None, .. }]));

    games.open_markers(Uuid([1; 16])).unwrap();
    let instance = from_server(4, 0, "Manager.GameInstance", instance(GameType::Marker, 9));
    games.receive(&instance).unwrap();
    // The server has not confirmed that the player is a member.
    assert!(matches!(games.marker(9), Err(PlayError::NotJoined(GameType::Marker))));
    assert!(games.leave(GameType::Marker).is_err());
    let limit = (0..).find_map(|marker| {
        let fields = json!({
            "x": 0.0, "y": 0.0, "z": 0.0, "marker": marker, "name": "", "age": "",
        });
        games.receive(&from_server(0, 9, "Marker.MarkerAdded", fields)).err()
    });
    let limit = limit.unwrap();
    assert!(limit.to_string().contains("8192 (markers of a game)"), "{limit}");
    let bytes = from_server(0, 9, "Marker.GameNameChanged", json!({"name": "x"}));
    for length in 0..bytes.len() {
        let error = games.receive(&bytes[..length]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
    }
}

#[test]
fn any_message_is_survived() {
    let mut world = World::new();
    for game in GameType::ALL.into_iter().filter(|game| *game != GameType::Marker) {
        world.join(ANN, game);
    }
    world.games(ANN).create_markers(MarkerGameType::Quest, "Hunt").unwrap();
    world.settle();
    let joined: Vec<(u32, GameType)> = world
        .games(ANN)
        .joined()
        .iter()
        .map(|joined| (joined.id(), joined.state().game_type()))
        .collect();
    assert_eq!(joined.len(), GameType::ALL.len());
    let mut understood = 0;
    for seed in 0..2_000 {
        let mut sampler = Sampler::new(seed);
        let (id, game) = joined[usize::try_from(sampler.below(6)).unwrap()];
        let number = u32::try_from(sampler.below(18)).unwrap();
        let scope = if seed % 9 == 0 { GameScope::Manager } else { GameScope::Game(game) };
        let Some(message) = GameMessage::sample(scope, Side::Server, number, &mut sampler) else {
            continue;
        };
        let game_id = if scope == GameScope::Manager { 0 } else { id };
        let mut bytes = GameMessage { game_id, ..message }.to_bytes().unwrap();
        if seed % 3 == 0 {
            let at = usize::try_from(sampler.below(bytes.len() as u64)).unwrap();
            bytes[at] ^= 1 << sampler.below(8);
        }
        let games = world.games(ANN);
        understood += usize::from(games.receive(&bytes).is_ok());
        // Each message causes the client to send at most one message.
        games.poll_transmit();
        assert!(games.poll_transmit().is_none());
    }
    assert!(understood > 1_000, "{understood}");
}
