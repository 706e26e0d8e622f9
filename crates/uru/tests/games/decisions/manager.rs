//! Decisions about the manager: envelope, requests, members, bounds.

use worldwire_core::json::json;
use worldwire_uru::games::message::any::server::ServerMessage as Any;
use worldwire_uru::games::message::manager::server::ServerMessage as Manager;
use worldwire_uru::games::{
    GameBody, GameBounds, GameIds, GameType, GamesConfig, MarkerLibrary, RefusedClass,
};

use crate::world::{A, B, D, World, encoded, join, markers};

/// The result of the only message, a `GameInstance`.
fn result(world: &mut World, player: u32) -> (u32, i32) {
    let got = world.take(player);
    let [only] = &*got else { panic!("{got:?}") };
    match &only.body {
        GameBody::ManagerServer(Manager::GameInstance(game)) => (only.trans_id, game.result.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn g_01_a_wrong_size_drops_the_message() {
    let mut world = World::new();
    let game = world.join(A, GameType::BlueSpiral, 0);
    world.take(A);
    let mut start = encoded(0, game, "BlueSpiral.StartGame", json!({}));
    start[12] += 1;
    world.send_bytes(A, &start);
    assert_eq!(world.refused(), RefusedClass::SizeMismatch);
    assert!(world.is_quiet());
}

#[test]
fn g_02_messages_may_have_2048_bytes() {
    let mut world = World::new();
    world.join(A, GameType::VarSync, 255);
    for (length, class) in [
        (2_048, RefusedClass::UnknownGame),
        (2_049, RefusedClass::Oversize),
        (1 << 20, RefusedClass::Oversize),
    ] {
        let mut bytes = vec![1; length];
        bytes[12..16].copy_from_slice(&u32::try_from(length).unwrap().to_le_bytes());
        world.send_bytes(A, &bytes);
        assert_eq!(world.refused(), class);
    }
    // The longest message that a client sends.
    let game = world.join(A, GameType::VarSync, 255);
    world.take(A);
    let create = json!({"name": "a", "value": "b"});
    world.send(A, game, "VarSync.CreateStringVar", create);
    assert_eq!(world.names(A), ["StringVarCreated"]);
}

#[test]
fn g_03_only_messages_to_the_manager_are_requests() {
    let mut world = World::new();
    let game = world.join(A, GameType::BlueSpiral, 0);
    world.take(A);
    // A transaction does not turn a game's message into a request.
    world.send_in(A, 77, game, "BlueSpiral.StartGame", json!({}));
    assert_eq!(world.names(A), ["ClothOrder", "GameStarted"]);
}

#[test]
fn g_04_unknown_and_unserved_types_are_answered() {
    let mut world = World::with(GamesConfig::serving([GameType::VarSync]));
    world.send_in(A, 8, 0, "Manager.JoinGame", join(GameType::BlueSpiral, 0));
    assert_eq!(world.refused(), RefusedClass::UnknownGameType);
    assert_eq!(result(&mut world, A), (8, 2));
    world.send_in(A, 9, 0, "Manager.CreateGame", markers("", 0));
    assert_eq!((result(&mut world, A), world.refused()), ((9, 2), RefusedClass::UnknownGameType));
}

#[test]
fn g_05_all_ages_count_games_together() {
    let ids = std::sync::Arc::new(GameIds::new(5));
    let config = GamesConfig::serving(GameType::ALL);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let ids = std::sync::Arc::clone(&ids);
        let mut age = worldwire_uru::games::GameManager::new(config.clone(), ids);
        let from = worldwire_uru::games::GamePlayer { id: A, is_admin: false };
        let bytes = encoded(1, 0, "Manager.JoinGame", join(GameType::Heek, 0));
        age.receive(std::time::Duration::ZERO, from, &bytes, &mut |_: &mut [u8]| ());
        seen.extend(age.games().map(|game| game.0));
    }
    assert_eq!(seen, [5, 6]);
}

#[test]
fn g_06_marker_games_are_made_from_exactly_677_bytes() {
    let mut world = World::new();
    let bytes = encoded(3, 0, "Manager.CreateGame", markers("", 0));
    assert_eq!(bytes.len(), 40 + 677);
    world.send_bytes(A, &bytes);
    let game = world.games.games().next().unwrap().0;
    assert_eq!(world.take(A).len(), 7);
    let mut short = bytes[..bytes.len() - 2].to_vec();
    short[12..16].copy_from_slice(&715_u32.to_le_bytes());
    short[36..40].copy_from_slice(&675_u32.to_le_bytes());
    world.send_bytes(A, &short);
    assert_eq!((result(&mut world, A), world.refused()), ((3, 2), RefusedClass::BadCreateData));
    assert_eq!(world.games.games().map(|game| game.0).collect::<Vec<_>>(), [game]);
}

#[test]
fn g_07_a_member_who_joins_again_is_told_alone() {
    for game in [GameType::BlueSpiral, GameType::Heek, GameType::TicTacToe] {
        let mut world = World::new();
        let id = world.join(A, game, 0);
        world.join(B, game, 0);
        world.join(A, game, 0);
        world.take(A);
        world.take(B);
        assert_eq!(world.join(A, game, 0), id);
        assert_eq!(world.names(A), ["GameInstance", "PlayerJoined", "OwnerChange"]);
        assert_eq!(world.names(B), [""; 0]);
        assert_eq!(world.games.games().next().unwrap().2, [A, B]);
    }
    // A rejoining owner gets PlayerJoined and OwnerChange before the variables; other members get
    // them afterwards.
    let mut world = World::new();
    let id = world.join(A, GameType::VarSync, 255);
    world.send(A, id, "VarSync.CreateNumericVar", json!({"name": "x", "value": 1.0}));
    world.join(B, GameType::VarSync, 255);
    world.take(A);
    world.take(B);
    world.join(A, GameType::VarSync, 255);
    let wanted =
        ["GameInstance", "PlayerJoined", "OwnerChange", "NumericVarCreated", "AllVarsSent"];
    assert_eq!(world.names(A), wanted);
    world.join(B, GameType::VarSync, 255);
    let wanted =
        ["GameInstance", "NumericVarCreated", "AllVarsSent", "PlayerJoined", "OwnerChange"];
    assert_eq!(world.names(B), wanted);
    assert!(world.is_quiet());
}

#[test]
fn g_08_members_can_leave_and_ownership_passes_on() {
    let mut world = World::new();
    let game = world.join(A, GameType::Heek, 0);
    world.join(B, GameType::Heek, 0);
    world.join(D, GameType::Heek, 0);
    for player in [A, B, D] {
        world.take(player);
    }
    world.send(B, game, "AnyGame.LeaveGame", json!({}));
    assert_eq!(world.names(A), ["PlayerLeft"]);
    assert_eq!(world.names(D), ["PlayerLeft"]);
    world.send(A, game, "AnyGame.LeaveGame", json!({}));
    let got = world.take(D);
    let owner = got.iter().find_map(|got| match &got.body {
        GameBody::AnyServer(Any::OwnerChange(change)) => Some(change.owner),
        _ => None,
    });
    assert_eq!((got.len(), owner), (2, Some(D)));
    // G-15: players who have left receive no messages.
    assert!(world.is_quiet());
    world.send(A, game, "AnyGame.LeaveGame", json!({}));
    assert_eq!(world.refused(), RefusedClass::NotMember);
}

#[test]
fn g_09_texts_that_harm_clients_are_refused() {
    let mut world = World::new();
    let game = world.open(A, "", 0);
    world.take(A);
    let surrogate = json!({"name": {"$hex": "00d86100"}});
    world.send(A, game, "Marker.ChangeGameName", surrogate);
    assert_eq!(world.refused(), RefusedClass::BadUtf16);
    world.send(A, game, "Marker.ChangeGameName", json!({"name": "x".repeat(256)}));
    assert_eq!(world.refused(), RefusedClass::UnterminatedString);
    assert!(world.is_quiet());
    world.send(A, game, "Marker.ChangeGameName", json!({"name": "x".repeat(255)}));
    assert_eq!(world.names(A), ["GameNameChanged"]);
}

/// Bytes after the end of a text are neither forwarded nor stored.
#[test]
fn g_09_uninitialised_memory_reaches_nobody() {
    let mut world = World::new();
    let dirty = |bytes: &mut Vec<u8>, range: core::ops::Range<usize>| bytes[range].fill(0xcd);
    let vars = world.join(A, GameType::VarSync, 255);
    world.join(B, GameType::VarSync, 255);
    let create = json!({"name": "ab", "value": "cd"});
    let mut bytes = encoded(0, vars, "VarSync.CreateStringVar", create);
    dirty(&mut bytes, 22..528);
    dirty(&mut bytes, 534..1_040);
    world.send_bytes(A, &bytes);
    let mut bytes = encoded(4, 0, "Manager.CreateGame", markers("", 0));
    dirty(&mut bytes, 51..553);
    dirty(&mut bytes, 559..717);
    world.send_bytes(A, &bytes);
    let markers_of = world.games.games().find(|game| game.1 == GameType::Marker).unwrap().0;
    let add = json!({"x": 1.0, "y": 2.0, "z": 3.0, "name": "m", "age": "city"});
    let mut bytes = encoded(0, markers_of, "Marker.AddMarker", add);
    dirty(&mut bytes, 60..552);
    dirty(&mut bytes, 570..712);
    world.send_bytes(A, &bytes);
    let heek = world.join(A, GameType::Heek, 0);
    let sit = json!({"position": 0, "points": 5, "name": "A"});
    let mut bytes = encoded(0, heek, "Heek.PlayGame", sit);
    dirty(&mut bytes, 25..533);
    world.send_bytes(A, &bytes);
    let all: Vec<_> = [A, B].map(|player| world.take(player)).concat();
    for name in ["StringVarCreated", "MarkerAdded", "GameNameChanged", "Welcome"] {
        assert!(all.iter().any(|got| got.name() == name), "{name}");
    }
    for got in all {
        assert!(!got.bytes.windows(2).any(|pair| pair == [0xcd, 0xcd]), "{got:?}");
    }
    assert!(!format!("{:?}", world.library).contains('\u{cdcd}'));
    assert_eq!(world.dropped, []);
}

/// G-10 (undefined message numbers) and G-11 (replies without a request) are checked by the clients
/// in all these tests; see `world.rs`.
#[test]
fn g_10_g_11_only_requests_are_answered_in_a_transaction() {
    let mut world = World::new();
    let game = world.join(A, GameType::Heek, 0);
    let got = world.take(A);
    assert_eq!(got.iter().map(|got| got.trans_id).collect::<Vec<_>>(), [9, 0, 0]);
    // A message to a game that has ended gets no reply.
    world.send_in(B, 5, game + 1, "AnyGame.LeaveGame", json!({}));
    assert_eq!(world.refused(), RefusedClass::UnknownGame);
    assert!(world.is_quiet());
}

#[test]
fn g_12_nobody_is_invited() {
    let mut world = World::new();
    let game = world.join(A, GameType::TicTacToe, 0);
    world.take(A);
    world.send(A, game, "AnyGame.Invite", json!({"player": B}));
    let got = world.take(A);
    let [only] = &*got else { panic!("{got:?}") };
    let GameBody::AnyServer(Any::InviteFailed(failed)) = &only.body else { panic!("{only:?}") };
    assert_eq!((failed.invitee, failed.error.0), (B, 7));
    world.send(A, game, "AnyGame.Uninvite", json!({"player": B}));
    assert!(world.is_quiet());
}

#[test]
fn g_13_senders_are_slowed_down() {
    let mut world = World::new();
    let game = world.join(A, GameType::VarSync, 255);
    world.take(A);
    for _ in 1..400 {
        world.send(A, game, "VarSync.RequestAllVars", json!({}));
    }
    assert_eq!((world.take(A).len(), world.dropped.len()), (399, 0));
    world.send(A, game, "VarSync.RequestAllVars", json!({}));
    assert_eq!(world.refused(), RefusedClass::Limit);
    // A request still gets a reply, and other players are not affected.
    world.send_in(A, 12, 0, "Manager.JoinGame", join(GameType::Heek, 0));
    assert_eq!((result(&mut world, A), world.refused()), ((12, 5), RefusedClass::Limit));
    world.join(B, GameType::Heek, 0);
    world.advance(10);
    world.send(A, game, "VarSync.RequestAllVars", json!({}));
    assert_eq!((world.names(A).len(), world.dropped.len()), (1, 0));
    world.send(A, game, "VarSync.RequestAllVars", json!({}));
    assert_eq!(world.refused(), RefusedClass::Limit);
}

#[test]
fn g_14_tables_are_bounded() {
    let mut world = World::new();
    let games: Vec<u32> = (0..16).map(|table| world.join(A, GameType::Heek, table)).collect();
    world.take(A);
    world.send_in(B, 6, 0, "Manager.JoinGame", join(GameType::Heek, 16));
    assert_eq!((result(&mut world, B), world.refused()), ((6, 5), RefusedClass::Limit));
    // Each type has its own tables, and empty tables are removed to make room.
    world.join(B, GameType::BlueSpiral, 16);
    world.send(A, games[3], "AnyGame.LeaveGame", json!({}));
    world.join(B, GameType::Heek, 16);
    assert_eq!(world.games.games().filter(|game| game.1 == GameType::Heek).count(), 16);
    assert!(world.games.games().all(|game| game.0 != games[3]));
}

#[test]
fn g_14_members_are_bounded() {
    let bounds = GameBounds { members: 3, ..GameBounds::default() };
    let mut world = World::with(GamesConfig { bounds, ..GamesConfig::serving(GameType::ALL) });
    for player in 1..=3 {
        world.join(player, GameType::Heek, 0);
    }
    world.send_in(4, 6, 0, "Manager.JoinGame", join(GameType::Heek, 0));
    assert_eq!((result(&mut world, 4), world.refused()), ((6, 5), RefusedClass::Limit));
    assert_eq!(GameBounds::default().members, 256);
}

#[test]
fn g_14_marker_games_templates_and_markers_are_bounded() {
    let mut world = World::new();
    world.holds_store = true;
    // Games that the store has not opened yet count too.
    for _ in 0..8 {
        world.send_in(A, 2, 0, "Manager.CreateGame", markers("", 0));
    }
    world.send_in(A, 3, 0, "Manager.CreateGame", markers("", 0));
    assert_eq!((result(&mut world, A), world.refused()), ((3, 5), RefusedClass::Limit));
    while world.answer_one() {}
    world.send_in(A, 4, 0, "Manager.CreateGame", markers("", 0));
    world.take(A);
    assert_eq!(world.refused(), RefusedClass::Limit);

    let bounds = worldwire_uru::games::MarkerBounds { markers: 2, templates: 1 };
    let mut world = World::new();
    world.library = MarkerLibrary::new(bounds);
    let game = world.open(A, "", 0);
    world.take(A);
    world.send_in(A, 5, 0, "Manager.CreateGame", markers("", 0));
    assert_eq!(result(&mut world, A), (5, 5));
    let add = json!({"x": 1.0, "y": 2.0, "z": 3.0, "name": "m", "age": "city"});
    for _ in 0..3 {
        world.send(A, game, "Marker.AddMarker", add.clone());
    }
    assert_eq!(world.names(A), ["MarkerAdded", "MarkerAdded"]);
    assert_eq!(world.refused(), RefusedClass::Limit);
    let bounds = worldwire_uru::games::MarkerBounds::default();
    assert_eq!((bounds.markers, bounds.templates), (500, 200));
}

#[test]
fn g_14_games_without_a_table_are_bounded() {
    let mut world = World::new();
    let ttt = GameType::TicTacToe.id().to_string();
    let create = json!({"gameType": ttt, "options": [], "createData": {"players": 2}});
    let mut games = Vec::new();
    for _ in 0..9 {
        world.send_in(A, 5, 0, "Manager.CreateGame", create.clone());
    }
    games.extend(world.games.games().map(|game| game.0));
    assert_eq!((games.len(), world.refused()), (8, RefusedClass::Limit));
    // These games end when they have no members.
    world.leave(A);
    assert_eq!(world.games.games().count(), 0);
}

#[test]
fn g_15_those_who_leave_the_age_hear_nothing() {
    let mut world = World::new();
    world.join(A, GameType::Heek, 0);
    world.join(B, GameType::Heek, 0);
    world.take(A);
    world.take(B);
    world.leave(A);
    assert_eq!(world.names(B), ["PlayerLeft", "OwnerChange"]);
    assert!(world.is_quiet());
}

#[test]
fn games_are_joined_by_id_in_either_form() {
    let mut world = World::new();
    let game = world.join(A, GameType::Heek, 4);
    world.take(A);
    world.send_in(B, 3, 0, "Manager.JoinGame", json!({"gameId": game, "options": []}));
    assert_eq!(world.names(B), ["GameInstance", "PlayerJoined", "OwnerChange"]);
    let mut long = join(GameType::Heek, game);
    long["options"] = json!([]);
    world.send_in(D, 3, 0, "Manager.JoinGame", long);
    assert_eq!(world.names(D), ["GameInstance", "PlayerJoined", "OwnerChange"]);
    // The type must match the game's type.
    let mut other = join(GameType::VarSync, game);
    other["options"] = json!([]);
    world.send_in(5, 3, 0, "Manager.JoinGame", other);
    assert_eq!((result(&mut world, 5), world.refused()), ((3, 1), RefusedClass::UnknownGame));
}

#[test]
fn marker_games_have_no_table() {
    let mut world = World::new();
    world.send_in(A, 3, 0, "Manager.JoinGame", join(GameType::Marker, 0));
    assert_eq!((result(&mut world, A), world.refused()), ((3, 2), RefusedClass::BadValue));
    assert_eq!(world.games.games().count(), 0);
}
