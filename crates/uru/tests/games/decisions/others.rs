//! Decisions about the blue spiral, VarSync, the climbing wall and tic-tac-toe.

use worldwire_core::json::{Json, json};
use worldwire_uru::games::message::blue_spiral::server::ServerMessage as Spiral;
use worldwire_uru::games::message::climbing_wall::server::ServerMessage as Wall;
use worldwire_uru::games::message::tic_tac_toe::server::ServerMessage as TicTacToe;
use worldwire_uru::games::message::var_sync::server::ServerMessage as VarSync;
use worldwire_uru::games::{GameBody, GameType, GamesConfig, RefusedClass};

use crate::world::{A, B, D, World};

/// A spiral that A owns and has just started, and the order of its cloths.
fn spiral() -> (World, u32, [u8; 7]) {
    let mut world = World::new();
    let game = world.join(A, GameType::BlueSpiral, 0);
    world.join(B, GameType::BlueSpiral, 0);
    world.take(A);
    world.take(B);
    world.send(A, game, "BlueSpiral.StartGame", json!({}));
    let order = order(&mut world, B);
    world.take(A);
    (world, game, order)
}

fn order(world: &mut World, player: u32) -> [u8; 7] {
    let got = world.take(player);
    let order = got.iter().find_map(|got| match &got.body {
        GameBody::BlueSpiralServer(Spiral::ClothOrder(order)) => Some(order.order.0),
        _ => None,
    });
    let order = order.unwrap();
    let mut sorted = order;
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6]);
    order
}

fn hit(world: &mut World, player: u32, game: u32, cloth: u8) {
    world.send(player, game, "BlueSpiral.HitCloth", json!({"cloth": cloth}));
}

#[test]
fn g_20_g_21_any_member_starts_and_the_owner_spins() {
    let mut world = World::new();
    let game = world.join(A, GameType::BlueSpiral, 0);
    world.join(B, GameType::BlueSpiral, 0);
    world.take(A);
    world.take(B);
    world.send(B, game, "BlueSpiral.StartGame", json!({}));
    assert_eq!(world.names(A), ["ClothOrder", "GameStarted"]);
    assert_eq!(world.names(B), ["ClothOrder", "GameStarted"]);
    world.advance(15_000);
    assert_eq!((world.names(A), world.names(B)), (vec!["GameStarted"], vec![]));
}

#[test]
fn g_22_cloths_that_do_not_exist_change_nothing() {
    let (mut world, game, order) = spiral();
    hit(&mut world, A, game, 7);
    assert_eq!(world.refused(), RefusedClass::BadValue);
    hit(&mut world, A, game, order[0]);
    assert_eq!(world.names(A), ["SuccessfulHit"]);
    assert!(world.is_quiet());
}

#[test]
fn g_23_a_won_game_ends_75_seconds_after_its_start() {
    for win_after in [0, 20_000] {
        let (mut world, game, order) = spiral();
        world.advance(win_after);
        world.take(A);
        for cloth in order {
            hit(&mut world, B, game, cloth);
        }
        let names = world.names(A);
        assert_eq!((names.len(), names.last()), (8, Some(&"GameWon")));
        assert!(world.is_quiet());
        hit(&mut world, B, game, 0);
        assert_eq!(world.refused(), RefusedClass::BadState);
        world.advance(74_900 - win_after);
        assert!(world.is_quiet());
        world.advance(200);
        assert_eq!((world.names(A), world.names(B)), (vec!["GameOver"], vec!["GameOver"]));
        // No old timer is still running.
        world.send(A, game, "BlueSpiral.StartGame", json!({}));
        world.take(A);
        world.take(B);
        world.advance(14_900);
        assert!(world.is_quiet());
    }
}

#[test]
fn g_24_a_game_starts_again_after_a_second() {
    let (mut world, game, _) = spiral();
    world.advance(999);
    world.send(B, game, "BlueSpiral.StartGame", json!({}));
    assert_eq!(world.refused(), RefusedClass::BadState);
    world.advance(1);
    world.send(B, game, "BlueSpiral.StartGame", json!({}));
    assert_eq!(world.names(A), ["GameOver", "ClothOrder", "GameStarted"]);
    assert_eq!(world.names(B), ["GameOver", "ClothOrder", "GameStarted"]);
    // The first game's timer is cancelled.
    world.advance(14_900);
    assert!(world.is_quiet());
    world.advance(100);
    assert_eq!(world.names(A), ["GameStarted"]);
}

#[test]
fn g_25_newcomers_are_told_nothing_of_a_running_game() {
    let (mut world, ..) = spiral();
    world.join(D, GameType::BlueSpiral, 0);
    assert_eq!(world.names(D), ["GameInstance", "PlayerJoined", "OwnerChange"]);
}

