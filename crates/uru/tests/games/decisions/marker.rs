//! Decisions about marker games.

use worldwire_core::json::{Json, json};
use worldwire_uru::games::message::manager::server::ServerMessage as Manager;
use worldwire_uru::games::message::marker::server::ServerMessage as Marker;
use worldwire_uru::games::{GameBody, GameType, MarkerAnswer, RefusedClass};

use crate::world::{A, B, Got, World, markers};

const NEW: [&str; 7] = [
    "GameInstance",
    "TemplateCreated",
    "GameType",
    "GameNameChanged",
    "TeamAssigned",
    "PlayerJoined",
    "OwnerChange",
];

fn add(name: &str) -> Json {
    json!({"x": 1.0, "y": -2.5, "z": 3.0, "name": name, "age": "city"})
}

/// A new game created by A, and its template.
fn made(world: &mut World, kind: u8) -> (u32, String) {
    let game = world.open(A, "", kind);
    let got = world.take(A);
    assert_eq!(got.iter().map(Got::name).collect::<Vec<_>>(), NEW);
    let template = got.iter().find_map(|got| match &got.body {
        GameBody::MarkerServer(Marker::TemplateCreated(made)) => Some(made.template.to_text()),
        _ => None,
    });
    let template = template.unwrap();
    assert_eq!((template.len(), template.to_lowercase()), (36, template.clone()));
    (game, template)
}

#[test]
fn g_50_a_player_can_have_several_games_open() {
    let mut world = World::new();
    let (first, template) = made(&mut world, 0);
    let second = world.open(A, &template, 0);
    world.take(A);
    world.send(A, first, "Marker.StartGame", json!({}));
    world.send(A, second, "Marker.StartGame", json!({}));
    assert_eq!(world.names(A), ["GameStarted", "GameStarted"]);
    // An edit is shown only in the game in which it was made.
    world.send(A, first, "Marker.AddMarker", add("m"));
    let got = world.take(A);
    assert_eq!(got.iter().map(|got| got.game_id).collect::<Vec<_>>(), [first]);
}

#[test]
fn g_51_the_zero_uuid_makes_a_game() {
    let mut world = World::new();
    world.open(A, "00000000-0000-0000-0000-000000000000", 0);
    assert_eq!(world.names(A), NEW);
}

#[test]
fn templates_are_found_in_either_case() {
    let mut world = World::new();
    let (_, template) = made(&mut world, 0);
    world.open(A, &template.to_uppercase(), 0);
    let names = world.names(A);
    let wanted = [
        "GameInstance",
        "TeamAssigned",
        "PlayerJoined",
        "OwnerChange",
        "GameType",
        "GameNameChanged",
    ];
    assert_eq!(names, wanted);
}

#[test]
fn g_52_unknown_quests_are_empty_and_unknown_missions_are_made() {
    const UNKNOWN: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
    let mut world = World::new();
    let quest = world.open(A, UNKNOWN, 0);
    let got = world.take(A);
    let name = got.iter().find_map(|got| match &got.body {
        GameBody::MarkerServer(Marker::GameNameChanged(name)) => Some(name.name.to_text()),
        _ => None,
    });
    assert_eq!(name.as_deref(), Some(""));
    world.send(A, quest, "Marker.AddMarker", add("m"));
    assert_eq!(world.refused(), RefusedClass::NotCreator);
    let mission = world.open(A, UNKNOWN, 1);
    world.take(A);
    world.send(A, mission, "Marker.AddMarker", add("m"));
    assert_eq!(world.names(A), ["MarkerAdded"]);
}

#[test]
fn g_53_an_empty_name_is_repeated() {
    let mut world = World::new();
    let (game, _) = made(&mut world, 0);
    world.send(A, game, "Marker.ChangeGameName", json!({"name": ""}));
    let got = world.take(A);
    let GameBody::MarkerServer(Marker::GameNameChanged(name)) = &got[0].body else {
        panic!("{got:?}")
    };
    assert!(name.name.is_empty());
}

