//! The malformed inputs in the conformance vectors, which a server must refuse.

use worldwire_core::json::Json;
use worldwire_core::testing::{Case, hex, run_vectors};
use worldwire_uru::games::GameBody;
use worldwire_uru::games::message::manager::server::ServerMessage;

use crate::spelling::game_type;
use crate::world::{A, World};

const ELSEWHERE: &[&str] = &[
    "bluespiral",
    "client-sent",
    "climbingwall",
    "common",
    "heek",
    "manager",
    "marker",
    "scenarios",
    "tictactoe",
    "varsync",
];

#[test]
fn every_input_is_refused_by_its_name() {
    run_vectors("uru-games", ELSEWHERE, |Case { case, .. }| {
        let id = case["id"].as_str().unwrap_or("?");
        refuse(case).map_err(|why| format!("{id}: {why}"))
    });
}

fn refuse(case: &Json) -> Result<(), String> {
    let mut bytes = hex(case, "hex")?;
    let mut world = World::new();
    if let Some(game) = game_type(case["game"].as_str().unwrap_or_default()) {
        // The running game that the message belongs to.
        let game_id = match game {
            worldwire_uru::games::GameType::Marker => world.open(A, "", 0),
            game => world.join(A, game, 0),
        };
        world.take(A);
        if let Some(id) = bytes.get_mut(8..12) {
            id.copy_from_slice(&game_id.to_le_bytes());
        }
    }
    let games: Vec<u32> = world.games.games().map(|game| game.0).collect();
    world.send_bytes(A, &bytes);
    let dropped = core::mem::take(&mut world.dropped);
    let [(_, why)] = &*dropped else {
        return Err(format!("dropped {dropped:?}"));
    };
    let wanted = case["error"].as_str().unwrap_or_default();
    if why.class.name() != wanted {
        return Err(format!("wanted {wanted}, found {}: {why}", why.class.name()));
    }
    let after: Vec<u32> = world.games.games().map(|game| game.0).collect();
    if after != games {
        return Err(format!("games {games:?} became {after:?}"));
    }
    let answers = world.take(A);
    match case["action"].as_str() {
        Some("drop-count") if answers.is_empty() && why.class.is_counted() => Ok(()),
        Some("reply GameInstance result=2") => match &*answers {
            [answer] => match &answer.body {
                GameBody::ManagerServer(ServerMessage::GameInstance(game))
                    if game.result.0 == 2 && (game.owner, game.game_id) == (0, 0) =>
                {
                    let asked: [u8; 4] = bytes[4..8].try_into().unwrap_or_default();
                    match answer.trans_id == u32::from_le_bytes(asked) {
                        true => Ok(()),
                        false => Err("answered in another transaction".into()),
                    }
                }
                other => Err(format!("{other:?}")),
            },
            _ => Err(format!("{} answers", answers.len())),
        },
        action => Err(format!("{action:?}, but {} answers", answers.len())),
    }
}