#[test]
fn g_26_cloths_count_while_the_order_is_shown() {
    let (mut world, game, order) = spiral();
    hit(&mut world, B, game, order[0]);
    assert_eq!(world.names(A), ["SuccessfulHit"]);
    hit(&mut world, B, game, order[0]);
    assert_eq!((world.names(A), world.names(B)), (vec!["GameOver"], vec!["GameOver"]));
    world.advance(100_000);
    assert!(world.is_quiet());
}

#[test]
fn an_empty_spiral_has_no_timer() {
    let (mut world, game, _) = spiral();
    world.leave(A);
    world.leave(B);
    world.take(B);
    assert_eq!(world.games.poll_timeout(), None);
    world.advance(100_000);
    assert_eq!(world.join(D, GameType::BlueSpiral, 0), game);
}

/// A VarSync game that A owns and B has joined.
fn variables(config: GamesConfig) -> (World, u32) {
    let mut world = World::with(config);
    let game = world.join(A, GameType::VarSync, 255);
    world.join(B, GameType::VarSync, 255);
    world.take(A);
    world.take(B);
    (world, game)
}

fn created(world: &mut World, player: u32) -> Vec<u32> {
    let got = world.take(player).into_iter();
    let ids = got.filter_map(|got| match got.body {
        GameBody::VarSyncServer(VarSync::NumericVarCreated(it)) => Some(it.var),
        GameBody::VarSyncServer(VarSync::StringVarCreated(it)) => Some(it.var),
        _ => None,
    });
    ids.collect()
}

fn serving_all() -> GamesConfig {
    GamesConfig::serving(GameType::ALL)
}

#[test]
fn g_30_g_31_g_35_variables_of_both_kinds_count_from_1_whoever_makes_them() {
    let (mut world, game) = variables(serving_all());
    world.send(A, game, "VarSync.CreateNumericVar", json!({"name": "a", "value": 1.0}));
    world.send(B, game, "VarSync.CreateStringVar", json!({"name": "b", "value": "x"}));
    world.send(B, game, "VarSync.CreateNumericVar", json!({"name": "c", "value": 2.0}));
    assert_eq!((created(&mut world, A), created(&mut world, B)), (vec![1, 2, 3], vec![1, 2, 3]));
    // If the name is already in use, even for the other type, the sender gets the stored variable.
    world.send(B, game, "VarSync.CreateStringVar", json!({"name": "a", "value": "other"}));
    assert_eq!((world.names(A), world.names(B)), (vec![], vec!["NumericVarCreated"]));
    world.send(A, game, "VarSync.SetStringVar", json!({"var": 2, "value": "y"}));
    assert_eq!(
        (world.names(A), world.names(B)),
        (vec!["StringVarChanged"], vec!["StringVarChanged"])
    );
}

#[test]
fn g_32_ownership_of_variables_passes_on() {
    let (mut world, game) = variables(serving_all());
    world.send(A, game, "VarSync.CreateNumericVar", json!({"name": "a", "value": 1.0}));
    world.join(D, GameType::VarSync, 255);
    for player in [A, B, D] {
        world.take(player);
    }
    // Ownership passes on only if the owner leaves.
    world.leave(D);
    assert_eq!((world.names(A), world.names(B)), (vec!["PlayerLeft"], vec!["PlayerLeft"]));
    world.leave(A);
    assert_eq!(world.names(B), ["PlayerLeft", "OwnerChange"]);
    world.send(B, game, "VarSync.SetNumericVar", json!({"var": 1, "value": 3.0}));
    assert_eq!(world.names(B), ["NumericVarChanged"]);
}

#[test]
fn g_32_without_the_option_nobody_owns_the_variables() {
    let (mut world, game) = variables(GamesConfig { var_sync_handoff: false, ..serving_all() });
    world.send(A, game, "VarSync.CreateNumericVar", json!({"name": "a", "value": 1.0}));
    world.take(B);
    world.leave(A);
    assert_eq!(world.names(B), ["PlayerLeft"]);
    world.send(B, game, "VarSync.SetNumericVar", json!({"var": 1, "value": 3.0}));
    assert_eq!(world.refused(), RefusedClass::NotOwner);
    // Other games are not affected.
    let spiral = world.join(B, GameType::BlueSpiral, 0);
    world.join(D, GameType::BlueSpiral, 0);
    world.take(D);
    world.send(B, spiral, "AnyGame.LeaveGame", json!({}));
    assert_eq!(world.names(D), ["PlayerLeft", "OwnerChange"]);
}

