//! Messages that clients send to the game manager.

use worldwire_core::Side;
use worldwire_core::json::{Json, json};
use worldwire_uru::games::{GameMessage, GameType};

/// A client's message, given as `Marker.AddMarker` and its fields.
pub(crate) fn encoded(trans_id: u32, game_id: u32, name: &str, fields: Json) -> Vec<u8> {
    let (game, name) = name.split_once('.').unwrap();
    let json = json!({
        "game": game, "messageId": name, "transId": trans_id, "gameId": game_id, "fields": fields,
    });
    let message = GameMessage::from_json(Side::Client, &json);
    message.and_then(|message| message.to_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// The fields of `JoinGame` for a common game, as clients send it.
pub(crate) fn join(game: GameType, table: u32) -> Json {
    let data = match game {
        GameType::TicTacToe => json!({"players": 2}),
        GameType::Marker => markers("", 0)["createData"].clone(),
        _ => json!({"filler": game != GameType::Heek}),
    };
    let game_type = game.id().to_string();
    json!({"gameId": table, "options": ["Common"], "gameType": game_type, "createData": data})
}

/// The fields of `CreateGame` for a marker game.
pub(crate) fn markers(template: &str, kind: u8) -> Json {
    let data = json!({"type": kind, "name": "Hunt", "timeLimit": 120, "template": template});
    let game_type = GameType::Marker.id().to_string();
    json!({"gameType": game_type, "options": [], "createData": data})
}
