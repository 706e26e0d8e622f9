//! Tests of sharing a book: its owner and another player are in one age, and both link to the
//! book's age.

use worldwire_uru::frame::Message;
use worldwire_uru::message::auth::client as ask;
use worldwire_uru::message::auth::server::ServerMessage as Reply;
use worldwire_uru::types::{NetError, Uuid};

use crate::client::{ACCOUNTS, Running};
use crate::player::Player;
use crate::traveller::Visitor;

/// A player on an auth connection, and in an age.
struct Guest {
    auth: Player,
    account: Uuid,
    id: u32,
    game: Option<Visitor>,
}

impl Guest {
    async fn new(shard: &Running, (account, password): (&str, &str), name: &str) -> Self {
        let mut auth = Player::connect(shard).await;
        let (_, reply) = auth.log_in(account, password).await;
        let id = auth.create(name, "female").await.unwrap();
        assert_eq!(auth.choose(id).await, NetError::Success);
        Self { auth, account: reply.account_id, id, game: None }
    }

    /// Links to an age as a client does: leaves the old one, requests the new one, and joins it.
    async fn link(&mut self, shard: &Running, name: &'static str, instance: Uuid) -> NetError {
        self.game = None;
        let trans_id = self.auth.next();
        let age_name = name.into();
        let request = ask::AgeRequest { trans_id, age_name, age_instance_id: instance };
        self.auth.say(request).await;
        let reply = loop {
            if let Message::AuthServer(Reply::AgeReply(reply)) = self.auth.hear().await.message() {
                break reply;
            }
        };
        if reply.result != NetError::Success {
            return reply.result;
        }
        let mut game = Visitor::connect(shard, self.id).await;
        let result = game.ask_in(reply.age_mcp_id, self.account, self.id).await;
        self.game = Some(game);
        result
    }
}

async fn instance(shard: &Running, name: &str) -> Uuid {
    let age = shard.vault.ages_called(name).await.unwrap()[0].id;
    let node = shard.vault.show(age).await.unwrap();
    let json = worldwire_core::json::Json::from(node["Uuid_1"].as_str().unwrap());
    worldwire_core::Field::from_json((&json).into()).unwrap()
}

#[tokio::test]
async fn a_shared_book_works() {
    let shard = Running::start(|_| (), |_| ()).await;
    let mut ann = Guest::new(&shard, ACCOUNTS[0], "Ann").await;
    let mut bob = Guest::new(&shard, ACCOUNTS[1], "Bob").await;
    let (relto, city) = (instance(&shard, "Ann's Relto").await, instance(&shard, "city").await);
    // A stranger is refused.
    assert_eq!(bob.link(&shard, "Personal", relto).await, NetError::AgeNotFound);
    assert_eq!(bob.link(&shard, "city", city).await, NetError::Success);
    assert_eq!(bob.link(&shard, "Personal", relto).await, NetError::AgeNotFound);
    // In the city, Ann shares her book. She links first.
    assert_eq!(bob.link(&shard, "city", city).await, NetError::Success);
    assert_eq!(ann.link(&shard, "city", city).await, NetError::Success);
    assert_eq!(ann.link(&shard, "Personal", relto).await, NetError::Success);
    assert_eq!(bob.link(&shard, "Personal", relto).await, NetError::Success);
    shard.stop().await;
}
