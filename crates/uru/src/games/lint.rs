//! Irregularities in messages of the game manager and its games: messages that servers drop, or
//! that harm clients.

use worldwire_core::{Limits, Reader, Side};

use super::manager::check_client;
use super::message::heek::server::ServerMessage as Heek;
use super::message::manager::GameResult;
use super::message::manager::server::ServerMessage as Manager;
use super::message::marker::server::ServerMessage as Marker;
use super::message::var_sync::server::ServerMessage as VarSync;
use super::refused::{Refused, check_finite, check_text};
use super::{GameBody, GameMessage, GameType};

/// Inspects the message of a `GameMgrMsg` and returns one remark per irregularity. Messages from
/// current clients and from [`GameManager`](super::GameManager) yield none. A message that cannot
/// be decoded yields one remark.
#[must_use]
pub fn lint(game: Option<GameType>, sender: Side, message: &[u8], limits: &Limits) -> Vec<String> {
    let decoded = match GameMessage::decode(game, sender, &mut Reader::within(message, limits)) {
        Ok(decoded) => decoded,
        Err(error) => return vec![error.to_string()],
    };
    let mut remarks = Vec::new();
    let is_manager = decoded.game_id == 0;
    match sender {
        Side::Client => {
            if is_manager && decoded.trans_id.0 == 0 {
                remarks
                    .push("a request without a transaction, which cannot be answered".to_owned());
            }
            if !is_manager && decoded.trans_id.0 != 0 {
                remarks.push("a transaction, which only requests to the manager have".to_owned());
            }
            remarks.extend(check_client(&decoded.body).err().map(|why| why.to_string()));
        }
        Side::Server => {
            remarks.extend(server_remark(&decoded).map(str::to_owned));
            remarks.extend(check_server(&decoded.body).err().map(|why| why.to_string()));
        }
    }
    remarks
}

/// A message that clients misunderstand.
fn server_remark(message: &GameMessage<'_>) -> Option<&'static str> {
    let has_transaction = message.trans_id.0 != 0;
    match &message.body {
        GameBody::ManagerServer(Manager::GameInstance(game)) => {
            let is_good = game.result == GameResult::Success;
            (is_good && !has_transaction)
                .then_some("a success without a transaction, which crashes OpenUru clients")
        }
        GameBody::ManagerServer(_) => {
            Some("H'uru clients mistake invitations for the end of the connection")
        }
        GameBody::Unknown { .. } => None,
        _ => has_transaction
            .then_some("a transaction, so clients mistake the message for a GameInstance"),
    }
}

/// Checks the values in a server's message.
fn check_server(body: &GameBody<'_>) -> Result<(), Refused> {
    match body {
        GameBody::HeekServer(Heek::Welcome(welcome)) => check_text("name", &welcome.name),
        GameBody::MarkerServer(message) => match message {
            Marker::TemplateCreated(created) => check_text("template", &created.template),
            Marker::GameNameChanged(changed) => check_text("name", &changed.name),
            Marker::MarkerNameChanged(changed) => check_text("name", &changed.name),
            Marker::MarkerAdded(added) => {
                for (field, number) in [("x", added.x), ("y", added.y), ("z", added.z)] {
                    check_finite(field, number.0)?;
                }
                check_text("name", &added.name)?;
                check_text("age", &added.age)
            }
            _ => Ok(()),
        },
        GameBody::VarSyncServer(message) => match message {
            VarSync::StringVarChanged(changed) => check_text("value", &changed.value),
            VarSync::NumericVarChanged(changed) => check_finite("value", changed.value.0),
            VarSync::StringVarCreated(created) => {
                check_text("name", &created.name)?;
                check_text("value", &created.value)
            }
            VarSync::NumericVarCreated(created) => {
                check_text("name", &created.name)?;
                check_finite("value", created.value.0)
            }
            VarSync::AllVarsSent(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use worldwire_core::json::{Json, json};

    use super::*;

    fn found(sender: Side, trans_id: u32, game: &str, name: &str, fields: Json) -> Vec<String> {
        let game_id = if game == "Manager" { 0 } else { 7 };
        let message = json!({
            "game": game, "messageId": name, "transId": trans_id, "gameId": game_id,
            "fields": fields,
        });
        let bytes = GameMessage::from_json(sender, &message).unwrap().to_bytes().unwrap();
        lint(GameType::from_name(game), sender, &bytes, &Limits::DEFAULT)
    }

    #[test]
    fn good_messages_yield_nothing() {
        let spiral = GameType::BlueSpiral.id().to_string();
        let join = json!({
            "gameId": 0, "options": ["Common"], "gameType": spiral, "createData": {"filler": true},
        });
        assert_eq!(found(Side::Client, 3, "Manager", "JoinGame", join), [""; 0]);
        let joined = json!({"result": 0, "owner": 5, "gameType": spiral, "gameId": 7});
        assert_eq!(found(Side::Server, 3, "Manager", "GameInstance", joined), [""; 0]);
        assert_eq!(found(Side::Client, 0, "BlueSpiral", "StartGame", json!({})), [""; 0]);
        assert_eq!(found(Side::Server, 0, "Marker", "GameStarted", json!({})), [""; 0]);
    }

    #[test]
    fn odd_messages_are_explained() {
        let hit = json!({"cloth": 7});
        assert_eq!(
            found(Side::Client, 2, "BlueSpiral", "HitCloth", hit),
            [
                "a transaction, which only requests to the manager have",
                "cloth: wanted a cloth from 0 to 6, found 7",
            ]
        );
        let name = json!({"name": {"$hex": "00d8"}});
        let wanted = ["name: wanted valid UTF-16, found an unpaired surrogate at UTF-16 unit 0"];
        assert_eq!(found(Side::Client, 0, "Marker", "ChangeGameName", name.clone()), wanted);
        assert_eq!(found(Side::Server, 0, "Marker", "GameNameChanged", name), wanted);
        let spiral = GameType::BlueSpiral.id().to_string();
        let joined = json!({"result": 0, "owner": 5, "gameType": spiral, "gameId": 7});
        let crash = ["a success without a transaction, which crashes OpenUru clients"];
        assert_eq!(found(Side::Server, 0, "Manager", "GameInstance", joined), crash);
        assert_eq!(found(Side::Server, 4, "Marker", "GameStarted", json!({})).len(), 1);
        let create = json!({
            "gameType": GameType::TicTacToe.id().to_string(), "options": [],
            "createData": {"players": 3},
        });
        assert_eq!(
            found(Side::Client, 0, "Manager", "CreateGame", create),
            [
                "a request without a transaction, which cannot be answered",
                "players: wanted 1 or 2 players, found 3",
            ]
        );
        let error = lint(None, Side::Client, &[1, 2], &Limits::DEFAULT);
        assert_eq!(error, ["messageId at byte 0: wanted 4 bytes, found 2"]);
    }
}