#[test]
fn g_54_only_the_creator_and_administrators_edit() {
    let mut world = World::new();
    let (game, template) = made(&mut world, 0);
    world.send(A, game, "Marker.AddMarker", add("m"));
    world.take(A);
    let others = world.open(B, &template, 0);
    world.take(B);
    let edits = [
        ("Marker.ChangeGameName", json!({"name": "x"})),
        ("Marker.ChangeTimeLimit", json!({"timeLimit": 5})),
        ("Marker.AddMarker", add("x")),
        ("Marker.ChangeMarkerName", json!({"marker": 0, "name": "x"})),
        ("Marker.DeleteMarker", json!({"marker": 0})),
    ];
    for (name, fields) in &edits {
        world.send(B, others, name, fields.clone());
        assert_eq!(world.refused(), RefusedClass::NotCreator);
    }
    assert!(world.is_quiet());
    world.admins.insert(B);
    for (name, fields) in &edits {
        world.send(B, others, name, fields.clone());
    }
    let wanted = [
        "GameNameChanged",
        "TimeLimitChanged",
        "MarkerAdded",
        "MarkerNameChanged",
        "MarkerDeleted",
    ];
    assert_eq!(world.names(B), wanted);
    // Players who have the game open are not notified.
    assert!(world.is_quiet());
}

/// A player cannot edit a mission that another player has recreated after its deletion.
#[test]
fn g_54_a_deleted_mission_has_a_new_creator() {
    let mut world = World::new();
    let (game, template) = made(&mut world, 1);
    let old = world.open(A, &template, 1);
    world.send(A, game, "Marker.DeleteGame", json!({}));
    world.take(A);
    let new = world.open(B, &template, 1);
    world.take(B);
    world.send(A, old, "Marker.AddMarker", add("a"));
    world.send(A, old, "Marker.ChangeGameName", json!({"name": "a"}));
    assert_eq!(world.names(A), [""; 0]);
    world.send(A, old, "Marker.DeleteGame", json!({}));
    world.send(B, new, "Marker.AddMarker", add("b"));
    assert_eq!((world.names(A), world.names(B)), (vec!["GameDeleted"], vec!["MarkerAdded"]));
}

#[test]
fn g_55_g_56_a_pause_is_always_answered_and_a_reset_forgets_captures() {
    let mut world = World::new();
    let (game, template) = made(&mut world, 0);
    world.send(A, game, "Marker.PauseGame", json!({}));
    assert_eq!(world.names(A), ["GamePaused"]);
    for marker in 0..2 {
        world.send(A, game, "Marker.AddMarker", add("m"));
        world.send(A, game, "Marker.CaptureMarker", json!({"marker": marker}));
    }
    world.send(A, game, "Marker.StartGame", json!({}));
    world.send(A, game, "Marker.StartGame", json!({}));
    world.send(A, game, "Marker.ResetGame", json!({}));
    world.send(A, game, "Marker.StartGame", json!({}));
    let wanted = [
        "MarkerAdded",
        "MarkerCaptured",
        "MarkerAdded",
        "MarkerCaptured",
        "GameStarted",
        "GameReset",
        "GameStarted",
    ];
    assert_eq!(world.names(A), wanted);
    world.open(A, &template, 0);
    assert!(!world.names(A).contains(&"MarkerCaptured"));
}

#[test]
fn g_57_zero_means_deleted() {
    let mut world = World::new();
    for kind in [0, 1] {
        let (game, template) = made(&mut world, kind);
        world.send(A, game, "Marker.DeleteGame", json!({}));
        let got = world.take(A);
        let [only] = &*got else { panic!("{got:?}") };
        assert_eq!(only.bytes.last(), Some(&0));
        world.send(A, game, "Marker.PauseGame", json!({}));
        assert_eq!(world.refused(), RefusedClass::UnknownGame);
        // Other players may still have a quest.
        let id = worldwire_uru::types::Uuid::parse(&template).unwrap();
        assert_eq!(world.library.template(id).is_some(), kind == 0);
    }
    // Only the creator's deletion removes a mission.
    let (_, template) = made(&mut world, 1);
    let others = world.open(B, &template, 1);
    world.take(B);
    world.send(B, others, "Marker.DeleteGame", json!({}));
    assert_eq!(world.names(B), ["GameDeleted"]);
    let id = worldwire_uru::types::Uuid::parse(&template).unwrap();
    assert!(world.library.template(id).is_some());
}

