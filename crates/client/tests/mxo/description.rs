//! The description of a player's own character. This project's client never asks for it.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use worldwire_client::mxo::plain_character;
use worldwire_core::connection::{Event, EventOf, Sender as _};
use worldwire_mxo::connection::{ClientConfig, Connection, Sender, Session, Unit};
use worldwire_mxo::frame::RpcMessage;
use worldwire_mxo::rpc::{ClientRpc, ServerRpc, SetBackground};
use worldwire_mxo::types::Str;
use worldwire_net::{Application, Clock, Driver, Flow, udp};

use crate::stage::{PATIENCE, Stage};

/// A client that asks for its character's description, reads it, and then changes it.
struct Asker(mpsc::Sender<String>);

impl Application<Connection> for Asker {
    type Notice = ();

    async fn event(&mut self, event: EventOf<'_, Connection>, sender: &mut Sender) -> Flow {
        let Event::Received(piece) = event else { return Flow::Continue(()) };
        if !matches!(piece.unit, Unit::Rpc { .. }) {
            return Flow::Continue(());
        }
        match ServerRpc::decode(piece.bytes) {
            Ok(Some(ServerRpc::LoadWorld(_))) => {
                sender.send(&RpcMessage::new(0x8194, b"\0\0\0")).unwrap();
            }
            Ok(Some(ServerRpc::Background(background))) => {
                let text = background.text.text();
                if text == "A hacker." {
                    let text = Str::new("The One.").unwrap();
                    let change = ClientRpc::from(SetBackground { reserved: 0, text });
                    sender.send(&change.encode().unwrap()).unwrap();
                }
                self.0.send(text).await.unwrap();
            }
            _ => {}
        }
        Flow::Continue(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_player_reads_and_changes_a_description() {
    let mut stage = Stage::new(|_| ()).await;
    stage.add("neo").await;
    let mut margin = stage.margin("neo").await;
    let character = plain_character("Thomas", "Anderson", "A hacker.").unwrap();
    let id = margin.create("Neo", character).await.unwrap();
    let (session, key) = margin.session().clone();
    let (clock, link) = (Clock::start(), stage.game());
    let config = ClientConfig::new(Duration::from_secs(1), id);
    let connection = Connection::client(config, Session::new(session, key, &[3; 16]), clock.now());
    let (said, mut says) = mpsc::channel(4);
    tokio::spawn(
        async move { udp::drive(&Driver::client(clock), link, connection, Asker(said)).await },
    );
    for wanted in ["A hacker.", "The One."] {
        let text = timeout(PATIENCE, says.recv()).await.unwrap().unwrap();
        assert_eq!(text, wanted);
    }
}
