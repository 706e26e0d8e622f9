//! The spelling of names in the conformance vectors.

use worldwire_uru::games::GameType;

/// The type of game that a vector names.
pub(crate) fn game_type(name: &str) -> Option<GameType> {
    match name {
        "bluespiral" => Some(GameType::BlueSpiral),
        "climbingwall" => Some(GameType::ClimbingWall),
        "heek" => Some(GameType::Heek),
        "marker" => Some(GameType::Marker),
        "tictactoe" => Some(GameType::TicTacToe),
        "varsync" => Some(GameType::VarSync),
        _ => None,
    }
}

/// The protocol's spelling of a vector's field.
pub(crate) fn camel(key: &str) -> String {
    let mut name = String::new();
    let mut is_first = true;
    for word in key.split('_') {
        let (head, tail) = word.split_at(usize::from(!is_first && !word.is_empty()));
        name.push_str(&head.to_uppercase());
        name.push_str(tail);
        is_first = false;
    }
    name
}