#[test]
fn g_58_only_quests_and_missions_are_served() {
    let mut world = World::new();
    for kind in [2, 3, 4, 255] {
        world.send_in(A, 6, 0, "Manager.CreateGame", markers("", kind));
        let got = world.take(A);
        let [only] = &*got else { panic!("{got:?}") };
        let GameBody::ManagerServer(Manager::GameInstance(game)) = &only.body else {
            panic!("{only:?}")
        };
        assert_eq!((game.result.0, world.refused()), (2, RefusedClass::BadValue));
    }
}

#[test]
fn g_59_the_name_precedes_the_captures() {
    let mut world = World::new();
    let (game, template) = made(&mut world, 0);
    for marker in 0..3 {
        world.send(A, game, "Marker.AddMarker", add("m"));
        world.send(A, game, "Marker.CaptureMarker", json!({"marker": marker}));
    }
    world.send(A, game, "Marker.DeleteMarker", json!({"marker": 1}));
    world.take(A);
    let wanted = [
        "GameInstance",
        "TeamAssigned",
        "PlayerJoined",
        "OwnerChange",
        "GameType",
        "MarkerAdded",
        "MarkerAdded",
        "GameNameChanged",
        "MarkerCaptured",
        "MarkerCaptured",
    ];
    world.open(A, &template, 0);
    assert_eq!(world.names(A), wanted);
    // A member who joins again gets the same messages again.
    world.send_in(A, 8, 0, "Manager.JoinGame", json!({"gameId": game, "options": []}));
    let got = world.take(A);
    assert_eq!(got.iter().map(Got::name).collect::<Vec<_>>(), wanted);
    assert_eq!((got[0].trans_id, got[1].game_id), (8, game));
}

#[test]
fn answers_wait_for_the_store_in_order() {
    let mut world = World::new();
    let (game, _) = made(&mut world, 0);
    world.holds_store = true;
    world.send(A, game, "Marker.AddMarker", add("m"));
    world.send(A, game, "Marker.StartGame", json!({}));
    world.send(A, game, "Marker.CaptureMarker", json!({"marker": 0}));
    world.send(A, game, "Marker.DeleteGame", json!({}));
    assert!(world.is_quiet());
    // A deleted game accepts no messages.
    world.send(A, game, "Marker.PauseGame", json!({}));
    assert_eq!(world.refused(), RefusedClass::UnknownGame);
    world.answer_one();
    assert_eq!(world.names(A), ["MarkerAdded", "GameStarted"]);
    world.answer_one();
    assert_eq!(world.names(A), ["MarkerCaptured", "GameDeleted"]);
    assert_eq!(world.games.games().count(), 0);
}

#[test]
fn nobody_is_answered_after_leaving() {
    let mut world = World::new();
    let (game, _) = made(&mut world, 0);
    world.holds_store = true;
    world.send(A, game, "Marker.AddMarker", add("m"));
    world.send_in(A, 3, 0, "Manager.CreateGame", markers("", 0));
    world.leave(A);
    while world.answer_one() {}
    assert!(world.is_quiet());
    assert_eq!(world.games.games().count(), 0);
}

#[test]
fn a_store_that_fails_refuses_games_and_keeps_silent_about_edits() {
    let mut world = World::new();
    let (game, _) = made(&mut world, 1);
    world.holds_store = true;
    world.send(A, game, "Marker.AddMarker", add("m"));
    world.send(A, game, "Marker.PauseGame", json!({}));
    world.send(A, game, "Marker.DeleteGame", json!({}));
    world.send_in(A, 3, 0, "Manager.CreateGame", markers("", 0));
    while let Some((ticket, _)) = world.held.pop_front() {
        world.answer(ticket, &MarkerAnswer::Failed);
    }
    let got = world.take(A);
    let names: Vec<_> = got.iter().map(Got::name).collect();
    assert_eq!(names, ["GamePaused", "GameDeleted", "GameInstance"]);
    assert_eq!(got[1].bytes.last(), Some(&1));
    assert_eq!(world.games.games().filter(|game| game.1 == GameType::Marker).count(), 0);
}

#[test]
fn waiting_answers_are_bounded() {
    let mut world = World::new();
    let (game, _) = made(&mut world, 0);
    world.holds_store = true;
    for _ in 0..513 {
        world.send(A, game, "Marker.ResetGame", json!({}));
        world.advance(10);
    }
    assert_eq!((world.held.len(), world.refused()), (512, RefusedClass::Limit));
}
