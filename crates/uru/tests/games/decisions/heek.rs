//! Decisions about Heek.

use worldwire_core::json::json;
use worldwire_uru::games::message::heek::server::ServerMessage as Heek;
use worldwire_uru::games::{GameBody, GameType, RefusedClass};

use crate::world::{A, B, D, Got, World};

/// A table that A owns, at which these players sit in seats 0, 1, and so on.
fn table(players: &[u32]) -> (World, u32) {
    let mut world = World::new();
    let game = world.join(A, GameType::Heek, 0);
    for (seat, player) in players.iter().enumerate() {
        if *player != A {
            world.join(*player, GameType::Heek, 0);
        }
        sit(&mut world, *player, game, seat, 100);
    }
    for player in players {
        world.take(*player);
    }
    world.take(A);
    (world, game)
}

fn sit(world: &mut World, player: u32, game: u32, seat: usize, points: u32) {
    let fields = json!({"position": seat, "points": points, "name": format!("P{player}")});
    world.send(player, game, "Heek.PlayGame", fields);
}

fn choose(world: &mut World, player: u32, game: u32, choice: u8) {
    world.send(player, game, "Heek.Choose", json!({"choice": choice}));
}

fn finish(world: &mut World, player: u32, game: u32, sequence: u8) {
    world.send(player, game, "Heek.SeqFinished", json!({"sequence": sequence}));
}

fn stand_up(world: &mut World, player: u32, game: u32) {
    world.send(player, game, "Heek.StandUp", json!({}));
}

/// The points and ranks in `PointUpdate` and `Welcome`.
fn scores(got: &[Got]) -> Vec<(u32, u32)> {
    let score = |got: &Got| match &got.body {
        GameBody::HeekServer(Heek::PointUpdate(it)) => Some((it.points, it.rank)),
        GameBody::HeekServer(Heek::Welcome(it)) => Some((it.points, it.rank)),
        _ => None,
    };
    got.iter().filter_map(score).collect()
}

/// A round in which everybody makes a choice, up to the animation.
fn round(world: &mut World, game: u32, choices: &[(u32, u8)]) {
    for (player, choice) in choices {
        choose(world, *player, game, *choice);
    }
    finish(world, A, game, 0);
}

#[test]
fn g_40_timers_replace_missing_sequences() {
    let (mut world, game) = table(&[A, B]);
    choose(&mut world, A, game, 0);
    choose(&mut world, B, game, 2);
    world.take(A);
    world.take(B);
    world.advance(999);
    assert!(world.is_quiet());
    world.advance(1);
    assert_eq!(world.names(A), ["InterfaceState", "WinLose", "LightState"]);
    world.take(B);
    world.advance(10_999);
    assert!(world.is_quiet());
    world.advance(1);
    assert_eq!(world.names(A), ["CountdownState", "InterfaceState"]);
    world.take(B);
    // A countdown of 7 s, with two of three choices.
    world.join(D, GameType::Heek, 0);
    sit(&mut world, D, game, 4, 100);
    choose(&mut world, A, game, 0);
    choose(&mut world, B, game, 2);
    for player in [A, B, D] {
        world.take(player);
    }
    world.advance(6_999);
    assert!(world.is_quiet());
    world.advance(1);
    assert_eq!(world.names(A), ["CountdownState"]);
    // The third win, the animation and the winner take 1 + 11 + 6 s.
    world.advance(12_000);
    for player in [A, B, D] {
        world.take(player);
    }
    round(&mut world, game, &[(A, 0), (B, 2), (D, 2)]);
    for player in [A, B, D] {
        world.take(player);
    }
    world.advance(11_000);
    assert_eq!(world.names(A), ["GameWin", "PointUpdate"]);
    assert_eq!((world.names(B), world.names(D)), (vec!["PointUpdate"], vec!["PointUpdate"]));
    world.advance(5_999);
    assert!(world.is_quiet());
    world.advance(1);
    assert_eq!(world.names(A), ["CountdownState", "InterfaceState"]);
    assert_eq!(world.games.poll_timeout(), None);
}