#[test]
fn g_33_g_34_only_the_owner_sets_variables_that_exist() {
    let (mut world, game) = variables(serving_all());
    world.send(A, game, "VarSync.CreateNumericVar", json!({"name": "a", "value": 1.0}));
    world.take(A);
    world.take(B);
    world.send(B, game, "VarSync.SetNumericVar", json!({"var": 1, "value": 3.0}));
    assert_eq!(world.refused(), RefusedClass::NotOwner);
    for (var, name, value) in [
        (0, "VarSync.SetNumericVar", json!(1.0)),
        (2, "VarSync.SetNumericVar", json!(1.0)),
        (u32::MAX, "VarSync.SetNumericVar", json!(1.0)),
        (1, "VarSync.SetStringVar", json!("x")),
    ] {
        world.send(A, game, name, json!({"var": var, "value": value}));
        assert_eq!(world.refused(), RefusedClass::BadState);
    }
    assert!(world.is_quiet());
}

#[test]
fn variables_are_bounded() {
    let (mut world, game) = variables(serving_all());
    for number in 0..257 {
        let name = format!("Quab{number}");
        world.send(A, game, "VarSync.CreateNumericVar", json!({"name": name, "value": 0.0}));
    }
    assert_eq!(created(&mut world, B).len(), 256);
    assert_eq!(world.refused(), RefusedClass::Limit);
}

/// Two hundred clients receive every change, at ten changes per second.
#[test]
fn many_clients_receive_every_change() {
    let mut world = World::with(serving_all());
    let players: Vec<u32> = (1..=200).collect();
    let game = players.iter().map(|player| world.join(*player, GameType::VarSync, 255)).last();
    let game = game.unwrap();
    for number in 0..20 {
        let name = format!("Quab{number}");
        world.send(1, game, "VarSync.CreateNumericVar", json!({"name": name, "value": 0.0}));
    }
    for player in &players {
        world.take(*player);
    }
    for change in 0..60 {
        let set = json!({"var": change % 20 + 1, "value": f64::from(change)});
        world.send(1, game, "VarSync.SetNumericVar", set);
        world.advance(100);
    }
    for player in &players {
        let got = world.take(*player).into_iter();
        let values: Vec<f64> = got
            .filter_map(|got| match got.body {
                GameBody::VarSyncServer(VarSync::NumericVarChanged(it)) => Some(it.value.0),
                _ => None,
            })
            .collect();
        assert_eq!(values, (0..60).map(f64::from).collect::<Vec<_>>());
    }
    assert_eq!(world.dropped, []);
}

fn wall(world: &mut World, player: u32, game: u32, name: &str, fields: Json) {
    world.send(player, game, &format!("ClimbingWall.{name}"), fields);
}

#[test]
fn g_60_the_wall_is_off_unless_it_is_served() {
    assert!(GamesConfig::default().games.is_empty());
    let mut world = World::new();
    let game = world.join(A, GameType::ClimbingWall, 0);
    world.join(B, GameType::ClimbingWall, 0);
    world.take(A);
    world.take(B);
    // The number is clamped, and changing it cancels a team's agreement.
    wall(&mut world, A, game, "ChangeNumBlockers", json!({"amount": 2}));
    wall(&mut world, A, game, "Ready", json!({"readyType": 0, "team": 1}));
    wall(&mut world, B, game, "ChangeNumBlockers", json!({"amount": -2_147_483_648}));
    wall(&mut world, B, game, "ChangeNumBlockers", json!({"amount": 2_147_483_647}));
    let names =
        ["NumBlockersChanged", "Ready", "NumBlockersChanged", "Ready", "NumBlockersChanged"];
    assert_eq!(world.names(A), names);
    let counts: Vec<u8> = world
        .take(B)
        .into_iter()
        .filter_map(|got| match got.body {
            GameBody::ClimbingWallServer(Wall::NumBlockersChanged(it)) => Some(it.count),
            _ => None,
        })
        .collect();
    assert_eq!(counts, [2, 0, 20]);
    wall(&mut world, B, game, "ChangeNumBlockers", json!({"amount": -19}));
    for team in [1, 2] {
        wall(&mut world, A, game, "Ready", json!({"readyType": 0, "team": team}));
    }
    world.take(A);
    world.take(B);
    // More blockers than agreed are ignored, and so are blockers of a team that is ready.
    let change = |blocker, added| json!({"team": 1, "blocker": blocker, "added": added});
    wall(&mut world, A, game, "BlockerChanged", change(5, true));
    wall(&mut world, A, game, "BlockerChanged", change(6, true));
    assert_eq!(world.refused(), RefusedClass::BadState);
    wall(&mut world, A, game, "BlockerChanged", change(5, false));
    wall(&mut world, A, game, "BlockerChanged", change(6, true));
    wall(&mut world, A, game, "Ready", json!({"readyType": 1, "team": 1}));
    wall(&mut world, A, game, "BlockerChanged", change(6, false));
    assert_eq!(world.refused(), RefusedClass::BadState);
    assert_eq!(world.names(B), ["BlockersChanged", "BlockersChanged", "BlockersChanged", "Ready"]);
    wall(&mut world, A, game, "Ready", json!({"readyType": 1, "team": 2}));
    world.take(A);
    world.take(B);
    // A player who panics loses, and a second later the game starts over.
    wall(&mut world, A, game, "PlayerEntered", json!({"team": 1}));
    wall(&mut world, A, game, "PlayerEntered", json!({"team": 2}));
    assert_eq!(world.refused(), RefusedClass::BadState);
    wall(&mut world, B, game, "Reset", json!({}));
    assert_eq!(world.refused(), RefusedClass::BadState);
    wall(&mut world, A, game, "Panic", json!({}));
    let got = world.take(B);
    let over = got.iter().find_map(|got| match &got.body {
        GameBody::ClimbingWallServer(Wall::GameOver(over)) => Some(over),
        _ => None,
    });
    let over = over.unwrap();
    assert_eq!((over.team_won, over.team1_blockers.0[..2].to_vec()), (2, vec![6, -1]));
    assert!(over.local_only.is_true());
    world.take(A);
    world.advance(1_000);
    assert_eq!((world.names(A).len(), world.names(B).len()), (6, 6));
    assert_eq!(world.games.poll_timeout(), None);
}

