//! The messages that a client receives, with a check that it would survive each of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use worldwire_core::{Reader, Side};
use worldwire_uru::games::message::heek::server::ServerMessage as Heek;
use worldwire_uru::games::message::manager::GameResult;
use worldwire_uru::games::message::manager::server::ServerMessage as Manager;
use worldwire_uru::games::message::marker::server::ServerMessage as Marker;
use worldwire_uru::games::message::var_sync::server::ServerMessage as VarSync;
use worldwire_uru::games::{GameBody, GameHeader, GameMessage, GameText, GameType, text_fault};

/// A message that a client received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Got {
    pub(crate) trans_id: u32,
    pub(crate) game_id: u32,
    pub(crate) body: GameBody<'static>,
    pub(crate) bytes: Arc<[u8]>,
}

impl Got {
    pub(crate) fn name(&self) -> &'static str {
        self.body.name().unwrap_or("?")
    }
}

/// A client's messages.
#[derive(Default)]
pub(crate) struct Mailbox {
    /// Games that the client knows.
    known: BTreeMap<u32, GameType>,
    got: Vec<Got>,
}

impl Mailbox {
    /// Takes a message, which the client must survive.
    pub(crate) fn deliver(&mut self, bytes: Arc<[u8]>) {
        let header = GameHeader::of(&bytes).expect("a header");
        let game = self.known.get(&header.game_id).copied();
        assert!(header.game_id == 0 || game.is_some(), "a message before GameInstance");
        let message = GameMessage::decode(game, Side::Server, &mut Reader::new(&bytes));
        let message = message.unwrap_or_else(|error| panic!("{error}")).into_owned();
        let again = message.to_bytes().unwrap();
        assert_eq!(*again, *bytes, "bytes after a text");
        let name = message.body.name().expect("a number that clients know");
        match &message.body {
            GameBody::ManagerServer(Manager::GameInstance(game)) => {
                assert_ne!(message.trans_id.0, 0, "an answer to nothing");
                let is_good = game.result == GameResult::Success;
                assert_eq!(is_good, game.game_id != 0);
                if is_good {
                    self.known.insert(game.game_id, GameType::of(game.game_type).unwrap());
                }
            }
            body => {
                assert_eq!(message.trans_id.0, 0, "{name} with a transaction");
                assert!(!matches!(body, GameBody::ManagerServer(_)), "{name} harms clients");
                assert!(texts_are_sound(body), "{name} with a text that harms clients");
            }
        }
        let (trans_id, game_id, body) = (message.trans_id.0, message.game_id, message.body);
        self.got.push(Got { trans_id, game_id, body, bytes });
    }

    /// The client has left the age.
    pub(crate) fn forget_games(&mut self) {
        self.known.clear();
    }

    /// The game of the last `GameInstance`.
    pub(crate) fn last_instance(&self) -> Option<u32> {
        self.got.iter().rev().find_map(|got| match &got.body {
            GameBody::ManagerServer(Manager::GameInstance(game)) => Some(game.game_id),
            _ => None,
        })
    }

    /// A game of a type that the client knows.
    #[allow(dead_code, reason = "for tests of a shard")]
    pub(crate) fn known_game(&self, game_type: GameType) -> Option<u32> {
        self.known.iter().find(|game| *game.1 == game_type).map(|game| *game.0)
    }

    /// Everything received since the last call.
    pub(crate) fn take(&mut self) -> Vec<Got> {
        core::mem::take(&mut self.got)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.got.is_empty()
    }
}

fn texts_are_sound(body: &GameBody<'_>) -> bool {
    fn sound<const N: usize>(text: &GameText<'_, N>) -> bool {
        text_fault(text).is_none()
    }
    match body {
        GameBody::HeekServer(Heek::Welcome(it)) => sound(&it.name),
        GameBody::MarkerServer(Marker::TemplateCreated(it)) => sound(&it.template),
        GameBody::MarkerServer(Marker::GameNameChanged(it)) => sound(&it.name),
        GameBody::MarkerServer(Marker::MarkerAdded(it)) => sound(&it.name) && sound(&it.age),
        GameBody::MarkerServer(Marker::MarkerNameChanged(it)) => sound(&it.name),
        GameBody::VarSyncServer(VarSync::StringVarChanged(it)) => sound(&it.value),
        GameBody::VarSyncServer(VarSync::StringVarCreated(it)) => {
            sound(&it.name) && sound(&it.value)
        }
        GameBody::VarSyncServer(VarSync::NumericVarCreated(it)) => sound(&it.name),
        _ => true,
    }
}
