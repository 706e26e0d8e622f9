//! Steps in the games of an age.

use worldwire_client::uru::games::VarValue;
use worldwire_core::{listed, nearest};
use worldwire_uru::games::GameType;
use worldwire_uru::games::message::heek::HeekChoice;
use worldwire_uru::games::message::marker::MarkerGameType;

use super::step::{Argument, Misfit, Words, arguments, steps};

steps! {
    PlayStep in PLAY_STEPS;
    Games = "games" "", "list the games that the shard announces and the games you are in";
    JoinGame(GameType, Option<u32>) = "join-game" "GAME [TABLE]",
        "join a common game [default table: 255 for var-sync, else 0]";
    LeaveGame(GameType) = "leave-game" "GAME", "leave a game";
    TouchDoor = "touch-door" "", "start or restart the blue spiral";
    PressCloth(u8) = "press-cloth" "CLOTH", "press a cloth in the blue spiral game, 0 to 6";
    SolveDoor = "solve-door" "", "start the blue spiral and press the cloths in the order shown";
    Sit(u8, Option<u32>) = "sit" "SEAT [POINTS]",
        "sit down at the Heek table, in seat 0 to 4 [default points: 100]";
    Choose(HeekChoice) = "choose" "CHOICE", "choose rock, paper or scissors";
    PlayRound(HeekChoice) = "play-round" "CHOICE",
        "wait until you can choose, then choose and wait for the round to end";
    StandUp = "stand-up" "", "stand up from the Heek table";
    CreateVar(String, VarValue) = "create-var" "NAME VALUE",
        "create a shared variable: a number or text";
    SetVar(String, VarValue) = "set-var" "NAME VALUE",
        "set a shared variable; only the game's owner can";
    Vars = "vars" "", "list the shared variables";
    CreateMarkerGame(String, Option<MarkerGameType>) = "create-marker-game" "NAME [TYPE]",
        "create a marker game (TYPE: quest or cgz) and a vault node for it";
    OpenMarkerGame(String) = "open-marker-game" "NAME",
        "open and play a marker game from your vault, by name or template";
    Markers = "markers" "", "list the markers";
    AddMarker(f64, f64, f64, String) = "add-marker" "X Y Z TEXT", "add a marker in this age";
    RenameMarker(u32, String) = "rename-marker" "MARKER TEXT", "change a marker's text";
    DeleteMarker(u32) = "delete-marker" "MARKER", "delete a marker";
    PlayMarkers = "play-markers" "", "start playing the marker game";
    CaptureMarker(u32) = "capture-marker" "MARKER", "capture a marker";
    PauseMarkers = "pause-markers" "", "stop playing";
    ResetMarkers = "reset-markers" "", "discard your captures";
    RenameMarkerGame(String) = "rename-marker-game" "NAME", "rename the marker game";
    LimitMarkerGame(u32) = "limit-marker-game" "MILLISECONDS", "set the game's time limit";
    DeleteMarkerGame = "delete-marker-game" "", "delete the marker game";
}

/// The names of games in steps. The names from `shard.toml`, with underscores, are accepted, too.
pub(super) const GAMES: &[(&str, GameType)] = &[
    ("blue-spiral", GameType::BlueSpiral),
    ("climbing-wall", GameType::ClimbingWall),
    ("heek", GameType::Heek),
    ("marker", GameType::Marker),
    ("tic-tac-toe", GameType::TicTacToe),
    ("var-sync", GameType::VarSync),
];
const CHOICES: &[(&str, HeekChoice)] =
    &[("rock", HeekChoice::Rock), ("paper", HeekChoice::Paper), ("scissors", HeekChoice::Scissors)];
const MARKER_GAMES: &[(&str, MarkerGameType)] =
    &[("quest", MarkerGameType::Quest), ("cgz", MarkerGameType::Cgz)];

arguments! {
    u8: |word| word.parse().map_err(|_| format!("{word} is not a number from 0 to 255"));
    f64: |word| {
        let number = word.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| format!("{word} is not a coordinate"))
    };
    GameType: |word| {
        let found = GAMES.iter().find(|(name, _)| *name == word.replace('_', "-"));
        found.map(|(_, game)| *game).ok_or_else(|| one_of("a game", word, GAMES))
    };
    HeekChoice: |word| {
        let found = CHOICES.iter().find(|(name, _)| *name == word);
        found.map(|(_, choice)| *choice).ok_or_else(|| one_of("a choice", word, CHOICES))
    };
    MarkerGameType: |word| {
        let found = MARKER_GAMES.iter().find(|(name, _)| *name == word);
        found.map(|(_, it)| *it).ok_or_else(|| one_of("a marker game", word, MARKER_GAMES))
    };
    VarValue: |word| Ok(match serde_json::from_str(word) {
        Ok(serde_json::Value::Number(number)) => {
            Self::Number(number.as_f64().unwrap_or(f64::INFINITY))
        }
        Ok(serde_json::Value::String(text)) => Self::Text(text),
        _ => Self::Text(word.to_owned()),
    });
}

/// Describes what is wrong with a word that is not among the known ones.
fn one_of<T>(what: &str, word: &str, known: &[(&str, T)]) -> String {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    match nearest(word, names.iter().copied()) {
        Some(near) => format!("{word} is not {what}; did you mean {near}?"),
        None => format!("{word} is not {what}: use one of {}", listed(&names)),
    }
}