/// A game of two in which A moves first.
fn tic_tac_toe() -> (World, u32) {
    let mut world = World::new();
    world.fix_random();
    let game = world.join(A, GameType::TicTacToe, 0);
    world.join(B, GameType::TicTacToe, 0);
    world.take(A);
    world.take(B);
    (world, game)
}

fn moved(world: &mut World, player: u32, game: u32, row: u8, col: u8) {
    world.send(player, game, "TicTacToe.MakeMove", json!({"row": row, "col": col}));
}

#[test]
fn g_70_cells_count_from_zero() {
    let (mut world, game) = tic_tac_toe();
    moved(&mut world, A, game, 3, 0);
    assert_eq!(world.refused(), RefusedClass::BadValue);
    moved(&mut world, A, game, 0, 3);
    assert_eq!(world.refused(), RefusedClass::BadValue);
    moved(&mut world, A, game, 2, 2);
    assert_eq!((world.names(A), world.names(B)), (vec!["MoveMade"], vec!["MoveMade"]));
}

#[test]
fn tic_tac_toe_ends_in_a_tie() {
    let (mut world, game) = tic_tac_toe();
    for (number, cell) in [0_u8, 1, 2, 4, 3, 5, 7, 6, 8].into_iter().enumerate() {
        moved(&mut world, [A, B][number % 2], game, cell / 3, cell % 3);
    }
    let last = world.take(B).pop().unwrap();
    let GameBody::TicTacToeServer(TicTacToe::GameOver(over)) = last.body else {
        panic!("{last:?}")
    };
    assert_eq!((over.result.0, over.winner), (1, 0));
    assert_eq!(world.games.games().count(), 0);
    // The table is free for a new game.
    assert_ne!(world.join(A, GameType::TicTacToe, 0), game);
}

#[test]
fn leaving_tic_tac_toe_gives_it_up() {
    let (mut world, game) = tic_tac_toe();
    // Nobody can join a game that has started.
    world.send_in(D, 3, 0, "Manager.JoinGame", json!({"gameId": game, "options": []}));
    assert_eq!((world.names(D), world.refused()), (vec!["GameInstance"], RefusedClass::BadState));
    world.leave(B);
    assert_eq!(world.names(A), ["PlayerLeft", "GameOver"]);
    assert_eq!(world.games.games().count(), 0);
}

#[test]
fn the_server_plays_tic_tac_toe() {
    let ttt = GameType::TicTacToe.id().to_string();
    let create = json!({"gameType": ttt, "options": [], "createData": {"players": 1}});
    let mut results = std::collections::BTreeSet::new();
    let mut starters = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let mut world = World::new();
        world.seed(seed * 7_919 + 12_345_678_901);
        world.send_in(A, 5, 0, "Manager.CreateGame", create.clone());
        let game = world.games.games().next().unwrap().0;
        let names = world.names(A);
        assert_eq!(names[..4], ["GameInstance", "PlayerJoined", "OwnerChange", "GameStarted"]);
        starters.insert(names.get(4).copied());
        for cell in 0..9 {
            if world.games.games().count() == 0 {
                break;
            }
            moved(&mut world, A, game, cell / 3, cell % 3);
        }
        for got in world.take(A) {
            if let GameBody::TicTacToeServer(TicTacToe::GameOver(over)) = got.body {
                results.insert((over.result.0, over.winner));
            }
        }
        assert_eq!(world.games.games().count(), 0);
    }
    assert_eq!(starters.into_iter().collect::<Vec<_>>(), [None, Some("MoveMade")]);
    assert!(results.contains(&(0, A)) && results.contains(&(0, 0)), "{results:?}");
}