#[test]
fn g_41_seats_that_are_taken_are_refused_and_others_do_not_exist() {
    let (mut world, game) = table(&[A, B]);
    world.join(D, GameType::Heek, 0);
    for player in [A, B, D] {
        world.take(player);
    }
    sit(&mut world, D, game, 0, 100);
    let got = world.take(D);
    let GameBody::HeekServer(Heek::PlayGame(reply)) = &got[0].body else { panic!("{got:?}") };
    assert_eq!([reply.playing, reply.single, reply.enable].map(|it| it.is_true()), [false; 3]);
    assert_eq!(world.refused(), RefusedClass::BadState);
    sit(&mut world, A, game, 3, 100);
    assert_eq!((world.names(A), world.refused()), (vec!["PlayGame"], RefusedClass::BadState));
    sit(&mut world, D, game, 5, 100);
    assert_eq!(world.refused(), RefusedClass::BadValue);
    assert!(world.is_quiet());
}

#[test]
fn g_42_points_stay_between_zero_and_what_is_believed() {
    let mut world = World::new();
    let game = world.join(A, GameType::Heek, 0);
    world.join(B, GameType::Heek, 0);
    world.take(A);
    world.take(B);
    sit(&mut world, A, game, 0, 0x8000_0000);
    assert_eq!(scores(&world.take(A)), [(0, 1)]);
    sit(&mut world, B, game, 1, 0x7fff_ffff);
    assert_eq!(scores(&world.take(B)), [(0x7fff_ffff, 1)]);
    world.take(A);
    // A player without points does not pay any.
    choose(&mut world, A, game, 0);
    assert_eq!(scores(&world.take(A)), [(0, 2)]);
    // While a game is running, the points known to the server apply.
    stand_up(&mut world, A, game);
    sit(&mut world, A, game, 0, 500);
    assert_eq!(scores(&world.take(A)), [(0, 2), (0, 2)]);
    // Afterwards, the points that the client claims apply.
    world.take(B);
    stand_up(&mut world, A, game);
    stand_up(&mut world, B, game);
    sit(&mut world, A, game, 0, 500);
    assert_eq!(scores(&world.take(A)).last(), Some(&(500, 1)));
}

#[test]
fn g_43_the_rank_counts_those_with_more_points() {
    let mut world = World::new();
    let game = world.join(A, GameType::Heek, 0);
    let mut ranks = Vec::new();
    for (seat, (player, points)) in [(A, 7), (B, 9), (D, 7)].into_iter().enumerate() {
        if player != A {
            world.join(player, GameType::Heek, 0);
        }
        world.take(player);
        sit(&mut world, player, game, seat, points);
        ranks.extend(scores(&world.take(player)));
    }
    assert_eq!(ranks, [(7, 1), (9, 1), (7, 2)]);
}

#[test]
fn g_44_g_48_seats_of_those_who_left_are_cleaned_up() {
    let (mut world, game) = table(&[A, B, D]);
    world.leave(B);
    assert_eq!(world.names(A), ["PlayerLeft", "Drop"]);
    assert_eq!(world.names(D), ["PlayerLeft"]);
    // Only the seat of the player who left becomes free.
    world.join(B, GameType::Heek, 0);
    for player in [A, B, D] {
        world.take(player);
    }
    sit(&mut world, B, game, 2, 100);
    assert_eq!((world.names(B), world.refused()), (vec!["PlayGame"], RefusedClass::BadState));
    sit(&mut world, B, game, 1, 100);
    assert_eq!(world.names(B), ["PlayGame", "Welcome"]);
    world.take(A);
    world.take(D);
    world.leave(A);
    // The longest-standing member is the owner now.
    assert_eq!(world.names(D), ["PlayerLeft", "OwnerChange", "Drop"]);
    assert_eq!(world.names(B), ["PlayerLeft", "OwnerChange"]);
    world.leave(D);
    world.take(B);
    // Nobody is left to clean up, so the next owner does so.
    world.leave(B);
    assert_eq!(world.join(A, GameType::Heek, 0), game);
    let got = world.take(A);
    let names: Vec<_> = got.iter().map(Got::name).collect();
    assert_eq!(names, ["GameInstance", "PlayerJoined", "OwnerChange", "Drop"]);
    let GameBody::HeekServer(Heek::Drop(seat)) = &got[3].body else { panic!("{got:?}") };
    assert_eq!(seat.position, 1);
    world.join(A, GameType::Heek, 0);
    assert_eq!(world.names(A), ["GameInstance", "PlayerJoined", "OwnerChange"]);
}

#[test]
fn g_45_newcomers_are_sent_no_seats() {
    let (mut world, _) = table(&[A, B]);
    world.join(D, GameType::Heek, 0);
    assert_eq!(world.names(D), ["GameInstance", "PlayerJoined", "OwnerChange"]);
}

/// A wins with rock and scissors, and then reaches three with paper although the last choice of the
/// game is a different one.
#[test]
fn g_46_the_colour_of_the_win_is_the_one_that_reached_three() {
    let (mut world, game) = table(&[A, B]);
    for (own, other) in [(1, 0), (0, 2), (1, 0), (2, 1), (1, 0)] {
        round(&mut world, game, &[(A, own), (B, other)]);
        finish(&mut world, A, game, 1);
    }
    let got = world.take(A);
    let won: Vec<u8> = got
        .iter()
        .filter_map(|got| match &got.body {
            GameBody::HeekServer(Heek::GameWin(won)) => Some(won.choice.0),
            _ => None,
        })
        .collect();
    assert_eq!(won, [1]);
    // 100 - 1 + a pool of 2; B has paid 1.
    assert_eq!(scores(&got).last(), Some(&(101, 1)));
    assert_eq!(scores(&world.take(B)).last(), Some(&(99, 2)));
    assert_eq!(world.dropped, []);
}

#[test]
fn g_47_only_those_who_sit_are_told_of_newcomers() {
    let (mut world, game) = table(&[A]);
    world.join(B, GameType::Heek, 0);
    world.join(D, GameType::Heek, 0);
    for player in [A, B, D] {
        world.take(player);
    }
    sit(&mut world, D, game, 4, 100);
    assert_eq!(world.names(A), ["InterfaceState", "Welcome"]);
    assert_eq!((world.names(B), world.names(D)), (vec![], vec!["PlayGame", "Welcome"]));
}

#[test]
fn g_49_the_last_player_ends_the_game_and_takes_the_pool() {
    let (mut world, game) = table(&[A, B]);
    choose(&mut world, A, game, 0);
    choose(&mut world, B, game, 1);
    finish(&mut world, A, game, 0);
    finish(&mut world, A, game, 1);
    choose(&mut world, A, game, 0);
    world.take(A);
    world.take(B);
    stand_up(&mut world, B, game);
    assert_eq!(world.names(B), ["PointUpdate", "Goodbye"]);
    world.take(A);
    stand_up(&mut world, A, game);
    let got = world.take(A);
    let names: Vec<_> = got.iter().map(Got::name).collect();
    assert_eq!(names, ["PointUpdate", "Goodbye", "CountdownState"]);
    assert_eq!(scores(&got), [(101, 1)]);
    let GameBody::HeekServer(Heek::PointUpdate(update)) = &got[0].body else { panic!("{got:?}") };
    assert!(update.display.is_true());
    assert_eq!(world.games.poll_timeout(), None);
}

#[test]
fn only_the_owner_ends_sequences_and_only_those_that_run() {
    let (mut world, game) = table(&[A, B]);
    finish(&mut world, B, game, 0);
    assert_eq!(world.refused(), RefusedClass::NotOwner);
    for sequence in 0..3 {
        finish(&mut world, A, game, sequence);
        assert_eq!(world.refused(), RefusedClass::BadState);
    }
    assert!(world.is_quiet());
}

/// Two players reach three wins in the same round, so play continues until one is ahead.
#[test]
fn equal_candidates_play_on() {
    let (mut world, game) = table(&[A, B, D]);
    for _ in 0..3 {
        round(&mut world, game, &[(A, 0), (B, 0), (D, 2)]);
        finish(&mut world, A, game, 1);
    }
    let names = world.names(A);
    assert!(!names.contains(&"GameWin"), "{names:?}");
    // D wins a round without becoming a candidate.
    round(&mut world, game, &[(A, 0), (B, 0), (D, 1)]);
    finish(&mut world, A, game, 1);
    assert!(!world.names(A).contains(&"GameWin"));
    world.take(D);
    // B takes the lead.
    round(&mut world, game, &[(A, 0), (B, 1), (D, 0)]);
    finish(&mut world, A, game, 1);
    assert!(world.names(A).contains(&"GameWin"));
    assert_eq!(scores(&world.take(B)).last(), Some(&(102, 1)));
    assert_eq!(scores(&world.take(D)).last(), Some(&(99, 2)));
}

#[test]
fn a_candidate_who_stands_up_does_not_win() {
    let (mut world, game) = table(&[A, B, D]);
    for _ in 0..3 {
        round(&mut world, game, &[(A, 0), (B, 0), (D, 2)]);
        finish(&mut world, A, game, 1);
    }
    stand_up(&mut world, B, game);
    world.take(A);
    // The remaining candidate wins after the next round, even if another player wins that round.
    round(&mut world, game, &[(A, 0), (D, 1)]);
    finish(&mut world, A, game, 1);
    assert!(world.names(A).contains(&"GameWin"));
}
